"""Deleting on a real table of moto's, with what DynamoDB leaves over."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import StoreUnavailable, StreamSorter, Trimmed
from tests.unit.faulty import Faulty, message


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    sorter = StreamSorter(client=client, deadline=0.5, in_flight=1)
    sorter.put_many(message(seq) for seq in range(60))
    return sorter


def leave_over(request: dict[str, Any]) -> dict[str, Any]:
    (table, deletes), *_ = request["RequestItems"].items()
    return {"UnprocessedItems": {table: deletes[1:]}}


def test_a_trim_deletes_25_a_call_and_reads_keys_only(client: Faulty, sorter: StreamSorter) -> None:
    read: list[str] = []
    client.watch = lambda method, request: read.append(request["ProjectionExpression"]) if method == "query" else None
    client.calls.clear()
    assert sorter.trim("q", 54, control_table=None) == 55
    assert client.calls.count("batch_write_item") == 3
    assert read == ["#queue, #seq", "#queue, #seq"]
    assert sorter.stores.items.look("q", -1, 99).seqs == (55, 56, 57, 58, 59)


def test_what_is_left_over_is_deleted_within_the_deadline(client: Faulty, sorter: StreamSorter) -> None:
    sent: list[int] = []
    client.watch = lambda method, request: (
        sent.append(len(request["RequestItems"]["Items"])) if method == "batch_write_item" else None
    )
    client.answers["batch_write_item"] = [leave_over]
    assert sorter.trim("q", 9, control_table=None) >= 10
    assert sent[:2] == [10, 9]
    assert sorter.stores.items.look("q", -1, 1).seqs == (10,)


def test_what_stays_left_over_is_an_error_and_the_next_trim_finishes(client: Faulty, sorter: StreamSorter) -> None:
    client.answers["batch_write_item"] = [lambda request: {"UnprocessedItems": request["RequestItems"]}] * 1_000
    with pytest.raises(StoreUnavailable, match="UnprocessedItems"):
        sorter.trim("q", 9, control_table=None)
    client.answers.clear()
    assert sorter.trim("q", 9, control_table=None) == 10


def test_a_message_below_the_floor_is_taken_back(client: Faulty, sorter: StreamSorter) -> None:
    StreamSorter(client=client).trim("q", 30, control_table=None)
    with pytest.raises(Trimmed):
        sorter.put(message(3))
    assert client.calls[-1] == "delete_item"
    assert sorter.stores.items.look("q", -1, 1).seqs == (31,)


def test_a_put_above_the_floor_makes_the_requests_it_always_made(client: Faulty, sorter: StreamSorter) -> None:
    client.calls.clear()
    sorter.put(message(60))
    before = list(client.calls)
    StreamSorter(client=client).trim("q", 30, control_table=None)
    client.calls.clear()
    sorter.put(message(61))
    assert client.calls == before
