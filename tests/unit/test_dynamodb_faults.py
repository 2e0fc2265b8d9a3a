"""Throttles, lost replies and partial reads, on a real table of moto's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from stream_sort import OrderedConsumer, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Tombstones
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.testing.clock import MovableClock
from tests.unit.faulty import DUPLICATE, THROTTLE, Faulty, message, refusal, statements

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, deadline=0.5, in_flight=1)


@pytest.mark.parametrize(
    "error",
    [
        refusal(THROTTLE),
        refusal("ThrottlingException"),
        refusal("InternalServerError", 500),
        refusal("Whatever", 503),
        EndpointConnectionError(endpoint_url="http://nowhere"),
        ReadTimeoutError(endpoint_url="http://slow"),
    ],
    ids=str,
)
def test_a_passing_fault_is_retried(client: Faulty, sorter: StreamSorter, error: Exception) -> None:
    client.before = {"get_item": [error], "put_item": [error, error], "query": [error]}
    assert sorter.put(message(0)).status == "accepted"
    assert sorter.position("q") == 0


class Page:
    """The body of an answer that somebody else gave."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b"", b"[]", b'"x"', b"{}"], ids=repr)
def test_i10_a_page_of_a_proxy_is_never_taken_for_no_such_row_item_or_checkpoint(
    client: Faulty, sorter: StreamSorter, body: bytes
) -> None:
    sorter.put(message(0))

    def answer(request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 200, {}, Page(body))

    client.meta.events.register_first("before-send.dynamodb", answer)
    for call in (sorter.position, sorter.gaps, sorter.advance, OrderedConsumer("c", print, sorter=sorter).checkpoint):
        with pytest.raises(StoreUnavailable):
            call("q")
    with pytest.raises(StoreUnavailable):
        sorter.put(message(1))
    client.meta.events.unregister("before-send.dynamodb", answer)
    assert sorter.position("q") == 0


def test_i6_a_lost_reply_makes_our_own_message_a_duplicate_and_is_released_all_the_same(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put(message(0))
    lost = ReadTimeoutError(endpoint_url="http://slow")
    client.after = {"put_item": [lost], "update_item": [lost]}
    advance = sorter.put(message(1))
    assert (advance.status, advance.new) == ("duplicate", 1)


@pytest.mark.parametrize("seqs", [(1,), (1, 2, 3)])
def test_a_skip_whose_reply_was_lost_answers_what_it_skipped(
    client: Faulty, sorter: StreamSorter, seqs: tuple[int, ...]
) -> None:
    sorter.put_many([message(0), message(4)])
    client.after = {"put_item": [ReadTimeoutError(endpoint_url="http://x")]}
    assert sorter.skip("q", seqs).skipped == seqs
    assert sorter.skip("q", seqs).skipped == ()


def test_what_another_one_skipped_is_not_told_as_skipped_once_more(client: Faulty, sorter: StreamSorter) -> None:
    for seen, reason, now in ((0, "lost", 1.0), (0, "lost", 1.001), (0, "gone", 1.0), (-1, "lost", 1.0)):
        skipped = sorter.stores.items.skip(Tombstones("q", (2,), reason, seen), now)
        assert skipped == ((2,) if client.calls.count("put_item") == 1 else ())
    late = check_message(message(2), KeyNames())
    assert sorter.stores.items.keep_late(late, 2.0) is not None
    assert sorter.stores.items.skip(Tombstones("q", (2,), "lost", 0), 1.0) == (2,), "as when its reply was lost"


def test_a_gap_is_told_as_given_up_although_a_reply_was_lost(client: Faulty) -> None:
    clock = MovableClock()
    sorter = StreamSorter(client=client, deadline=0.5, in_flight=1, clock=clock, gap_policy="skip after 10 seconds")
    sorter.put_many([message(0), message(4)])
    clock.move(60)
    client.before = {"put_item": [refusal(THROTTLE)]}
    client.after = {"put_item": [ReadTimeoutError(endpoint_url="http://x")]}
    given_up = [gap for _ in range(2) for gap in Sweeper(sorter).sweep().skipped]
    assert sorted(seq for gap in given_up for seq in gap.seqs) == [1, 2, 3]


@pytest.mark.parametrize("method", ["get_item", "put_item", "query", "update_item", "batch_get_item"])
def test_i10_a_fault_that_stays_is_named_with_table_and_operation_and_never_read_as_empty(
    client: Faulty, sorter: StreamSorter, method: str
) -> None:
    if method in {"update_item", "batch_get_item"}:
        sorter.put(message(0))
    client.before = {method: [refusal(THROTTLE)] * 1_000}
    with pytest.raises(StoreUnavailable, match="tries") as caught:
        sorter.put(message(2 if method == "batch_get_item" else 1 if method == "update_item" else 0))
    assert caught.value.retryable
    assert caught.value.operation == "".join(part.title() for part in method.split("_"))
    # A read changes nothing, whether it was heard or not.
    assert ("may or may not have been done" in str(caught.value)) is (method in {"put_item", "update_item"})
    assert "the same call can be made again" in str(caught.value).lower()
    assert caught.value.table
    client.before = {}
    sorter.put_many([message(0), message(1)])
    assert sorter.position("q") >= 1


def test_pauses_grow_with_jitter_and_end_at_the_deadline(client: Faulty) -> None:
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    calls = Calls(client, 10.0, sleep, lambda: now[0], lambda: 0.5)
    client.before = {"get_item": [refusal(THROTTLE)] * 100}
    with pytest.raises(StoreUnavailable):
        calls("get_item", "Cursor", TableName="Cursor", Key={"queue": {"S": "q"}})
    assert pauses[:4] == [0.025, 0.05, 0.1, 0.2]
    assert max(pauses) == 0.5
    assert 9 < sum(pauses) < 10


def test_keys_that_were_not_processed_are_read_again(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    client.answers["batch_get_item"] = [lambda request: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}]
    assert sorter.put(message(2)).new == 0
    assert client.calls.count("batch_get_item") == 2


def test_i10_every_read_that_decides_is_strongly_consistent(client: Faulty, sorter: StreamSorter) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    client.watch = lambda method, request: asked.append((method, request))
    sorter.put(message(0))
    sorter.put_many([message(2), message(0)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, DUPLICATE)]
    StreamSorter(client=client, in_flight=1).put_many([message(0), message(2)])
    sorter.skip("q", 1)
    sorter.explain("q")
    list(sorter.read("q"))
    reads = [request for method, request in asked if method in {"get_item", "query"}]
    reads += [
        table for method, request in asked if method == "batch_get_item" for table in request["RequestItems"].values()
    ]
    assert len(reads) > 10
    assert all(read["ConsistentRead"] is True for read in reads)


def test_a_listing_goes_on_where_its_last_page_ended(client: Faulty, sorter: StreamSorter) -> None:
    last = {"queue": {"S": "a"}}
    client.answers["scan"] = [
        lambda _: {"Items": [{"queue": {"S": "a"}}], "LastEvaluatedKey": last},
        lambda request: {"Items": [{"queue": {"S": "b" if request["ExclusiveStartKey"] == last else "?"}}]},
    ]
    page = sorter.stores.cursors.queues()
    assert (page.queues, sorter.stores.cursors.queues(page.next).queues) == (("a",), ("b",))


def test_the_listing_of_waiting_queues_goes_on_in_each_share_where_its_last_page_ended(
    client: Faulty, sorter: StreamSorter
) -> None:
    first, *_, last = tables.WAITING_SHARES
    asked: list[tuple[str, Any]] = []

    def page(request: dict[str, Any]) -> dict[str, Any]:
        share, place = request["ExpressionAttributeValues"][":share"]["S"], request.get("ExclusiveStartKey")
        asked.append((share, place))
        name, since = (f"{share}-1", "2") if place is None else (f"{share}-2", "1")
        found: dict[str, Any] = {"Items": [{"queue": {"S": name}, tables.WAITING_SINCE: {"N": since}}]}
        # Only these two have more than one page.
        return found | ({"LastEvaluatedKey": {"of": share}} if share in {first, last} and place is None else {})

    client.answers["query"] = [page] * (len(tables.WAITING_SHARES) + 2)
    start = sorter.stores.cursors.waiting(0.0)
    assert set(start.queues) == {f"{share}-1" for share in tables.WAITING_SHARES}
    asked.clear()
    rest = sorter.stores.cursors.waiting(0.0, start.next)
    assert (set(rest.queues), rest.next) == ({f"{first}-2", f"{last}-2"}, None)
    assert asked == [(share, {"of": share}) for share in (first, last)]


def test_an_empty_page_that_goes_on_is_not_the_end(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(3))
    client.answers["query"] = [lambda _: {"Items": [], "LastEvaluatedKey": {"queue": {"S": "q"}, "seq": {"N": "-1"}}}]
    assert sorter.stores.items.look("q", -1, 5).seqs == (0, 1, 2)
    client.answers["query"] = [lambda _: {"Items": [], "LastEvaluatedKey": {"queue": {"S": "q"}, "seq": {"N": "-1"}}}]
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 2]
