"""What the watcher remembers, and what it does about that for which there is no room, no time or no answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Parked, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.model import watch
from stream_sort.model.consumption import Checkpoint, Subscription
from stream_sort.model.records import Cursor
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.upkeep.sweep import Sweep

LONG = 86_400.0


class Fleet:
    """Queues and checkpoints in memory, and sweeps a minute apart, each by another process."""

    def __init__(self, rows_a_look: int = 5) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock)
        self.tables: Any = self.sorter.stores.cursors
        self.control: Any = self.sorter.stores.control("Control")
        self.rows_a_look = rows_a_look
        self.watcher = self._new_watcher()

    def add(self, queues: int, position: int = 9, *, prefix: str = "q", ago: float = 0.0) -> list[str]:
        names = [f"{prefix}{number:03}" for number in range(queues)]
        for queue in names:
            at = self.clock() - ago
            self.tables._tables.cursors[queue] = Cursor(queue, position, 0, moved_at=at)
        return names

    def register(self, name: str, *, start: str = "earliest", ready: bool = True) -> None:
        self.control.subscriptions.register(Subscription(name, start, self.clock(), ready))

    def row(self, queue: str) -> Cursor:
        row: Cursor = self.tables._tables.cursors[queue]
        return row

    def release(self, queue: str, ago: float = 40.0) -> None:
        """Move a queue of which no consumer hears."""
        row = self.row(queue)
        self.tables._tables.cursors[queue] = replace(row, position=row.position + 1, moved_at=self.clock() - ago)

    def commit(self, consumer: str, queue: str, seq: int | None = None, *, ago: float = 0.0) -> None:
        done = self.row(queue).position if seq is None else seq
        there = Checkpoint(consumer, queue, done, 1, "run", self.clock() - ago)
        self.control.checkpoints._control.checkpoints[consumer, queue] = there

    def park(self, consumer: str, queue: str, next_try: float) -> None:
        parked = Parked(queue, 1, "ValueError: no", 2, self.clock(), next_try)
        self.control.checkpoints._control.checkpoints[consumer, queue] = Checkpoint(
            consumer, queue, 0, 1, "run", 0.0, parked
        )

    def sweep(self, minutes: float = 1, time_left: Any = None) -> Sweep:
        self.clock.move(60 * minutes)
        self.watcher = self._new_watcher()
        return Sweeper(self.sorter, lagging=self.watcher).sweep(time_left=time_left)

    def _new_watcher(self) -> LagWatch:
        return LagWatch(
            self.control.subscriptions, self.control.checkpoints, self.sorter.stores.cursors, self.rows_a_look
        )


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_LAGS", 10)


@pytest.mark.usefixtures("little_room")
def test_a_consumer_that_does_not_run_delays_no_nudge_of_another(fleet: Fleet) -> None:
    names = fleet.add(20)
    fleet.register("dead")
    fleet.register("well")
    nudged = []
    for _ in range(150):
        for queue in names:
            fleet.release(queue)
            fleet.commit("well", queue, ago=39)
        nudged += fleet.sweep().nudged
    sleeps = set(names[::3])
    for queue in sleeps:
        fleet.release(queue, ago=0)
    assert sleeps <= {*fleet.sweep().nudged}
    assert len(nudged) <= 20 * 7, "and no nudge storm for the other one"


@pytest.mark.usefixtures("little_room")
def test_a_nudge_from_before_a_lag_began_holds_back_none_for_it(fleet: Fleet) -> None:
    names = fleet.add(30)
    fleet.register("slow")
    fleet.sweep()
    for queue in names[:2]:
        fleet.sorter.nudge(queue)
    for queue in names:
        fleet.commit("slow", queue, 0 if queue > names[12] else None)
    fleet.sweep()
    assert fleet.watcher.watched.forgotten > 0
    fleet.release(names[0], ago=0)
    assert names[0] in fleet.sweep().nudged


@pytest.mark.usefixtures("little_room")
def test_the_alarm_does_not_clear_while_more_queues_lag_than_are_remembered(fleet: Fleet) -> None:
    idle = fleet.add(200, prefix="idle", ago=LONG)
    names = fleet.add(30, 19_999)
    for queue in idle:
        fleet.commit("a", queue)
    fleet.register("a")
    for _ in range(300):
        fleet.sweep()
        assert fleet.watcher.watched.lag == {"a": 20_000}
    left = set(names)
    for _ in range(300):
        for queue in fleet.sweep().nudged:
            fleet.commit("a", queue)
            left.discard(queue)
        if not left:
            break
        assert fleet.watcher.watched.lag == {"a": 20_000}
    assert not left
    for _ in range(3):
        fleet.sweep()
    assert (fleet.watcher.watched.lag, fleet.watcher.watched.dropped) == ({}, {})


class Crowded(Fleet):
    """Many idle queues, and 30 that a consumer lags in, for ten minutes: more than there is room for."""

    def __init__(self) -> None:
        super().__init__()
        for queue in self.add(300, prefix="idle", ago=LONG):
            self.commit("a", queue)
        self.busy = self.add(30)
        self.register("a")
        for number, queue in enumerate(self.busy):
            self.commit("a", queue, 9 - number % 9 - 1)
        for _ in range(10):
            self.sweep()
        assert (self.lag, self.watcher.watched.dropped["a"].messages) == (9, 6)

    @property
    def lag(self) -> int:
        return self.watcher.watched.lag["a"]

    def lags(self, sweeps: int) -> list[int]:
        return [self.lag for _ in range(sweeps) if self.sweep()]


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Crowded:
    monkeypatch.setattr(watch, "MOST_LAGS", 10)
    monkeypatch.setattr("stream_sort.upkeep.activity_reader.ROWS_TO_CATCH_UP", 5)
    return Crowded()


def test_the_lag_is_gone_two_sweeps_after_more_queues_than_are_remembered_were_consumed(crowded: Crowded) -> None:
    for queue in crowded.busy:
        crowded.commit("a", queue)
    assert crowded.lags(3) == [6, 0, 0]
    assert crowded.watcher.watched.dropped == {}


def test_the_lag_is_true_again_after_the_worst_of_more_queues_than_are_remembered_were_consumed(
    crowded: Crowded,
) -> None:
    for number, queue in enumerate(crowded.busy):
        if number % 9 > 3:
            crowded.commit("a", queue)
    assert crowded.lags(30) == [6, *[4] * 29]


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), KeyError("a bug")], ids=repr)
def test_lags_that_could_not_be_compared_again_are_told_until_they_are(
    crowded: Crowded, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for queue in crowded.busy:
        crowded.commit("a", queue)
    assert crowded.lags(1) == [6]

    def fails(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(crowded.control.checkpoints, "of_queues", fails)
        assert crowded.lags(2) == [6, 6]
    assert crowded.lags(1) == [0]


def test_more_lags_than_can_be_compared_at_once_are_told_until_the_pass_is_through(
    crowded: Crowded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("lag_watch", "lag_finder"):
        monkeypatch.setattr(f"stream_sort.upkeep.{module}.MOST_COMPARED", 20)
    for queue in crowded.busy:
        crowded.commit("a", queue)
    lags = crowded.lags(200)
    assert (lags[:20], lags[-1]) == ([6] * 20, 0)


def test_a_listing_that_fails_for_one_consumer_stops_no_other(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add(1)
    fleet.register("a")
    fleet.register("b")
    read = type(fleet.control.checkpoints).parked

    def parked(store: Any, consumer: str, *args: Any) -> Any:
        if consumer == "a":
            raise ZeroDivisionError
        return read(store, consumer, *args)

    monkeypatch.setattr(type(fleet.control.checkpoints), "parked", parked)
    assert fleet.sweep().nudged == ["q000"]
    assert [name for name, _ in fleet.watcher.watched.failed] == ["a"]


def test_the_lags_of_a_consumer_whose_comparison_failed_are_told_once_it_works(fleet: Fleet) -> None:
    fleet.add(1, prefix="slow", ago=LONG)
    fleet.add(30, position=0, ago=LONG)
    fleet.register("a")
    fleet.commit("a", "slow000", 3, ago=LONG)
    for _ in range(10):
        fleet.sweep()
    assert fleet.watcher.watched.lag == {"a": 6}
    there = fleet.control.subscriptions._control.consumers
    there["a"] = replace(there["a"], start="yesterday")
    fleet.sweep()
    assert [name for name, _ in fleet.watcher.watched.failed] == ["a"]
    there["a"] = replace(there["a"], start="earliest")
    fleet.sweep()
    assert fleet.watcher.watched.lag == {"a": 6}


class Broken:
    """Checkpoints of some consumers that cannot be read."""

    def __init__(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, *consumers: str) -> None:
        self.consumers = set(consumers)
        self.error: Exception = KeyError("a bug")
        self._read = fleet.control.checkpoints.of_queues
        monkeypatch.setattr(fleet.control.checkpoints, "of_queues", self._checkpoints)

    def _checkpoints(self, consumer: str, queues: Any) -> Any:
        if consumer in self.consumers:
            raise self.error
        return self._read(consumer, queues)


@pytest.fixture
def busy(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Sweep a minute at a time, while more queues move than one look compares, but not in each minute."""
    for module in ("lag_watch", "lag_finder"):
        monkeypatch.setattr(f"stream_sort.upkeep.{module}.MOST_COMPARED", 60)

    def go_on(minutes: int) -> list[str]:
        nudged = []
        for minute in range(minutes):
            for queue in fleet.add(10, prefix=f"at{fleet.clock():.0f}-{minute}-"):
                fleet.commit("well", queue)
            nudged += fleet.sweep().nudged
        return nudged

    return go_on


def test_a_consumer_that_can_never_be_compared_keeps_no_other_one_asleep(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, busy: Callable[[int], list[str]]
) -> None:
    fleet.register("broken")
    fleet.register("well")
    Broken(fleet, monkeypatch, "broken")
    assert busy(30) == []
    (sleeps,) = fleet.add(1, prefix="sleeps")
    assert sleeps in busy(8)
    assert [name for name, _ in fleet.watcher.watched.failed] == ["broken"]
    assert (fleet.watcher.watched.whole, fleet.watcher.watched.left) == (False, 0)


def test_idle_queues_are_found_beside_a_consumer_that_can_never_be_compared(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fleet.add(30, ago=LONG)
    fleet.register("broken")
    fleet.register("well")
    Broken(fleet, monkeypatch, "broken")
    assert {queue for _ in range(10) for queue in fleet.sweep().nudged} == set(names)


def test_a_consumer_that_can_never_be_compared_costs_no_reads_of_what_others_are_done_with(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fleet.add(60, ago=5_400)
    fleet.register("broken")
    fleet.register("well")
    for queue in names:
        fleet.commit("well", queue, ago=5_400)
    Broken(fleet, monkeypatch, "broken")
    for _ in range(20):
        fleet.sweep()
    scanned: list[Any] = []
    named: list[str] = []
    rows, rows_of = fleet.tables.rows, fleet.tables.rows_of
    monkeypatch.setattr(fleet.tables, "rows", lambda *args: scanned.append(args) or rows(*args))
    monkeypatch.setattr(fleet.tables, "rows_of", lambda queues: named.extend(queues) or rows_of(queues))
    for _ in range(10):
        fleet.sweep()
    assert (scanned, len(named)) == ([], 10), "one at each look, to see whether it answers again"


def test_a_consumer_that_can_be_compared_again_is_woken_wherever_it_sleeps(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fleet.add(30, ago=LONG)
    for consumer in ("broken", "well"):
        fleet.register(consumer)
        for queue in names:
            fleet.commit(consumer, queue, ago=LONG)
    for _ in range(10):
        assert fleet.sweep().nudged == []
    broken = Broken(fleet, monkeypatch, "broken")
    for queue in names:
        fleet.release(queue)
        fleet.commit("well", queue)
    for _ in range(200):
        assert fleet.sweep().nudged == []
    broken.consumers = set()
    assert {queue for _ in range(9) for queue in fleet.sweep().nudged} == set(names)
    assert fleet.watcher.watched.lag == {"broken": 1}


def test_what_moved_while_no_consumer_could_be_compared_is_compared_afterwards(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.add(300, prefix="idle", ago=LONG)
    for consumer in ("one", "other"):
        fleet.register(consumer, start="300")
    for _ in range(70):
        fleet.sweep()
    broken = Broken(fleet, monkeypatch, "one", "other")
    broken.error = StoreUnavailable("throttled")
    (sleeps,) = fleet.add(1, position=301)
    for _ in range(200):
        assert fleet.sweep().nudged == []
    broken.consumers = set()
    assert fleet.sweep().nudged == [sleeps]


def test_a_new_consumer_whose_first_comparison_fails_is_woken_in_idle_queues_all_the_same(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fleet.add(30, ago=LONG)
    fleet.register("old")
    for queue in names:
        fleet.commit("old", queue, ago=LONG)
    for _ in range(10):
        fleet.sweep()
    fleet.register("new")
    read, failures = type(fleet.control.checkpoints).of_queues, iter([True])

    def checkpoints(store: Any, consumer: str, queues: Any) -> Any:
        if consumer == "new" and next(failures, False):
            raise StoreUnavailable("throttled")
        return read(store, consumer, queues)

    monkeypatch.setattr(type(fleet.control.checkpoints), "of_queues", checkpoints)
    found: set[str] = set()
    for _ in range(8):
        found |= {*fleet.sweep().nudged}
    assert found == set(names)


def test_a_nudge_that_failed_is_tried_again_by_the_next_sweep(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.add(1)
    fleet.register("a")

    def fail(*_: Any) -> None:
        raise StoreUnavailable("throttled")

    monkeypatch.setattr(type(fleet.tables), "nudge", fail)
    for _ in range(24):
        assert [queue for queue, _ in fleet.sweep().failed] == ["q000"]
    monkeypatch.undo()
    assert fleet.sweep().nudged == ["q000"]
    assert fleet.sweep(0.5).nudged == []


def test_a_nudge_for_which_there_was_no_time_is_the_next_sweeps(fleet: Fleet) -> None:
    fleet.add(1)
    fleet.register("a")
    answers = iter([100.0])
    assert fleet.sweep(time_left=lambda: next(answers, 1.0)).nudged == []
    assert fleet.sweep(0.5).nudged == ["q000"]


def test_a_consumer_whose_first_checkpoints_are_being_set_lags_behind_nothing(fleet: Fleet) -> None:
    names = fleet.add(10, 50_000, ago=LONG)
    fleet.register("late", start="latest", ready=False)
    for _ in range(3):
        assert fleet.sweep().nudged == []
        assert fleet.watcher.watched.lag == {}
    for queue in names:
        fleet.commit("late", queue, 49_999, ago=LONG)
    fleet.control.subscriptions.make_ready(fleet.control.subscriptions.consumers()[0])
    found: set[str] = set()
    for _ in range(4):
        found |= {*fleet.sweep().nudged}
    assert (found, fleet.watcher.watched.lag) == (set(names), {"late": 1})


def test_a_look_without_time_for_all_goes_on_where_the_last_one_ended(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = fleet.add(40)
    for number, queue in enumerate(names):
        row = fleet.row(queue)
        fleet.tables._tables.cursors[queue] = replace(row, moved_at=fleet.clock() + number)
        fleet.commit("a", queue, ago=600)
    fleet.register("a")
    for _ in range(3):
        fleet.sweep()
    for number, queue in enumerate(names):
        fleet.release(queue, ago=60 - number)
    monkeypatch.setattr("stream_sort.upkeep.lag_finder.PART", 4)
    found: set[str] = set()
    for turn in range(15):
        answers = iter([100.0])
        found |= {*fleet.sweep(time_left=lambda answers=answers: next(answers, 29.0)).nudged}
        assert turn or (0 < len(found) < len(names) and fleet.watcher.watched.left > 0)
    assert found == set(names)
    assert fleet.watcher.watched.left == 0


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("minutes", [1, 5, 15])
def test_parked_queues_beyond_the_bound_are_nudged_once_an_hour_however_often_sweeps_come(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    for module in ("lag_watch", "lag_finder"):
        monkeypatch.setattr(f"stream_sort.upkeep.{module}.MOST_LAGS", 10, raising=False)
    names = fleet.add(60, ago=LONG)
    fleet.register("a")
    for number, queue in enumerate(names):
        fleet.park("a", queue, fleet.clock() + number)
    counts = dict.fromkeys(names[10:], 0)
    for _ in range(6 * 60 // minutes):
        for queue in fleet.sweep(minutes).nudged:
            if queue in counts:
                counts[queue] += 1
    assert all(6 <= count <= 11 for count in counts.values()), counts


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("lost", [None, 30])
def test_a_parked_queue_that_cannot_be_nudged_makes_no_storm_of_nudges_of_the_others(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, lost: int | None
) -> None:
    for module in ("lag_watch", "lag_finder"):
        monkeypatch.setattr(f"stream_sort.upkeep.{module}.MOST_LAGS", 10, raising=False)
    monkeypatch.setattr("stream_sort.upkeep.activity_reader.ROWS_TO_CATCH_UP", 10)
    names = fleet.add(200, ago=LONG)
    fleet.register("a")
    for number, queue in enumerate(names):
        fleet.park("a", queue, fleet.clock() + number / 10)
    if lost is not None:
        del fleet.tables._tables.cursors[names[lost]]
    counts = Counter(queue for _ in range(6 * 60) for queue in fleet.sweep().nudged)
    assert all(6 <= counts[queue] <= 11 for number, queue in enumerate(names[10:], 10) if number != lost), counts


STRANGE: list[dict[str, Any]] = [
    {"since": "x"},
    {"consumers": [1]},
    {"lags": {"a": {"q000": [1, 2, "x"]}}},
    {"lags": {"a": {"q000": ["1", None, 0.0]}}},
    {"began": "y"},
    {"since": 1.0, "place": {"foo": 1}, "total": 100_000},
    {"dropped": {"a": [1]}},
    {"dropped": {"a": [1, "2", 3]}},
    {"seen": None},
    {"overdue_until": []},
    {"failing": ["a"]},
    {"failing": {"a": 1}},
]


@pytest.mark.parametrize("strange", STRANGE)
def test_a_bookmark_of_wrong_types_stops_no_look(fleet: Fleet, strange: dict[str, Any]) -> None:
    fleet.add(1)
    fleet.register("a")
    fleet.control.subscriptions.set_bookmark(watch.WatchState().kept() | {"consumers": ["a"]} | strange)
    done = fleet.sweep()
    assert (done.nudged, done.watch_error) == (["q000"], None)
    assert fleet.sweep(0.5).watch_error is None
