"""A sweep's cost follows activity: 200,000 queues, of which 2,000 are active."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stream_sort import StreamSorter, Sweeper
from stream_sort.model.consumption import Checkpoint, Subscription
from stream_sort.model.records import Cursor
from stream_sort.stores.dynamodb.checkpoints import CheckpointRow
from stream_sort.stores.dynamodb.control_rows import wire_of
from stream_sort.stores.dynamodb.subscriptions import ConsumerRow
from stream_sort.stores.memory.tables import MemoryTables
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch
from tests.unit.wire_tables import WireTables

pytestmark = pytest.mark.slow

QUEUES, ACTIVE = 200_000, 2_000
NOW = 1_700_000_000.0
LONG_AGO = NOW - 40 * 86_400


def name(number: int) -> str:
    return f"queue-{number:06}"


def moved_at(number: int, one_in: int = QUEUES // ACTIVE) -> float:
    """When a queue last moved: some within the last half hour, the others long ago."""
    return NOW - number % 1_800 if number % one_in == 0 else LONG_AGO + number


class Crowd:
    """Queues in memory, all of them consumed."""

    def __init__(self, queues: int = QUEUES) -> None:
        self.tables = MemoryTables()
        self.control = self.tables.control("Control")
        self.control.subscriptions.register(Subscription("billing", "earliest", LONG_AGO))
        for number in range(queues):
            queue, at = name(number), moved_at(number)
            self.tables.cursors[queue] = Cursor(queue, 9, 0, moved_at=at)
            place = ("billing", queue)
            self.tables.controls["Control"].checkpoints[place] = Checkpoint("billing", queue, 9, committed_at=at)
        self.now = NOW
        self.watcher = self.new_watcher()

    def new_watcher(self) -> LagWatch:
        return LagWatch(self.control.subscriptions, self.control.checkpoints, self.tables.home().cursors)

    def sweep(self, after: float = 60.0) -> list[str]:
        self.now += after
        found = self.watcher.lagging(self.now)
        self.watcher.were_nudged(found)
        return found

    def release(self, number: int, count: int) -> str:
        """Move a queue of which no consumer hears."""
        row = self.tables.cursors[name(number)]
        self.tables.home().cursors.move(row, row.position + count, self.now)
        return row.queue

    def consume(self, queue: str) -> None:
        rows = self.tables.controls["Control"].checkpoints
        there = rows["billing", queue]
        rows["billing", queue] = replace(there, seq=self.tables.cursors[queue].position, committed_at=self.now)


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    return Crowd()


def test_a_consumer_that_missed_a_wake_on_an_idle_queue_sleeps_for_no_more_than_two_sweeps(crowd: Crowd) -> None:
    for _ in range(3):
        assert crowd.sweep() == []
    for number in (77, 123_457, QUEUES - 1):
        queue = crowd.release(number, 5)
        assert {*crowd.sweep(), *crowd.sweep()} == {queue}
        crowd.consume(queue)


def test_the_lag_is_the_true_maximum_and_not_that_of_the_part_looked_at(crowd: Crowd) -> None:
    crowd.sweep()
    lags = {crowd.release(number, count): count for number, count in ((5, 10), (99_999, 70), (180_003, 30))}
    for after in (60, 60, 60, 900, 3_000, 60, 5_000, 60):
        crowd.sweep(after)
        assert crowd.watcher.watched.lag == {"billing": 70}
    for queue in lags:
        crowd.consume(queue)
    crowd.sweep()
    assert crowd.watcher.watched.lag == {}


def test_a_sleeper_is_found_after_hours_without_a_sweep(crowd: Crowd) -> None:
    crowd.sweep()
    queue = crowd.release(31_337, 2)
    crowd.now += 9 * 3_600
    assert crowd.sweep() == [queue]
    crowd.consume(queue)


def test_another_process_knows_what_the_last_one_saw(crowd: Crowd) -> None:
    crowd.sweep()
    queue = crowd.release(31_338, 2)
    crowd.sweep()
    crowd.now += 86_400
    crowd.watcher = crowd.new_watcher()
    crowd.sweep()
    assert crowd.watcher.watched.lag == {"billing": 2}
    crowd.consume(queue)


def test_more_lagging_queues_than_can_be_remembered_are_told_and_nudged_once_an_hour() -> None:
    crowd = Crowd(10_000)
    crowd.sweep()
    for number in range(3_000):
        crowd.release(number, 1 + number)
    first = crowd.sweep()
    assert len(first) == 3_000
    assert (crowd.watcher.watched.forgotten, crowd.watcher.watched.lag["billing"]) == (2_000, 3_000)
    cursors = crowd.tables.home().cursors
    for queue in first:
        cursors.nudge(queue, crowd.now)
    nudged = 0
    for _ in range(59):
        for queue in (found := crowd.sweep()):
            cursors.nudge(queue, crowd.now)
        nudged += len(found)
        assert crowd.watcher.watched.lag["billing"] == 3_000
    assert nudged <= 3_000


class Counted:
    """The same on the DynamoDB stores, counting requests."""

    def __init__(self, queues: int, active: int) -> None:
        self.client = WireTables()
        self.clock = MovableClock(NOW)
        sorter = StreamSorter(client=self.client, clock=self.clock, in_flight=1)
        stores = sorter.stores
        self.client.seed("Control", [wire_of(ConsumerRow.of(Subscription("billing", "earliest", LONG_AGO)))])
        for number in range(queues):
            queue, at = name(number), moved_at(number, queues // active)
            self.client.seed("Cursor", [stores.cursors._wire(Cursor(queue, 9, 0, moved_at=at))])
            if at > LONG_AGO + QUEUES or number < 2_000:
                there = Checkpoint("billing", queue, 9, committed_at=at)
                self.client.seed("Control", [wire_of(CheckpointRow.of(there))])
        self.sweeper = Sweeper(
            sorter,
            lagging=LagWatch(
                stores.control("Control").subscriptions, stores.control("Control").checkpoints, stores.cursors
            ),
        )


@pytest.mark.parametrize(("queues", "active"), [(QUEUES, ACTIVE), (10_000, 100), (300, 300)])
def test_a_sweep_makes_at_most_one_request_for_50_active_queues_and_20_besides(queues: int, active: int) -> None:
    counted = Counted(queues, active)
    for _ in range(3):
        counted.client.requests.clear()
        assert counted.sweeper.sweep().nudged == []
        assert counted.client.requests.total() <= active / 50 + 20, counted.client.requests
        counted.clock.move(60)
