"""The watcher finds consumers that sleep, and measures how far behind they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stream_sort import OrderedConsumer, Pace, Parked, StreamSorter, Sweeper
from stream_sort.core.consumption import Wake
from stream_sort.core.precaution import ENDED
from stream_sort.core.records import CursorPage
from stream_sort.testing.clock import MovableClock
from stream_sort.watcher import FRESH, PATIENCE, SHARES, Watcher


class Stage:
    """A sorter, a consumer that fails when told to, and a watcher."""

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock)
        self.fails = False
        self.consumer = OrderedConsumer(
            "billing", self._handle, sorter=self.sorter, max_attempts=3, pace=Pace(sleep=lambda _: None)
        )
        self.control = self.sorter.stores.control("Control")
        self.watcher = Watcher(self.control, self.sorter.stores.cursors)

    def _handle(self, batch: Any) -> None:  # noqa: ARG002  # a handler takes a batch
        if self.fails:
            raise ValueError("no")

    def put(self, queue: str, *seqs: int) -> None:
        self.sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)

    def lagging(self) -> list[str]:
        return self.watcher.lagging(self.clock())


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_nobody_lags_where_there_is_no_consumer(stage: Stage) -> None:
    stage.put("q", 0, 1)
    stage.clock.move(PATIENCE)
    assert stage.lagging() == []


def test_a_consumer_that_sleeps_behind_the_position_is_found(stage: Stage) -> None:
    stage.put("q", 0, 1)
    stage.consumer.catch_up("q")
    stage.put("q", 2, 3, 4)
    stage.clock.move(PATIENCE)
    assert stage.lagging() == ["q"]
    assert stage.watcher.watched.lag == {"billing": 3}


def test_a_queue_that_a_consumer_never_looked_at_is_found(stage: Stage) -> None:
    stage.put("known", 0)
    stage.consumer.catch_up("known")
    stage.put("unknown", 0, 1)
    stage.clock.move(PATIENCE)
    assert stage.lagging() == ["unknown"]
    assert stage.watcher.watched.lag == {"billing": 2}


def test_a_consumer_that_may_be_at_work_is_let_be(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    stage.put("q", 1)
    stage.clock.move(PATIENCE - 1)
    assert stage.lagging() == []
    assert stage.watcher.watched.lag == {"billing": 1}


def test_a_consumer_that_is_done_is_let_be(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    stage.clock.move(PATIENCE)
    assert stage.lagging() == []
    assert stage.watcher.watched.lag == {}


def test_a_parked_queue_is_woken_when_its_time_has_come_and_counted_once_a_retry_has_failed(stage: Stage) -> None:
    stage.put("q", 0)
    stage.fails = True
    stage.consumer.catch_up("q")
    assert stage.lagging() == []
    assert stage.watcher.watched.parked["billing"] == 0
    stage.clock.move(2.5)
    assert stage.lagging() == ["q"]
    assert stage.watcher.watched.parked["billing"] == 0
    stage.consumer.process([Wake("q")])
    assert stage.lagging() == []
    assert stage.watcher.watched.parked["billing"] == 1


def test_a_queue_whose_first_retry_never_comes_is_counted(stage: Stage) -> None:
    stage.put("q", 0)
    stage.fails = True
    stage.consumer.catch_up("q")
    stage.clock.move(2.5 + PATIENCE)
    stage.lagging()
    assert stage.watcher.watched.parked["billing"] == 1


def test_a_queue_that_stays_parked_is_counted_and_not_woken(stage: Stage) -> None:
    stage.put("q", 0)
    stage.fails = True
    for _ in range(3):
        stage.consumer.catch_up("q")
    stage.clock.move(10_000)
    assert stage.lagging() == []
    assert stage.watcher.watched.parked == {"billing": 1}


def test_a_queue_that_has_not_moved_for_long_is_looked_at_once_an_hour(stage: Stage) -> None:
    stage.put("other", 0)
    stage.consumer.catch_up("other")
    stage.put("q", 0)
    stage.clock.move(FRESH)
    found = 0
    for _ in range(SHARES):
        stage.clock.move(60)
        found += "q" in stage.lagging()
    assert found == 1


def test_a_sweep_nudges_the_queues_of_sleeping_consumers(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    stage.put("q", 1)
    stage.clock.move(PATIENCE)
    done = Sweeper(stage.sorter, lagging=stage.watcher).sweep()
    assert done.nudged == ["q"]


class PagedRows:
    """Cursor rows one a page, and how far they were read."""

    def __init__(self, sorter: StreamSorter) -> None:
        self._sorter = sorter
        self.read: list[str] = []

    def rows(self, start: Any = None) -> CursorPage:
        rows = sorted(self._sorter.stores.cursors.rows().rows, key=lambda row: row.queue)
        index = start or 0
        self.read.append(rows[index].queue)
        return CursorPage((rows[index],), index + 1 if index + 1 < len(rows) else None)


def test_one_look_goes_through_some_queues_and_the_next_one_goes_on_from_there(stage: Stage) -> None:
    for queue in "abcde":
        stage.put(queue, 0)
    stage.consumer.catch_up("a")
    stage.clock.move(PATIENCE)
    rows = PagedRows(stage.sorter)
    watcher = Watcher(stage.control, rows, rows_a_look=2)  # type: ignore[arg-type]  # the one method it needs
    assert watcher.lagging(stage.clock()) == ["b"]
    assert watcher.lagging(stage.clock()) == ["c", "d"]
    assert watcher.lagging(stage.clock()) == ["e"]
    assert watcher.lagging(stage.clock()) == ["b"]
    assert rows.read == ["a", "b", "c", "d", "e", "a", "b"]


def test_a_queue_that_is_parked_as_a_precaution_is_counted_only_when_somebody_died(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    row = stage.control.checkpoints("billing", ["q"])["q"]
    for attempts, later, counted in ((1, 10, 0), (1, 0, 1), (2, 10, 1)):
        parked = Parked("q", 1, ENDED, attempts, stage.clock(), stage.clock() + later)
        new = replace(row, version=row.version + 1, parked=parked)
        assert stage.control.commit(row, new).won
        row = new
        stage.lagging()
        assert stage.watcher.watched.parked["billing"] == counted
