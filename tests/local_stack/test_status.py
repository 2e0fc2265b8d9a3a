"""`stream-sort status` over thousands of queues."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.cli.app import app
from stream_sort.model.consumption import Checkpoint, Subscription
from stream_sort.stores.dynamodb.checkpoints import CheckpointRow

if TYPE_CHECKING:
    import pytest

    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables

QUEUES = 5_000
AT_ONCE = 25


def write(client: Any, table: str, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), AT_ONCE):
        puts = [{"PutRequest": {"Item": row}} for row in rows[start : start + AT_ONCE]]
        assert not client.batch_write_item(RequestItems={table: puts}).get("UnprocessedItems")


def test_status_of_5000_queues_reads_each_row_once_and_no_items(
    ministack: MiniStack, dynamodb: Any, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    control = f"control-{tables.cursor}"
    sorter = StreamSorter(tables.items, tables.cursor, client=dynamodb)
    OrderedConsumer("process", sorter=sorter, control_table=control).create_tables()
    sorter.stores.control(control).subscriptions.register(Subscription("process", "earliest", 0.0))
    names = [f"queue-{number}" for number in range(QUEUES)]
    cursors = [{"queue": {"S": name}, "seq": {"N": "9"}, "_ss_first_seq": {"N": "0"}} for name in names]
    write(dynamodb, tables.cursor, cursors)
    rows = [CheckpointRow.of(Checkpoint("process", name, 7, 1, "run", 1.0)) for name in names]
    write(dynamodb, control, [row.serialize() for row in rows])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")

    words = ["status", "--items-table", tables.items, "--cursor-table", tables.cursor, "--control-table", control]
    began = time.perf_counter()
    shown = CliRunner().invoke(app, [*words, "--endpoint-url", ministack.url, "--region", "us-east-1", "--json"])
    spent = time.perf_counter() - began
    assert shown.exit_code == 0, shown.stderr
    seen = json.loads(shown.stdout)
    print(f"status over {QUEUES:,} queues: {seen['requests']} requests, {spent:.1f} s")
    assert {line["queue"] for line in seen["lines"]} == set(names)
    assert {line["lag"]["process"] for line in seen["lines"]} == {2}
    # Nothing of the items table. All cursor rows fit into one page of a scan; the list of consumers; a hundred
    # checkpoints a request; the list of the one consumer's dead letters.
    assert seen["requests"] == 1 + 1 + QUEUES // 100 + 1
