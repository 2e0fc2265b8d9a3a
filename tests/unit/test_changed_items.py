"""Items that others changed by hand: their queue is told so, and no other is held up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StoreError, StreamSorter, Sweeper
from stream_sort.core.consumption import Wake

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, in_flight=1, deadline=0.1)


RESERVED = {"#types": "_ss_types", "#at": "_ss_at"}


def put(sorter: StreamSorter, queue: str, *seqs: int) -> None:
    for seq in seqs:
        sorter.put({"queue": queue, "seq": seq, "price": 1.0})


def change(client: Faulty, queue: str, seq: int, expression: str, **values: Any) -> None:
    key = {"queue": {"S": queue}, "seq": {"N": str(seq)}}
    more: dict[str, Any] = {}
    if values:
        more["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    names = {name: own for name, own in RESERVED.items() if name in expression}
    if names:
        more["ExpressionAttributeNames"] = names
    client.update_item(TableName="Items", Key=key, UpdateExpression=expression, **more)


CHANGES = [
    pytest.param("REMOVE price", {}, id="a field is gone"),
    pytest.param("SET price = :v", {"v": {"S": "cheap"}}, id="a field is another"),
    pytest.param("SET #types = :v", {"v": {"S": "no JSON"}}, id="the note is none"),
    pytest.param("SET #types = :v", {"v": {"S": "[1]"}}, id="the note is another"),
]


@pytest.mark.parametrize(("expression", "values"), CHANGES)
def test_i7_a_message_that_somebody_changed_is_named_and_stops_no_other_queue(
    client: Faulty, sorter: StreamSorter, expression: str, values: dict[str, Any]
) -> None:
    put(sorter, "bad", 0)
    put(sorter, "good", 0, 1)
    change(client, "bad", 0, expression, **values)
    got: list[tuple[str, int]] = []
    consumer = OrderedConsumer(
        "billing", lambda batch: got.extend((batch.queue, seq) for seq in batch.seqs), sorter=sorter
    )
    consumer.create_tables()
    consumer.process([Wake("bad"), Wake("good")])
    assert got == [("good", 0), ("good", 1)]
    with pytest.raises(StoreError, match="somebody changed") as told:
        list(sorter.read("bad"))
    assert "'bad'" in str(told.value)
    assert "delete the attribute" in str(told.value)


def test_i7_a_changed_message_beyond_a_gap_stops_no_sweep(client: Faulty, sorter: StreamSorter) -> None:
    put(sorter, "bad", 0, 2, 1, 4)
    put(sorter, "good", 0, 2)
    change(client, "bad", 4, "REMOVE price")
    for queue in ("bad", "good"):
        sorter.set_policy(queue, skip_after=0)
    done = Sweeper(sorter).sweep()
    # How old a gap is does not depend on what the messages beyond it say.
    assert (sorted(gap.queue for gap in done.skipped), done.failed) == (["bad", "good"], [])


def test_a_time_that_is_none_is_no_time(client: Faulty, sorter: StreamSorter) -> None:
    put(sorter, "bad", 0, 2, 1, 4)
    for seq, value in ((0, {"S": "yesterday"}), (4, {"N": "1.5"})):
        change(client, "bad", seq, "SET #at = :v", v=value)
    assert [message["seq"] for message in sorter.read("bad")] == [0, 1, 2]
    assert Sweeper(sorter).sweep().failed == []
