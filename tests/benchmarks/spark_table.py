"""The table source against what people write by hand: from canned pages, and on the local AWS.

python -m tests.benchmarks.spark_table
"""

from __future__ import annotations

import io
import itertools
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from statistics import median
from typing import TYPE_CHECKING, Any

import boto3
from boto3.dynamodb.types import TypeDeserializer
from botocore.awsrequest import AWSResponse

from stream_sort import StreamSorter
from stream_sort.local.ministack import MiniStack
from stream_sort.model.message import KeyNames
from stream_sort.replay import register
from stream_sort.replay.engine.session import spark_session
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import Part, Range, cut_parts
from stream_sort.replay.source.options import ROWS_PER_PARTITION
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.raw_pages import RawPages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PROCESSES = 2
PAGE_ROWS = 3_000
PAGES = 30
ACCESS = TableAccess("Items", "Cursor", region="us-east-1")
QUEUES = 10
ROWS = 20_000
SKEWED = 1_000_000


def main() -> None:
    """Print both ratios."""
    os.environ.update(AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test", AWS_REGION="us-east-1")
    by_hand, ours = _in_turns(_canned_by_hand, _canned_ours)
    rows = PAGE_ROWS * PAGES * PROCESSES
    print(f"canned pages, {PROCESSES} processes: client.query + TypeDeserializer {rows / by_hand:,.0f} rows/s")
    print(f"  table source {rows / ours:,.0f} rows/s: {by_hand / ours:.1f} times as many (bar: 5)")
    longest = _skew()
    print(
        f"skew, 90 % of {SKEWED:,} rows in one queue: the slowest part takes {longest:.2f} times the median (bar: 1.5)"
    )
    with MiniStack() as stack:
        bare, spark = _on_the_local_aws(stack)
    print(f"local AWS, {ROWS:,} rows: bare parallel Query {ROWS / bare:,.0f} rows/s")
    print(f"  table source {ROWS / spark:,.0f} rows/s: {spark / bare:.2f} of the bare time (bar: 1.25)")


def _in_turns(*works: Callable[[], float], times: int = 5) -> list[float]:
    """The median time of each, taken in turns: what disturbs the machine disturbs all."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for found, work in zip(taken, works, strict=True):
            found.append(work())
    return [median(found) for found in taken]


def _page(number: int) -> bytes:
    first = number * PAGE_ROWS
    return _body(first, PAGE_ROWS, more=number < PAGES - 1)


def _body(first: int, rows: int, *, more: bool) -> bytes:
    items = [
        {
            "queue": {"S": "account-17"},
            "seq": {"N": str(seq)},
            "kind": {"S": "order_placed"},
            "amount": {"N": "129.95"},
            "customer": {"S": f"c-{seq:06}"},
            "note": {"S": "x" * 120},
            "paid": {"BOOL": True},
            tables.ARRIVED_AT: {"N": "1763280000000"},
            tables.SEEN: {"N": "12"},
        }
        for seq in range(first, first + rows)
    ]
    body: dict[str, Any] = {"Items": items, "Count": rows, "ConsumedCapacity": {"CapacityUnits": 128.0}}
    if more:
        body["LastEvaluatedKey"] = {"queue": {"S": "account-17"}, "seq": {"N": str(first + rows - 1)}}
    return json.dumps(body, separators=(",", ":")).encode()


def _canned_client(answers: Iterator[bytes] | None = None) -> Any:
    """A client that gets the same pages over and over, without a network."""
    pages = answers or itertools.cycle([_page(number) for number in range(PAGES)])
    client = boto3.session.Session().client("dynamodb", region_name="us-east-1")

    def answer(request: Any, **_: Any) -> AWSResponse:
        page = next(pages)
        response = AWSResponse(request.url, 200, {}, io.BytesIO(page))
        response._content = page
        return response

    client.meta.events.register("before-send.dynamodb.Query", answer)
    return client


def _by_hand(_: int) -> float:
    client, value = _canned_client(), TypeDeserializer().deserialize
    began, rows = time.perf_counter(), 0
    request: dict[str, Any] = {
        "TableName": "Items",
        "KeyConditionExpression": "queue = :q",
        "ExpressionAttributeValues": {":q": {"S": "account-17"}},
    }
    while True:
        reply = client.query(**request)
        rows += len([{name: value(held) for name, held in item.items()} for item in reply["Items"]])
        if "LastEvaluatedKey" not in reply:
            break
        request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]
    assert rows == PAGE_ROWS * PAGES
    return time.perf_counter() - began


def _ours(_: int) -> float:
    origin = _origin(_canned_client())
    began = time.perf_counter()
    rows = sum(batch.num_rows for batch in origin.read(Range("account-17", -1, PAGE_ROWS * PAGES - 1)))
    assert rows == PAGE_ROWS * PAGES
    return time.perf_counter() - began


def _skew() -> float:
    """The work of the slowest part over that of the median part, in CPU time: each in its best of five rounds.

    Parts of the very same work differ twofold in one round, by what else the machine does.
    """
    small = [Range(f"small-{n:04}", -1, SKEWED // 10_000 - 1) for n in range(1_000)]
    parts = cut_parts([Range("big", -1, SKEWED * 9 // 10 - 1), *small], ROWS_PER_PARTITION)
    bodies = {(rows, more): _body(0, rows, more=more) for rows, more in {key for part in parts for key in _pages(part)}}
    rounds = [[_work(part, bodies) for part in parts] for _ in range(5)]
    best = [min(taken) for taken in zip(*rounds, strict=True)]
    return max(best) / median(best)


def _work(part: Part, bodies: Mapping[tuple[int, bool], bytes]) -> float:
    origin = _origin(_canned_client(bodies[key] for key in _pages(part)))
    began = time.process_time()
    assert sum(batch.num_rows for wanted in part.ranges for batch in origin.read(wanted)) == part.rows
    return time.process_time() - began


def _pages(part: Part) -> Iterator[tuple[int, bool]]:
    """How many rows each page of a part has, and whether more follow in its range."""
    for wanted in part.ranges:
        for left in range(len(wanted), 0, -PAGE_ROWS):
            yield min(left, PAGE_ROWS), left > PAGE_ROWS


def _origin(client: Any) -> TableOrigin:
    origin = TableOrigin(ACCESS)
    names = tables.TableNames("Items", "Cursor", KeyNames("queue", "seq"))
    origin.__dict__["_pages"] = RawPages(Calls(client, 10.0), names)
    return origin


def _canned_by_hand() -> float:
    with ProcessPoolExecutor(PROCESSES) as pool:
        return max(pool.map(_by_hand, range(PROCESSES)))


def _canned_ours() -> float:
    with ProcessPoolExecutor(PROCESSES) as pool:
        return max(pool.map(_ours, range(PROCESSES)))


def _on_the_local_aws(stack: MiniStack) -> list[float]:
    sorter = StreamSorter("Items", "Cursor", client=stack.client("dynamodb"))
    sorter.create_tables()
    sorter.put_many(
        [{"queue": f"q{n % QUEUES}", "seq": n // QUEUES, "kind": "order", "note": "x" * 120} for n in range(ROWS)]
    )
    spark = spark_session("bench")
    register(spark)
    options = {"itemsTable": "Items", "cursorTable": "Cursor", "region": "us-east-1", "endpointUrl": stack.url}
    frame = spark.read.format("stream_sort").options(**options, rowsPerPartition=ROWS // PROCESSES).load()
    parts = cut_parts([Range(f"q{n}", -1, ROWS // QUEUES - 1) for n in range(QUEUES)], ROWS // PROCESSES)

    def ours() -> float:
        began = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    with ProcessPoolExecutor(PROCESSES) as pool:

        def bare() -> float:
            began = time.perf_counter()
            assert sum(pool.map(_query, [(stack.url, part.ranges) for part in parts])) == ROWS
            return time.perf_counter() - began

        ours(), bare()
        return _in_turns(bare, ours)


def _query(work: tuple[str, tuple[Range, ...]]) -> int:
    """What a plain script does: a client, and a Query for each range."""
    url, ranges = work
    client = boto3.session.Session().client("dynamodb", region_name="us-east-1", endpoint_url=url)
    rows = 0
    for wanted in ranges:
        pages = client.get_paginator("query").paginate(
            TableName="Items",
            ConsistentRead=True,
            KeyConditionExpression="#q = :q AND #s BETWEEN :first AND :last",
            ExpressionAttributeNames={"#q": "queue", "#s": "seq"},
            ExpressionAttributeValues={
                ":q": {"S": wanted.queue},
                ":first": {"N": str(wanted.after + 1)},
                ":last": {"N": str(wanted.through)},
            },
        )
        rows += sum(len(page["Items"]) for page in pages)
    return rows


if __name__ == "__main__":
    main()
