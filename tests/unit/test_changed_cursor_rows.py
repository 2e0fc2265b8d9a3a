"""Rows of the cursor and control tables that others changed by hand: the trouble of their own queue only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, RowDamaged, StreamSorter, Sweeper
from stream_sort.aws_lambda.wakes import batch_response
from stream_sort.model.consumption import Wake
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty

ODD = [
    pytest.param("_ss_moved_at", {"S": "x"}, id="a move at no time"),
    pytest.param("_ss_nudged_at", {"M": {}}, id="a nudge at no time"),
    pytest.param("_ss_moved_at", {"N": "1E+100"}, id="a move in no year"),
    pytest.param("_ss_waiting_since", {"N": "1.5"}, id="a mark between two"),
    pytest.param("_ss_first_seq", {"S": "0"}, id="a first seq of text"),
    pytest.param("_ss_withdrawals", {"N": "0.5"}, id="half a withdrawal"),
    pytest.param("_ss_policy", {"N": "1"}, id="a policy of number"),
    pytest.param("seq", {"N": "1.5"}, id="a position between two"),
    pytest.param("seq", {"S": "x"}, id="a position of text"),
    pytest.param("seq", None, id="no position"),
]


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    sorter = StreamSorter(client=client, in_flight=1, deadline=0.1)
    for queue in ("bad", "good"):
        sorter.put_many({"queue": queue, "seq": seq} for seq in (0, 5))
    return sorter


def change(client: Faulty, name: str, value: dict[str, Any] | None, queue: str = "bad") -> None:
    """Give an attribute of a cursor row another value, or take it away."""
    client.update_item(
        TableName="Cursor",
        Key={"queue": {"S": queue}},
        UpdateExpression="REMOVE #name" if value is None else "SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        **({} if value is None else {"ExpressionAttributeValues": {":value": value}}),
    )


def anew(client: Faulty) -> StreamSorter:
    """One that remembers no row."""
    return StreamSorter(client=client, in_flight=1, deadline=0.1)


@pytest.mark.usefixtures("sorter")
@pytest.mark.parametrize(("name", "value"), ODD)
def test_i7_a_cursor_row_that_somebody_changed_stops_no_other_queue(
    client: Faulty, name: str, value: dict[str, Any] | None
) -> None:
    change(client, name, value)
    result = anew(client).put_many([{"queue": "bad", "seq": 1}, {"queue": "good", "seq": 1}])
    ((document, error),) = result.rejected
    assert (document["queue"], type(error), result.accepted) == ("bad", RowDamaged, 1)
    assert repr(name) in str(error)
    assert "'bad'" in str(error)
    sorter = anew(client)
    assert sorter.position("good") == 1
    assert isinstance(sorter.advance_many(["bad", "good"])["bad"], RowDamaged)
    done = Sweeper(sorter).sweep_all()
    assert [(queue, type(failure)) for queue, failure in done.failed] == [("bad", RowDamaged)]
    for page in (sorter.stores.cursors.rows(), sorter.stores.cursors.rows_of(["bad", "good"])):
        assert ([row.queue for row in page.rows], [*page.damaged]) == (["good"], ["bad"])


@pytest.mark.parametrize("rows_a_look", [500, 1], ids=["a small table", "a large table"])
@pytest.mark.parametrize("value", [{"S": "x"}, None], ids=["another type", "gone"])
def test_a_cursor_row_that_cannot_be_read_is_told_by_every_sweep(
    client: Faulty, value: dict[str, Any] | None, rows_a_look: int
) -> None:
    clock = MovableClock()
    sorter = StreamSorter(client=client, in_flight=1, deadline=0.1, clock=clock)
    sorter.put_many({"queue": queue, "seq": 0} for queue in ("bad", "good"))
    got: list[str] = []
    consumer = OrderedConsumer("billing", lambda batch: got.append(batch.queue), sorter=sorter)
    consumer.create_tables()
    consumer.catch_up("good")
    row = client.get_item(TableName="Cursor", Key={"queue": {"S": "bad"}})["Item"]
    change(client, "seq", value)
    wakes = [Wake("bad", 0, ("first",)), Wake("good", 0, ("second",))]
    assert batch_response(wakes, consumer.process(wakes)) == {"batchItemFailures": []}, "no shard is held up"
    watcher = LagWatch(
        sorter.stores.control("Control").subscriptions,
        sorter.stores.control("Control").checkpoints,
        sorter.stores.cursors,
        rows_a_look,
    )
    for _ in range(5):
        clock.move(1_200)
        done = Sweeper(sorter, lagging=watcher).sweep()
        assert [(queue, type(error)) for queue, error in done.failed] == [("bad", RowDamaged)]
        assert watcher.watched.whole
    client.put_item(TableName="Cursor", Item=row)
    clock.move(60)
    done = Sweeper(sorter, lagging=watcher).sweep()
    assert (done.nudged, done.failed) == (["bad"], [])


def test_a_queue_that_waits_and_cannot_be_read_counts_once_as_failed(client: Faulty, sorter: StreamSorter) -> None:
    OrderedConsumer("billing", lambda _: None, sorter=sorter).create_tables()
    OrderedConsumer("billing", lambda _: None, sorter=sorter).catch_up("good")
    change(client, "seq", {"S": "x"})
    watcher = LagWatch(
        sorter.stores.control("Control").subscriptions,
        sorter.stores.control("Control").checkpoints,
        sorter.stores.cursors,
    )
    assert [queue for queue, _ in Sweeper(sorter, lagging=watcher).sweep().failed] == ["bad"]


def test_a_reset_of_all_queues_passes_over_none_that_cannot_be_read(client: Faulty, sorter: StreamSorter) -> None:
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter)
    consumer.create_tables()
    consumer.catch_up("good")
    change(client, "seq", None)
    with pytest.raises(RowDamaged, match="'bad'"):
        consumer.reset("earliest", force=True)


@pytest.mark.usefixtures("sorter")
@pytest.mark.parametrize("name", ["_ss_moved_at", "_ss_nudged_at"])
@pytest.mark.parametrize(("text", "seconds"), [("1.5", 0.0015), ("1E+3", 1.0), ("-2", -0.002)])
def test_a_time_may_have_a_fraction(client: Faulty, name: str, text: str, seconds: float) -> None:
    change(client, name, {"N": text})
    row = anew(client).stores.cursors.get("bad")
    assert row is not None
    assert getattr(row, name.removeprefix("_ss_")) == seconds
    assert anew(client).put({"queue": "bad", "seq": 1}).new == 1


@pytest.mark.usefixtures("sorter")
def test_i7_a_strange_hour_or_mark_stops_no_listing(client: Faulty) -> None:
    change(client, "_ss_hour", {"N": "99999999.5"})
    change(client, "_ss_waiting_since", {"N": "1.5"})
    cursors = anew(client).stores.cursors
    assert set(cursors.waiting(1e10).queues) == {"bad", "good"}
    active = cursors.active(0.0)
    assert active is not None
    assert set(active.queues) == {"bad", "good"}


@pytest.mark.parametrize("value", [{"S": "x"}, {"NULL": True}], ids=str)
def test_i7_a_control_row_that_somebody_changed_hides_no_other_in_a_listing(
    client: Faulty, sorter: StreamSorter, value: dict[str, Any]
) -> None:
    def fail(_: Any) -> None:
        raise ValueError("no")

    consumers = {}
    for kind, terms in {"parked": {}, "dead": {"max_attempts": 1, "on_poison": "dead_letter"}}.items():
        consumers[kind] = OrderedConsumer(kind, fail, sorter=sorter, **terms)  # type: ignore[arg-type]
        consumers[kind].create_tables()
        consumers[kind].process([Wake("bad"), Wake("good")])
    for pk, sk, attribute in (("parked#bad", "checkpoint", "seq"), ("dead#bad", f"dead#{2**63:020d}", "attempts")):
        client.update_item(
            TableName="Control",
            Key={"pk": {"S": pk}, "sk": {"S": sk}},
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": attribute},
            ExpressionAttributeValues={":value": value},
        )
    assert [one.queue for one in consumers["parked"].parked()] == ["good"]
    assert [one.queue for one in consumers["dead"].dead_letters()] == ["good"]
    with pytest.raises(RowDamaged, match="the control table holds a row"):
        sorter.stores.control("Control").dead_letters.of_queue("dead", "bad")
    with pytest.raises(RowDamaged, match="the control table holds a row"):
        sorter.stores.control("Control").checkpoints.standing("parked", "bad")
