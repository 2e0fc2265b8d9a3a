"""A row of the control table that nobody can read, on tables of moto's: it is the trouble of its own queue only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from stream_sort import OrderedConsumer, RowDamaged, StreamSorter, Sweeper
from stream_sort.model.consumption import Wake
from stream_sort.replay.audit.findings import findings_of
from stream_sort.replay.audit.queues import QueueAudit
from stream_sort.replay.audit.standing import StandingReader
from stream_sort.stores.dynamodb.control_rows import key_of, place_of
from stream_sort.stores.dynamodb.subscriptions import BOOKMARK, CONSUMERS, SWEEP
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.batch import Batch


class Bench:
    """Queues a and b, of which a message is not consumed yet, and p, which is parked; and a watcher."""

    def __init__(self) -> None:
        self.client: Any = boto3.client("dynamodb", region_name="eu-central-1")
        self.clock = MovableClock()
        self.sorter = StreamSorter(client=self.client, clock=self.clock)
        self.sorter.create_tables()
        self.consumer = OrderedConsumer("billing", self._handle, sorter=self.sorter)
        self.consumer.create_tables()
        for queue in ("a", "b", "p"):
            self.sorter.put({"queue": queue, "seq": 0})
            self.consumer.catch_up(queue)
        for queue in ("a", "b"):
            self.sorter.put({"queue": queue, "seq": 1})
        self.control = self.sorter.stores.control("Control")
        self.watcher = LagWatch(self.control.subscriptions, self.control.checkpoints, self.sorter.stores.cursors)

    def _handle(self, batch: Batch) -> None:
        if batch.queue == "p":
            raise ValueError("no")

    def damage(self, queue: str, attribute: str = "version") -> None:
        self.client.update_item(
            TableName="Control",
            Key=key_of(*place_of("billing", queue)),
            UpdateExpression="REMOVE #it",
            ExpressionAttributeNames={"#it": attribute},
        )

    def sweep(self) -> tuple[set[str], list[str], Any]:
        self.clock.move(60)
        done = Sweeper(self.sorter, lagging=self.watcher).sweep()
        return set(done.nudged), [queue for queue, _ in done.failed], done.watch_error


@pytest.fixture
def bench() -> Iterator[Bench]:
    with mock_aws():
        yield Bench()


@pytest.mark.parametrize("attribute", ["version", "queue"])
def test_a_damaged_checkpoint_stops_the_wakes_of_no_other_queue(bench: Bench, attribute: str) -> None:
    bench.damage("a", attribute)
    assert bench.sweep() == ({"b", "p"}, ["a"], None)
    assert bench.watcher.watched.whole
    assert bench.watcher.watched.lag == {"billing": 1}
    assert bench.sweep()[1] == ["a"], "it is told of until it is mended"


def test_a_damaged_row_of_a_parked_queue_stops_the_wakes_of_no_other_queue(bench: Bench) -> None:
    bench.damage("p")
    assert bench.sweep() == ({"a", "b"}, ["p"], None)


def test_a_damaged_checkpoint_keeps_no_latest_consumer_from_coming_back(bench: Bench) -> None:
    bench.damage("a")
    bench.consumer.retire()
    again = OrderedConsumer("billing", lambda _: None, sorter=bench.sorter, start="latest")
    assert [one.ended for one in again.process([Wake("a"), Wake("b")])] == ["failed", "done"]
    assert (again.checkpoint("b"), bench.control.subscriptions.consumers()[0].ready) == (1, True)


STARTS = ["yesterday", "1.5", "", str(2**63)]


@pytest.fixture(params=[None, *STARTS], ids=["without a start", *(f"start {start!r}" for start in STARTS)])
def half_a_consumer(bench: Bench, request: pytest.FixtureRequest) -> str:
    """A registration without a start, or with one that is none, of another consumer."""
    row = key_of(CONSUMERS, "search")
    if request.param is not None:
        row |= {"start": {"S": request.param}, "since": {"N": "0"}, "ready": {"BOOL": True}}
    bench.client.put_item(TableName="Control", Item=row)
    return "search"


def test_a_damaged_registration_stops_the_wakes_of_no_other_consumer(bench: Bench, half_a_consumer: str) -> None:
    assert bench.sweep() == ({"a", "b", "p"}, [f"(consumer {half_a_consumer})"], None)
    assert bench.watcher.watched.whole
    assert bench.watcher.watched.lag == {"billing": 1}
    assert bench.sweep()[1] == [f"(consumer {half_a_consumer})"], "it is told of until it is mended"


def test_a_damaged_registration_keeps_no_other_consumer_from_being_asked_or_reset(
    bench: Bench, half_a_consumer: str
) -> None:
    other = OrderedConsumer("billing", sorter=bench.sorter)
    assert other.checkpoint("a") == 0
    assert [one.queue for one in other.reset("earliest", queues=["a"], dry_run=True)] == ["a"]
    with pytest.raises(RowDamaged, match=r"without ready, since, start|'search' that is not ours: start is '"):
        OrderedConsumer(half_a_consumer, sorter=bench.sorter).reset("earliest")


def test_a_trim_is_refused_while_a_registration_is_damaged(bench: Bench, half_a_consumer: str) -> None:
    with pytest.raises(RowDamaged, match=half_a_consumer):
        bench.sorter.trim("a", 0, control_table="Control")


def test_a_consumer_whose_own_registration_is_damaged_does_not_run(bench: Bench, half_a_consumer: str) -> None:
    consumer = OrderedConsumer(half_a_consumer, lambda _: None, sorter=bench.sorter)
    with pytest.raises(RowDamaged, match=half_a_consumer):
        consumer.catch_up("a")


def test_who_decides_by_a_damaged_row_is_told(bench: Bench) -> None:
    bench.damage("p")
    with pytest.raises(RowDamaged, match="without version"):
        bench.control.checkpoints.of_queues("billing", ["a", "p"]).whole()
    with pytest.raises(RowDamaged, match="without version"):
        bench.consumer.checkpoint("p")
    read = bench.control.checkpoints.of_queues("billing", ["a", "p", "none"])
    assert ([*read.rows], [*read.damaged]) == (["a"], ["p"])


def test_a_damaged_checkpoint_is_a_finding_of_its_queue_and_keeps_no_other_from_being_audited(bench: Bench) -> None:
    bench.damage("p")
    reader, queues = StandingReader(bench.sorter, "Control", sleep=lambda _: None), dict[str, Any]()
    reader.join(queues, reader.cursors(None))
    assert {name: audit.lag() for name, audit in queues.items()} == {"a": {"billing": 1}, "b": {"billing": 1}, "p": {}}
    (finding,) = [one for audit in queues.values() for one in findings_of(audit) if one.kind == "failed"]
    assert (finding.queue, "without version" in finding.detail) == ("p", True)


def test_a_damaged_registration_is_told_by_an_audit_and_keeps_no_other_consumer_from_it(
    bench: Bench, half_a_consumer: str
) -> None:
    reader, queues = StandingReader(bench.sorter, "Control", sleep=lambda _: None), dict[str, Any]()
    (finding,) = reader.join(queues, reader.cursors(None))
    assert (finding.queue, finding.kind) == (f"(consumer {half_a_consumer})", "failed")
    assert (queues["a"].lag(), len(queues)) == ({"billing": 1}, 3)


def test_a_damaged_cursor_row_of_a_queue_that_is_named_keeps_no_other_from_being_audited(bench: Bench) -> None:
    row = {"queue": {"S": "b"}, "seq": {"S": "none"}}
    bench.client.put_item(TableName="Cursor", Item=row)
    reader, queues = StandingReader(bench.sorter, "Control", sleep=lambda _: None), {"b": QueueAudit("b", [(0, 1)])}
    reader.join(queues, reader.cursors(("a", "b")))
    assert {name: bool(audit.error) for name, audit in queues.items()} == {"a": False, "b": True}


@pytest.mark.parametrize("place", [{"S": "not json"}, {"S": "[" * 100_000}, {"N": "7"}, {"NULL": True}])
def test_a_bookmark_that_nobody_can_read_stops_no_look(bench: Bench, place: dict[str, Any]) -> None:
    bench.client.put_item(TableName="Control", Item={**key_of(SWEEP, BOOKMARK), "place": place})
    assert bench.sweep() == ({"a", "b", "p"}, [], None)
    assert bench.control.subscriptions.bookmark() is not None
