"""The watcher finds consumers that sleep, and measures how far behind they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stream_sort import InternalError, OrderedConsumer, Pace, Parked, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.model.consumption import Subscription, Wake
from stream_sort.model.retries import ENDED
from stream_sort.model.watch import WatchState
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep import activity_reader, lag_finder
from stream_sort.upkeep.lag_watch import PATIENCE, LagWatch


def look(watcher: LagWatch, now: float) -> list[str]:
    """Look once, as a sweep does whose nudges all go out."""
    found = watcher.lagging(now)
    watcher.were_nudged(found)
    return found


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
        self.watcher = LagWatch(self.control.subscriptions, self.control.checkpoints, self.sorter.stores.cursors)

    def _handle(self, batch: Any) -> None:  # noqa: ARG002  # a handler takes a batch
        if self.fails:
            raise ValueError("no")

    def put(self, queue: str, *seqs: int) -> None:
        self.sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)

    def lagging(self) -> list[str]:
        return look(self.watcher, self.clock())


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
    stage.clock.move(4.5)
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
        stage.consumer.catch_up("q", force=True)
    stage.clock.move(10_000)
    assert stage.lagging() == []
    assert stage.watcher.watched.parked == {"billing": 1}


def test_the_lag_of_a_queue_that_moves_no_more_is_told_at_every_sweep_until_it_is_gone(stage: Stage) -> None:
    stage.put("other", 0)
    stage.consumer.catch_up("other")
    stage.put("q", *range(40))
    for _ in range(300):
        stage.clock.move(60)
        stage.lagging()
        assert stage.watcher.watched.lag == {"billing": 40}
    stage.consumer.catch_up("q")
    stage.lagging()
    assert stage.watcher.watched.lag == {}


def test_the_lag_of_a_parked_queue_is_told_at_every_sweep(stage: Stage) -> None:
    stage.put("q", *range(5))
    stage.fails = True
    for _ in range(3):
        stage.consumer.catch_up("q")
        stage.clock.move(1_000)
    for _ in range(150):
        stage.clock.move(60)
        assert stage.lagging() == []
        assert stage.watcher.watched.lag == {"billing": 5}


def test_a_consumer_that_does_not_run_causes_no_nudge_storm(stage: Stage) -> None:
    stage.put("known", 0)
    stage.consumer.catch_up("known")
    for number in range(200):
        stage.put(f"q{number}", 0, 1)
    by_hour = []
    for _ in range(4):
        nudged = 0
        for _ in range(60):
            stage.clock.move(60)
            nudged += len(Sweeper(stage.sorter, lagging=stage.watcher).sweep().nudged)
        by_hour.append(nudged)
    assert by_hour[0] <= 4 * 200
    assert max(by_hour[1:]) <= 200
    assert min(by_hour) > 0, "it may come back"


def test_queues_that_go_on_moving_cause_no_nudge_storm_for_a_consumer_that_does_not_run(stage: Stage) -> None:
    stage.put("known", 0)
    stage.consumer.catch_up("known")
    nudged = 0
    for minute in range(240):
        if minute % 2 == 0:
            stage.sorter.put_many({"queue": f"q{number}", "seq": minute // 2} for number in range(20))
        stage.clock.move(60)
        nudged += len(Sweeper(stage.sorter, lagging=stage.watcher).sweep().nudged)
    assert nudged <= 20 * 8


def test_parked_queues_of_a_consumer_that_does_not_run_cause_no_nudge_storm(stage: Stage) -> None:
    stage.fails = True
    for number in range(20):
        stage.put(f"q{number}", 0)
        stage.consumer.catch_up(f"q{number}")
    nudged = 0
    for _ in range(180):
        stage.clock.move(60)
        nudged += len(Sweeper(stage.sorter, lagging=stage.watcher).sweep().nudged)
    assert 20 * 4 <= nudged <= 20 * 7


def test_a_consumer_that_moves_on_is_nudged_at_once_when_it_sleeps_again(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    for seq in range(1, 6):
        stage.put("q", seq)
        stage.clock.move(60)
        assert stage.lagging() == ["q"]
        stage.clock.move(30)
        assert stage.lagging() == []
        stage.consumer.catch_up("q")


def test_a_consumer_beside_one_that_does_not_run_is_nudged_at_once(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    OrderedConsumer("dead", lambda _: None, sorter=stage.sorter).catch_up("other")
    for _ in range(90):
        stage.clock.move(60)
        stage.lagging()
    assert stage.watcher.watched.lag == {"dead": 1}
    stage.put("q", 1)
    stage.clock.move(60)
    assert stage.lagging() == ["q"]


def test_a_nudge_of_an_operator_is_not_held_back(stage: Stage) -> None:
    stage.put("known", 0)
    stage.consumer.catch_up("known")
    stage.put("q", 0)
    stage.clock.move(60)
    before = stage.sorter.stores.cursors.get("q")
    assert Sweeper(stage.sorter, lagging=stage.watcher).sweep().nudged == ["q"]
    stage.sorter.nudge("q")
    after = stage.sorter.stores.cursors.get("q")
    assert before is not None
    assert after is not None
    assert after.nudges == before.nudges + 2


def test_an_idle_queue_that_is_set_back_is_looked_at_again(stage: Stage) -> None:
    for number in range(30):
        stage.put(f"q{number}", 0, 1)
        stage.consumer.catch_up(f"q{number}")
    watcher = LagWatch(
        stage.control.subscriptions, stage.control.checkpoints, stage.sorter.stores.cursors, rows_a_look=5
    )
    for _ in range(200):
        stage.clock.move(60)
        look(watcher, stage.clock())
    stage.consumer.reset("earliest", queues=["q7"])
    stage.clock.move(60)
    assert look(watcher, stage.clock()) == ["q7"]


def test_a_consumer_that_is_new_is_woken_in_idle_queues_too(stage: Stage) -> None:
    for number in range(30):
        stage.put(f"q{number}", 0, 1)
        stage.consumer.catch_up(f"q{number}")
    watcher = LagWatch(
        stage.control.subscriptions, stage.control.checkpoints, stage.sorter.stores.cursors, rows_a_look=5
    )
    for _ in range(200):
        stage.clock.move(60)
        assert look(watcher, stage.clock()) == []
    OrderedConsumer("new", lambda _: None, sorter=stage.sorter).catch_up("q0")
    found: set[str] = set()
    for _ in range(7):
        stage.clock.move(60)
        found |= {*look(watcher, stage.clock())}
    assert found == {f"q{number}" for number in range(1, 30)}


def test_a_sweep_nudges_the_queues_of_sleeping_consumers(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    stage.put("q", 1)
    stage.clock.move(PATIENCE)
    done = Sweeper(stage.sorter, lagging=stage.watcher).sweep()
    assert done.nudged == ["q"]


def test_consumers_behind_a_row_that_was_put_back_are_woken(stage: Stage) -> None:
    for number in range(30):
        stage.put(f"q{number}", 0, 1)
        stage.consumer.catch_up(f"q{number}")
    other = OrderedConsumer("other", lambda _: None, sorter=stage.sorter)
    for number in range(30):
        other.catch_up(f"q{number}")
    stage.put("q7", 2)
    stage.consumer.catch_up("q7")
    watcher = LagWatch(
        stage.control.subscriptions, stage.control.checkpoints, stage.sorter.stores.cursors, rows_a_look=5
    )
    for _ in range(9):
        stage.clock.move(60)
        look(watcher, stage.clock())
    tables: Any = stage.sorter.stores.cursors
    row = tables._tables.cursors.pop("q7")
    for _ in range(9):
        stage.clock.move(60)
        look(watcher, stage.clock())
    assert stage.sorter.recover("q7", control_table="Control").position == row.position
    stage.clock.move(60)
    assert look(watcher, stage.clock()) == ["q7"]


class WithoutIndex:
    """Cursor rows of a table that has no index of active queues; and which queues were compared."""

    def __init__(self, sorter: StreamSorter) -> None:
        self._cursors = sorter.stores.cursors

    def active(self, since: float, start: Any = None) -> None:
        """There is none."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursors, name)


def test_without_the_index_a_look_goes_through_some_queues_and_the_next_one_goes_on_from_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_reader, "ROWS_WITHOUT_INDEX", 2)
    for queue in "abcde":
        stage.put(queue, 0)
    stage.consumer.catch_up("a")
    stage.clock.move(PATIENCE)
    watcher = LagWatch(
        stage.control.subscriptions, stage.control.checkpoints, WithoutIndex(stage.sorter), rows_a_look=2
    )  # type: ignore[arg-type]  # a part of it
    found = []
    for _ in range(4):
        found.append(look(watcher, stage.clock()))
        stage.clock.move(1)
    assert found == [["b"], ["c", "d"], ["e"], []]
    assert watcher.watched.lag == {"billing": 1}


def test_what_fails_for_one_consumer_stops_no_other(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    OrderedConsumer("aaa", lambda _: None, sorter=stage.sorter).catch_up("q")
    stage.put("q", 0)
    stage.consumer.catch_up("other")
    stage.clock.move(60)
    read = stage.control.checkpoints.of_queues

    def checkpoints(consumer: str, queues: Any) -> Any:
        if consumer == "aaa":
            raise ZeroDivisionError
        return read(consumer, queues)

    monkeypatch.setattr(type(stage.control.checkpoints), "of_queues", lambda _, *args: checkpoints(*args))
    assert stage.lagging() == ["q"]
    assert [name for name, _ in stage.watcher.watched.failed] == ["aaa"]
    assert not stage.watcher.watched.whole
    assert Sweeper(stage.sorter, lagging=stage.watcher).sweep().watch_error is stage.watcher.problem is not None
    monkeypatch.undo()
    assert stage.lagging() == ["q"]
    assert stage.watcher.watched.lag == {"aaa": 1, "billing": 1}


def test_a_bug_in_the_comparison_of_one_queue_stops_the_wakes_of_no_other_queue(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put("a", 0)
    stage.consumer.catch_up("a")
    for queue in "abc":
        stage.put(queue, 0, 1)

    def due_since(row: Any, *there: Any) -> float | None:
        if row.queue == "b":
            raise ZeroDivisionError
        return real(row, *there)

    real = lag_finder._due_since
    with monkeypatch.context() as broken:
        broken.setattr(lag_finder, "_due_since", due_since)
        for nudged in (["a", "c"], []):
            stage.clock.move(60 if nudged else 1)
            done = Sweeper(stage.sorter, lagging=stage.watcher).sweep()
            assert sorted(done.nudged) == nudged
            assert [(queue, type(error)) for queue, error in done.failed] == [("b", InternalError)]
            assert (done.watch_error, stage.watcher.watched.whole) == (None, True)
    assert stage.lagging() == ["b"], "it is looked at again at every look"


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_a_start_that_is_none_stops_the_wakes_of_no_other_consumer(stage: Stage, name: str) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("other")
    stage.control.subscriptions.register(Subscription(name, "yesterday", stage.clock()))
    stage.clock.move(60)
    done = Sweeper(stage.sorter, lagging=stage.watcher).sweep()
    assert done.nudged == ["q"]
    assert (done.watch_error, stage.watcher.watched.whole) == (stage.watcher.problem, False)
    assert [one for one, _ in stage.watcher.watched.failed] == [name]
    assert stage.watcher.watched.lag == {"billing": 1}


def test_a_watch_that_cannot_be_kept_wakes_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("other")
    stage.clock.move(60)

    def fail(*_: Any) -> None:
        raise StoreUnavailable("no")

    monkeypatch.setattr(type(stage.control.subscriptions), "set_bookmark", fail)
    assert stage.lagging() == ["q"]
    assert [name for name, _ in stage.watcher.watched.failed] == ["(all)"]
    assert stage.watcher.watched.whole, "all lags were seen"


def test_a_watch_that_cannot_be_kept_causes_no_nudge_storm(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put("known", 0)
    stage.consumer.catch_up("known")
    for number in range(20):
        stage.put(f"q{number}", 0, 1)

    def fail(*_: Any) -> None:
        raise StoreUnavailable("no")

    with monkeypatch.context() as broken:
        broken.setattr(type(stage.control.subscriptions), "set_bookmark", fail)
        by_hour = []
        for _ in range(3):
            nudged = 0
            for _ in range(60):
                stage.clock.move(60)
                nudged += len(Sweeper(stage.sorter, lagging=stage.watcher).sweep().nudged)
            by_hour.append(nudged)
    assert by_hour[0] <= 4 * 20
    assert max(by_hour[1:]) <= 20
    stage.clock.move(60)
    stage.lagging()
    assert stage.control.subscriptions.bookmark()["lags"], "it is kept as soon as it can be"


def test_what_another_process_kept_counts_more_than_what_this_one_could_not_keep(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("other")
    stage.clock.move(60)

    def fail(*_: Any) -> None:
        raise StoreUnavailable("no")

    with monkeypatch.context() as broken:
        broken.setattr(type(stage.control.subscriptions), "set_bookmark", fail)
        assert [stage.lagging(), stage.lagging()] == [["q"], []]
    stage.control.subscriptions.set_bookmark(WatchState(consumers=("billing",)).kept())
    assert stage.lagging() == ["q"]


@pytest.mark.parametrize("kept", [{"queue": {"S": "q"}}, 7, "x", {"lags": {}, "more": 1}, {"lags": 5, "consumers": []}])
def test_what_another_version_kept_is_as_nothing(kept: Any, stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("other")
    stage.clock.move(60)
    stage.control.subscriptions.set_bookmark(kept)
    assert stage.lagging() == ["q"]


def test_a_queue_that_is_parked_as_a_precaution_is_counted_only_when_somebody_died(stage: Stage) -> None:
    stage.put("q", 0)
    stage.consumer.catch_up("q")
    row = stage.control.checkpoints.of_queues("billing", ["q"]).whole()["q"]
    for attempts, later, counted in ((1, 10, 0), (1, 0, 1), (2, 10, 0), (3, 10, 1)):
        parked = Parked("q", 1, ENDED, attempts, stage.clock(), stage.clock() + later)
        new = replace(row, version=row.version + 1, parked=parked)
        assert stage.control.checkpoints.commit(row, new).won
        row = new
        stage.lagging()
        assert stage.watcher.watched.parked["billing"] == counted
