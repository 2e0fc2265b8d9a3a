from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InternalError, InvalidInput, InvalidQueue, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.model.gaps import Gap
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival, QueuePage, Tombstones
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import beside, forget_arrival

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.records import Cursor


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sorter(clock: MovableClock) -> StreamSorter:
    return StreamSorter.in_memory(clock=clock)


def row(sorter: StreamSorter, queue: str = "q") -> Cursor:
    found = sorter.stores.cursors.get(queue)
    assert found is not None
    return found


def put(sorter: StreamSorter, *seqs: int, queue: str = "q") -> None:
    for seq in seqs:
        sorter.put({"queue": queue, "seq": seq})


def test_a_queue_waits_for_ever_by_default(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, 0, 2)
    clock.move(10**9)
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.skipped, sorter.position("q")) == (["q"], [], 0)


def test_a_gap_is_skipped_when_its_time_has_come_and_not_before(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 3)
    clock.move(29)
    assert Sweeper(sorter).sweep().skipped == []
    clock.move(1)
    done = Sweeper(sorter).sweep()
    assert [(gap.queue, gap.seqs) for gap in done.skipped] == [("q", range(1, 3))]
    assert [advance.new for advance in done.advanced] == [3]
    assert sorter.explain("q").skipped == [1, 2]


def test_the_policy_of_the_sorter_holds_where_a_queue_has_none(clock: MovableClock) -> None:
    sorter = StreamSorter.in_memory(clock=clock, gap_policy="skip after 5 seconds")
    put(sorter, 1)
    put(sorter, 1, queue="patient")
    sorter.set_policy("patient", "wait")
    clock.move(5)
    done = Sweeper(sorter).sweep()
    assert ([gap.queue for gap in done.skipped], done.waiting) == (["q"], ["patient"])


def test_a_move_to_another_gap_does_not_make_that_one_younger(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 2, 4)
    clock.move(28)
    put(sorter, 1)
    clock.move(1)
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.skipped) == (["q"], [])
    clock.move(1)
    assert [gap.seqs for gap in Sweeper(sorter).sweep().skipped] == [range(3, 4)]


def test_a_gap_that_opens_while_the_mark_of_an_earlier_one_stands_has_its_own_clock(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 2, 1)
    clock.move(40)
    opened = clock()
    put(sorter, 4)
    assert sorter.explain("q").waiting_since == opened
    clock.move(29)
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.skipped, done.gap_ages) == (["q"], [], {"q": 29.0})
    assert row(sorter).gap == Gap(range(3, 4), opened)
    clock.move(1)
    assert [gap.seqs for gap in Sweeper(sorter).sweep().skipped] == [range(3, 4)]


def test_a_gap_before_what_others_wrote_is_as_old_as_the_sweep_that_first_saw_it(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 2, 1, 4)
    forget_arrival(sorter, 4)
    clock.move(40)
    assert Sweeper(sorter).sweep().skipped == []
    clock.move(30)
    assert [gap.seqs for gap in Sweeper(sorter).sweep().skipped] == [range(3, 4)]


def test_every_gap_that_is_due_is_skipped_at_once_and_each_has_its_own_clock(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 1, 3)
    clock.move(10)
    put(sorter, 5)
    clock.move(20)
    assert [gap.seqs for gap in Sweeper(sorter).sweep().skipped] == [range(1), range(2, 3)]
    assert Sweeper(sorter).sweep().skipped == []
    clock.move(10)
    assert [gap.seqs for gap in Sweeper(sorter).sweep().skipped] == [range(4, 5)]
    assert sorter.position("q") == 5


def test_the_mark_costs_one_write_for_many_messages_and_is_cleared_by_the_sweep(sorter: StreamSorter) -> None:
    put(sorter, 0)
    assert row(sorter).waiting_since is None
    put(sorter, 2)
    since = row(sorter).waiting_since
    assert since is not None
    put(sorter, 4, 6, 8, 1, 3)
    assert row(sorter).waiting_since == since
    put(sorter, 5, 7)
    assert row(sorter).waiting_since == since
    Sweeper(sorter).sweep()
    assert row(sorter).waiting_since is None


def test_a_sweep_notes_the_present_gap_and_leaves_the_mark(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, 1, 3)
    began = clock()
    mark = row(sorter).waiting_since
    clock.move(10)
    put(sorter, 0)
    Sweeper(sorter).sweep()
    assert (row(sorter).waiting_since, row(sorter).gap) == (mark, Gap(range(2, 3), began))
    assert (row(sorter).gap_since, row(sorter).in_doubt) == (began, False)
    assert sorter.explain("q").waiting_since == began


def test_a_gap_is_not_as_old_as_a_mark_that_another_clock_set(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, 0)
    put(beside(sorter, clock=MovableClock(clock() + 2)), 2)
    clock.move(1)
    put(sorter, 1)
    assert row(sorter).moved_at < row(sorter).waiting_since
    clock.move(4_000)
    put(sorter, 4)
    clock.move(1)
    assert Sweeper(sorter).sweep().skipped == []


def test_a_gap_is_not_as_old_as_a_mark_that_had_to_be_another_than_the_last(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, 0, 2, 1)
    Sweeper(sorter).sweep()
    put(sorter, 4, 3)
    clock.move(4_000)
    put(sorter, 6)
    clock.move(1)
    assert Sweeper(sorter).sweep().skipped == []


def test_a_queue_whose_writer_has_a_clock_ahead_is_still_swept(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    ahead = beside(sorter, clock=MovableClock(clock() + 3_600))
    put(sorter, 0, 2)
    put(sorter, 1)
    put(ahead, 4)
    for _ in range(3):
        clock.move(60)
        assert Sweeper(sorter).sweep().looked_at == 1


def test_a_queue_that_was_once_marked_by_a_clock_a_day_ahead_is_swept_and_counted(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(beside(sorter, clock=MovableClock(clock() + 86_400)), 1)
    Sweeper(sorter).sweep_all()
    put(sorter, 0)
    Sweeper(sorter).sweep_all()
    Sweeper(sorter).sweep_all()
    assert row(sorter).waiting_since is None
    clock.move(100)
    put(sorter, 5)
    clock.move(20)
    assert Sweeper(sorter).sweep().waiting == ["q"]
    clock.move(20)
    assert [event.seqs for event in Sweeper(sorter).sweep().skipped] == [range(2, 5)]


def test_a_queue_that_is_marked_anew_while_queues_are_listed_is_looked_at_once(sorter: StreamSorter) -> None:
    put(sorter, 0, 2)
    sorter.stores.cursors.waiting = pages("q", "q")  # type: ignore[method-assign]
    assert Sweeper(sorter).sweep().looked_at == 1


def test_i8_a_marked_queue_whose_writer_died_is_freed(sorter: StreamSorter) -> None:
    put(sorter, 0, 2)
    sorter.stores.items.skip(Tombstones("q", (1,), "a writer stored this and died", None), 0.0)
    done = Sweeper(sorter).sweep()
    assert ([advance.new for advance in done.advanced], sorter.position("q")) == ([2], 2)


def test_i8_an_unmarked_queue_whose_writer_died_is_freed_by_a_sweep_of_all(sorter: StreamSorter) -> None:
    put(sorter, 0)
    sorter.stores.items.skip(Tombstones("q", (1,), "a writer stored this and died", None), 0.0)
    assert Sweeper(sorter).sweep().looked_at == 0
    assert [advance.new for advance in Sweeper(sorter).sweep_all().advanced] == [1]


def test_a_writer_that_relied_on_the_mark_just_before_it_was_cleared_is_not_forgotten(sorter: StreamSorter) -> None:
    put(sorter, 0, 2, 1)
    clear = sorter.stores.cursors.set_waiting

    def late_clear(cursor: Cursor, since: float | None) -> bool:
        if since is None or since < 0:
            put(sorter, 4)
        return clear(cursor, since)

    sorter.stores.cursors.set_waiting = late_clear  # type: ignore[method-assign]
    Sweeper(sorter).sweep()
    assert row(sorter).waiting_since is not None


def test_every_page_of_waiting_queues_is_swept(sorter: StreamSorter) -> None:
    for queue in "abc":
        put(sorter, 1, queue=queue)
    sorter.stores.cursors.waiting = pages("a", "b", "c")  # type: ignore[method-assign]
    sorter.stores.cursors.queues = pages("c", "a")  # type: ignore[method-assign]
    assert Sweeper(sorter).sweep().waiting == ["a", "b", "c"]
    assert Sweeper(sorter).sweep_all().waiting == ["c", "a"]


def pages(*queues: str) -> Any:
    def listing(*args: Any) -> QueuePage:
        at = args[-1] if args and isinstance(args[-1], int) else 0
        return QueuePage((queues[at],), at + 1 if at + 1 < len(queues) else None)

    return listing


def test_a_gap_too_long_to_fill_is_reported_and_left(sorter: StreamSorter) -> None:
    sorter.set_policy("q", skip_after=0)
    put(sorter, 0, 10**15)
    done = Sweeper(sorter, max_gap=100).sweep()
    assert (done.skipped, [gap.seqs for gap in done.too_long]) == ([], [range(1, 10**15)])


def test_i7_a_failing_queue_stops_no_other(sorter: StreamSorter) -> None:
    put(sorter, 1, queue="bad")
    put(sorter, 1, queue="good")
    sorter.stores.items.skip(Tombstones("good", (0,), "by other means", None), 0.0)
    look = sorter.stores.items.look

    def failing(queue: str, after: int, limit: int) -> Any:
        if queue == "bad":
            raise StoreUnavailable("throttled", table="Items", operation="Query")
        return look(queue, after, limit)

    sorter.stores.items.look = failing  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep()
    assert ([queue for queue, _ in done.failed], sorter.position("good")) == (["bad"], 1)


class Sleepers:
    def __init__(self, *queues: str) -> None:
        self.queues = queues

    def lagging(self, now: float) -> tuple[str, ...]:  # noqa: ARG002  # the port's signature
        return self.queues


def test_queues_of_lagging_consumers_are_nudged(sorter: StreamSorter) -> None:
    put(sorter, 0)
    done = Sweeper(sorter, lagging=Sleepers("q", "unknown")).sweep()
    assert (done.nudged, [queue for queue, _ in done.failed]) == (["q"], ["unknown"])
    assert row(sorter).nudges == 1


def test_a_mark_set_anew_while_the_clock_stands_is_another_one_and_is_swept(sorter: StreamSorter) -> None:
    put(sorter, 0, 2, 1)
    marks = [row(sorter).last_mark]
    for seq in (4, 3):
        Sweeper(sorter).sweep()
        marks.append(row(sorter).last_mark)
        put(sorter, seq)
        marks.append(row(sorter).last_mark)
    changed = [mark for mark, before in zip(marks[1:], marks, strict=False) if mark != before]
    assert len({abs(mark or 0.0) for mark in marks}) == len(changed) + 1
    put(sorter, 6)
    assert Sweeper(sorter).sweep().waiting == ["q"]


@pytest.mark.parametrize("given", [{"max_gap": "x"}, {"max_gap": -1}, {"lagging": 5}, {"on_gap": 5}], ids=str)
def test_a_sweeper_that_cannot_work_is_refused(sorter: StreamSorter, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        Sweeper(sorter, **given)
    with pytest.raises(InvalidInput, match="looks after a sorter"):
        Sweeper(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [{"now": "x"}, {"now": float("nan")}, {"now": float("inf")}, {"now": 1e60}, {"queues": 5}, {"queues": "ada"}],
)
def test_i9_a_sweep_refuses_what_is_no_time_and_no_list_of_queues(sorter: StreamSorter, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        Sweeper(sorter).sweep(**given)


def test_i9_a_name_that_is_none_fails_alone_in_a_sweep(sorter: StreamSorter) -> None:
    put(sorter, 1)
    done = Sweeper(sorter).sweep(queues=[None, "q"])  # type: ignore[list-item]
    assert ([type(error) for _, error in done.failed], done.waiting) == ([InvalidQueue], ["q"])


def no_rows(queues: Any) -> Any:
    raise StoreUnavailable(f"no rows of {len(queues)}")


class Countdown:
    """A second passes at each question; `asked` counts them."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        self.left -= 1
        return self.left


def test_a_sweep_asks_for_the_time_before_each_queue_and_the_next_one_begins_elsewhere() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    queues = [f"q{number}" for number in range(200)]
    sorter.put_many({"queue": queue, "seq": 1} for queue in queues)
    # Then each queue is visited, whatever is known of it.
    sorter.stores.cursors.rows_of = no_rows  # type: ignore[method-assign]
    seen: set[str] = set()
    for _ in range(200):
        clock.move(61)
        done = Sweeper(sorter).sweep(time_left=Countdown(21))
        assert not done.complete
        assert done.looked_at == 10, "half of the time is for waking"
        seen |= {gap.queue for gap in done.found}
    assert seen == set(queues)


def test_a_queue_with_gaps_without_end_does_not_use_up_the_time_of_a_sweep() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1, gap_policy="skip after 10 seconds")
    sorter.put_many({"queue": "q", "seq": seq} for seq in range(1, 20_000, 2))
    clock.move(10)
    done = Sweeper(sorter, lagging=Sleepers("q")).sweep(time_left=Countdown(21))
    assert (done.complete, done.nudged, done.waiting) == (False, ["q"], ["q"])
    assert 0 < len(done.skipped) < 10_000
    assert sorter.position("q") > 1
    for _ in range(10):
        Sweeper(sorter).sweep(time_left=Countdown(21))
    assert sorter.position("q") == 19_999


def test_a_long_backlog_does_not_use_up_the_time_of_a_sweep() -> None:
    sorter = StreamSorter.in_memory(in_flight=1, max_advance=10, gap_policy="skip after 0 seconds")
    sorter.put_many({"queue": "q", "seq": seq} for seq in (*range(1, 1_000), 1_001))
    assert sorter.stores.items.put(Arrival(check_message({"queue": "q", "seq": 0}, KeyNames()), -1), 0.0) is None
    done = Sweeper(sorter, lagging=Sleepers("q")).sweep(time_left=Countdown(21))
    assert (done.complete, done.nudged, done.waiting, done.skipped) == (False, ["q"], ["q"], [])
    assert 0 < sorter.position("q") < 500
    for _ in range(20):
        done = Sweeper(sorter).sweep(time_left=Countdown(21))
    assert (sorter.position("q"), done.complete) == (1_001, True)


def test_a_sweep_nudges_no_longer_than_its_time_lasts_and_the_next_one_begins_elsewhere() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    queues = [f"q{number}" for number in range(200)]
    sorter.put_many({"queue": queue, "seq": 0} for queue in queues)

    seen: set[str] = set()
    for _ in range(100):
        clock.move(61)
        done = Sweeper(sorter, lagging=Sleepers(*queues)).sweep(time_left=Countdown(21))
        assert (len(done.nudged), done.complete) == (18, False), "a tenth of the time is for telling"
        seen |= set(done.nudged)
    assert seen == set(queues)


def test_a_sweep_that_has_the_time_nudges_all_and_is_complete(sorter: StreamSorter) -> None:
    queues = [f"q{number}" for number in range(200)]
    sorter.put_many({"queue": queue, "seq": 0} for queue in queues)

    for time_left in (lambda: 10.0, None):
        done = Sweeper(sorter, lagging=Sleepers(*queues)).sweep(time_left=time_left)
        assert (sorted(done.nudged), done.complete) == (sorted(queues), True)


def test_a_sweep_tells_how_long_each_queue_has_been_held_up() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock)
    assert Sweeper(sorter).sweep().oldest_gap == 0
    sorter.put({"queue": "old", "seq": 1})
    clock.move(30)
    sorter.put({"queue": "new", "seq": 1})
    clock.move(5)
    done = Sweeper(sorter).sweep()
    assert done.gap_ages == {"old": 35, "new": 5}
    assert done.oldest_gap == 35
    assert done.complete


def test_a_queue_that_can_neither_be_looked_at_nor_nudged_failed_once(sorter: StreamSorter) -> None:
    put(sorter, 1)
    broken(sorter, "q", "look", StoreUnavailable("throttled"))

    def failing(*_: Any) -> Any:
        raise StoreUnavailable("throttled")

    sorter.stores.cursors.nudge = failing  # type: ignore[method-assign]
    assert [queue for queue, _ in Sweeper(sorter, lagging=Sleepers("q")).sweep().failed] == ["q"]


class BrokenWatcher:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def lagging(self, now: float) -> Any:  # noqa: ARG002  # the port's signature
        yield "q"
        raise self.error


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), ZeroDivisionError("a bug")], ids=repr)
def test_i7_a_watcher_that_fails_loses_nothing_of_what_the_sweep_did(error: Exception) -> None:
    sorter = StreamSorter.in_memory(gap_policy="skip after 0 seconds")
    sorter.put({"queue": "q", "seq": 1})
    done = Sweeper(sorter, lagging=BrokenWatcher(error)).sweep()
    assert (sorter.position("q"), len(done.skipped), done.failed) == (1, 1, [])
    assert done.watch_error is not None
    assert error in (done.watch_error, done.watch_error.__cause__)


class Bug(Exception):
    """Nothing that anybody foresaw."""


def broken(sorter: StreamSorter, queue: str, method: str, error: Exception) -> None:
    """Lets a method of the items table raise for one queue."""
    call = getattr(sorter.stores.items, method)

    def failing(name: Any, *args: Any) -> Any:
        if getattr(name, "queue", name) == queue:
            raise error
        return call(name, *args)

    setattr(sorter.stores.items, method, failing)


@pytest.mark.parametrize("method", ["look", "arrivals", "skip"])
def test_i7_an_unforeseen_error_in_one_queue_stops_neither_the_others_nor_the_wakes(
    clock: MovableClock, method: str
) -> None:
    sorter = StreamSorter.in_memory(clock=clock, gap_policy="skip after 0 seconds")
    for queue in "abc":
        put(sorter, 1, queue=queue)
    clock.move(30)
    broken(sorter, "b", method, Bug("in the middle"))
    done = Sweeper(sorter, lagging=Sleepers("a")).sweep()
    assert [(queue, type(error), type(error.__cause__)) for queue, error in done.failed] == [("b", InternalError, Bug)]
    assert "unexpected Bug('in the middle'). This is a bug in stream_sort" in str(done.failed[0][1])
    assert (sorter.position("a"), sorter.position("c"), done.nudged) == (1, 1, ["a"])


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_who_ends_the_process_ends_the_sweep(sorter: StreamSorter, stop: type[BaseException]) -> None:
    put(sorter, 1)
    broken(sorter, "q", "look", stop())  # type: ignore[arg-type]
    with pytest.raises(stop):
        Sweeper(sorter).sweep()


def test_i7_an_unforeseen_error_in_a_nudge_stops_no_other(sorter: StreamSorter) -> None:
    for queue in "abc":
        put(sorter, 0, queue=queue)
    nudge = sorter.stores.cursors.nudge

    def failing(queue: str, now: float) -> bool:
        if queue == "b":
            raise Bug
        return nudge(queue, now)

    sorter.stores.cursors.nudge = failing  # type: ignore[method-assign]
    done = Sweeper(sorter, lagging=Sleepers("a", "b", "c")).sweep()
    assert (sorted(done.nudged), [queue for queue, _ in done.failed]) == (["a", "c"], ["b"])


def test_who_sleeps_is_woken_though_the_queues_that_wait_cannot_be_listed(sorter: StreamSorter) -> None:
    put(sorter, 0)

    def failing(before: float, start: Any = None) -> QueuePage:
        raise StoreUnavailable(f"no listing before {before} from {start}")

    sorter.stores.cursors.waiting = failing  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable, match="no listing"):
        Sweeper(sorter, lagging=Sleepers("q")).sweep()
    assert row(sorter).nudges == 1


def test_a_queue_behind_a_gap_too_long_to_fill_is_counted_with_its_age(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 20_000)
    clock.move(31)
    for age in (31.0, 91.0):
        done = Sweeper(sorter).sweep()
        assert (len(done.too_long), done.waiting, done.gap_ages) == (1, ["q"], {"q": age})
        clock.move(60)


@pytest.mark.parametrize("method", ["look", "arrivals"])
def test_a_queue_that_cannot_be_looked_at_is_counted_with_the_age_that_its_row_tells(
    sorter: StreamSorter, clock: MovableClock, method: str
) -> None:
    put(sorter, 0, 2)
    clock.move(40)
    broken(sorter, "q", method, StoreUnavailable("throttled"))
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.gap_ages, len(done.failed)) == (["q"], {"q": 40.0}, 1)


def test_a_marked_queue_whose_row_cannot_be_read_is_counted_too(sorter: StreamSorter) -> None:
    put(sorter, 0, 2)

    def failing(queues: Any) -> Any:
        raise StoreUnavailable(f"no row of {queues}")

    sorter.stores.cursors.get = failing  # type: ignore[method-assign]
    sorter.stores.cursors.rows_of = failing  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.gap_ages, len(done.failed)) == (["q"], {"q": 0.0}, 1)
    assert Sweeper(sorter).sweep(queues=["q"]).waiting == [], "nobody said that it waits"


def test_the_figures_are_told_before_anybody_is_woken(sorter: StreamSorter) -> None:
    put(sorter, 0, 2)
    order: list[str] = []

    class Last:
        def lagging(self, now: float) -> list[str]:  # noqa: ARG002  # the port's signature
            order.append("wakes")
            return []

    Sweeper(sorter, lagging=Last()).sweep(on_figures=lambda done: order.append(f"{len(done.waiting)} waiting"))
    assert order == ["1 waiting", "wakes"]


def test_a_sweep_that_cannot_list_the_queues_does_not_say_that_none_waits(sorter: StreamSorter) -> None:
    put(sorter, 0, 2)
    broken_listing(sorter)
    figures: list[Any] = []
    with pytest.raises(StoreUnavailable, match="no listing"):
        Sweeper(sorter).sweep(on_figures=figures.append)
    assert [(done.listed, done.complete) for done in figures] == [(False, False)]


def test_figures_that_cannot_be_told_keep_nobody_asleep(sorter: StreamSorter) -> None:
    put(sorter, 0)

    def failing(done: Any) -> None:
        raise ZeroDivisionError(done.looked_at)

    with pytest.raises(ZeroDivisionError):
        Sweeper(sorter, lagging=Sleepers("q")).sweep(on_figures=failing)
    assert row(sorter).nudges == 1


def broken_listing(sorter: StreamSorter) -> None:
    def failing(before: float, start: Any = None) -> QueuePage:
        raise StoreUnavailable(f"no listing before {before} from {start}")

    sorter.stores.cursors.waiting = failing  # type: ignore[method-assign]


def halved_after(queues: int) -> Callable[[], float]:
    """A time of which less than half is left when so many queues were visited."""
    asked = count()
    return lambda: 100.0 if next(asked) <= queues else 40.0


def short_of_time() -> tuple[StreamSorter, MovableClock]:
    """One queue waits for two hours and is measured; then two hundred more, and a sweep has the time for ten."""
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    put(sorter, 0, 5, queue="old")
    Sweeper(sorter).sweep()
    clock.move(7_200)
    sorter.put_many({"queue": f"q{number}", "seq": 5} for number in range(200))
    return sorter, clock


def test_the_figures_of_a_sweep_short_of_time_are_those_of_all_queues_that_wait() -> None:
    sorter, clock = short_of_time()
    for minute in range(1, 13):
        clock.move(60)
        done = Sweeper(sorter).sweep(time_left=halved_after(10))
        assert (len(done.found), done.complete) == (10, False)
        assert (len(done.waiting), len(done.gap_ages), done.oldest_gap) == (201, 201, 7_200.0 + 60 * minute)


def test_a_queue_that_no_sweep_had_time_for_has_no_age_that_is_not_its_own() -> None:
    sorter, clock = short_of_time()
    sorter.put({"queue": "idle", "seq": 0})
    sorter.skip("idle", [5])
    clock.move(86_400)
    done = Sweeper(sorter).sweep(time_left=halved_after(0))
    assert done.looked_at == 0
    assert (done.gap_ages["old"], done.gap_ages["idle"], done.gap_ages["q7"]) == (93_600.0, 0.0, 0.0)
    every = Sweeper(sorter).sweep_all(time_left=halved_after(0))
    assert sorted(every.waiting) == sorted(done.waiting), "also if all queues are looked at"


def test_rows_that_cannot_be_read_keep_no_queue_from_being_counted() -> None:
    sorter, _ = short_of_time()
    sorter.stores.cursors.rows_of = no_rows  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep(time_left=halved_after(10))
    assert (len(done.waiting), done.complete) == (201, False)
