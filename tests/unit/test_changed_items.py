"""Items that others changed by hand: their queue is told so, and no other is held up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import (
    NotWithdrawn,
    OrderedConsumer,
    QueueDamaged,
    RowDamaged,
    StoreError,
    StreamSorter,
    Sweeper,
)
from stream_sort.aws_lambda.wakes import batch_response
from stream_sort.model.consumption import Wake
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch

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


class Scene:
    """Queue a with three messages, of which the second cannot be read; and a consumer with its handler's notes."""

    def __init__(self, client: Faulty) -> None:
        self.client = client
        self.clock = MovableClock()
        self.sorter = StreamSorter(client=client, in_flight=1, deadline=0.1, clock=self.clock)
        self.got: list[int] = []
        self.consumer = OrderedConsumer("billing", lambda batch: self.got.extend(batch.seqs), sorter=self.sorter)
        self.consumer.create_tables()
        put(self.sorter, "a", 0, 1, 2)
        change(client, "a", 1, "REMOVE price")

    def mend(self) -> None:
        change(self.client, "a", 1, "SET price = :v", v={"N": "1"})


def test_a_queue_with_an_item_that_cannot_be_read_does_not_stop_without_a_word(client: Faulty) -> None:
    scene = Scene(client)
    wakes = [Wake("a", 2, ("record",))]
    served = scene.consumer.process(wakes)
    assert batch_response(wakes, served) == {"batchItemFailures": []}
    assert scene.got == [0], "what comes before it is well"
    (parked,) = scene.consumer.parked()
    assert (parked.queue, parked.seq, parked.damaged) == ("a", 1, True)
    assert "RowDamaged" in parked.error
    watcher = LagWatch(
        scene.sorter.stores.control("Control").subscriptions,
        scene.sorter.stores.control("Control").checkpoints,
        scene.sorter.stores.cursors,
    )
    scene.clock.move(60)
    assert Sweeper(scene.sorter, lagging=watcher).sweep().nudged == ["a"]
    assert watcher.watched.parked == {"billing": 1}, "the alarm on parked queues sees it"
    with pytest.raises(QueueDamaged, match="delete the attribute"):
        scene.consumer.discard("a", 1, "broken")


def test_a_queue_whose_damaged_item_is_mended_goes_on_by_itself(client: Faulty) -> None:
    scene = Scene(client)
    for _ in range(3):
        scene.consumer.process([Wake("a")])
        scene.clock.move(60)
    (parked,) = scene.consumer.parked()
    # Tried at 0, 60 and 120 seconds; no try was one of the message.
    assert (parked.attempts, parked.next_try) == (0, parked.since + 240)
    scene.clock.move(60)
    scene.mend()
    scene.consumer.process([Wake("a")])
    assert (scene.got, scene.consumer.parked()) == ([0, 1, 2], [])


def test_all_up_to_a_message_that_somebody_changed_is_read(client: Faulty) -> None:
    read = Scene(client).sorter.read("a")
    assert next(read)["seq"] == 0
    with pytest.raises(RowDamaged, match="somebody changed"):
        next(read)


def test_a_stray_is_withdrawn_although_a_message_beside_it_cannot_be_read(client: Faulty) -> None:
    scene = Scene(client)
    put(scene.sorter, "a", 7, 8)
    change(client, "a", 7, "REMOVE price")
    with pytest.raises(NotWithdrawn) as refused:
        scene.sorter.withdraw("a", 8, reason="a time")
    assert refused.value.lowest == 7


def test_a_stray_that_cannot_be_read_stays_in_its_slot_until_it_is_mended(client: Faulty, sorter: StreamSorter) -> None:
    put(sorter, "a", 0, 8)
    change(client, "a", 8, "SET #types = :v", v={"S": "no JSON"})
    with pytest.raises(RowDamaged, match="delete the attribute"):
        sorter.withdraw("a", 8, reason="a time")
    assert sorter.withdrawn("a") == []
    change(client, "a", 8, "REMOVE #types")
    assert sorter.withdraw("a", 8, reason="a time").number == 1
