"""Sweeps whose time does not suffice for all queues: each has its turn, whatever the others need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable, StreamSorter, Sweep, Sweeper
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival, QueuePage
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import message
from tests.unit.test_put_many_in_time import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

# Of the sweep function.
TIMEOUT = 55.0


def in_time_for(queues: int) -> Callable[[], float]:
    """Time for so many queues, and none for more."""
    asked = iter(range(1, 10_000))
    return lambda: 100.0 if next(asked) <= queues + 1 else 40.0


@pytest.mark.parametrize("number", [5, 12, 20, 30, 60])
@pytest.mark.parametrize("seconds", [60, 300])
def test_sweeps_at_the_same_second_of_each_minute_begin_at_every_queue_in_time(number: int, seconds: int) -> None:
    clock = MovableClock(1_700_000_017.4)
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    sorter.put_many(message(1, f"q{one:02}") for one in range(number))
    visited: set[str] = set()
    visit = Sweeper.visit.run

    class Noting(Sweeper):
        class visit(Sweeper.visit):  # noqa: N801  # the attribute's name
            def run(self, *given: Any) -> None:
                visited.add(self.queue)
                visit(self, *given)

    for _ in range(20 * number):
        clock.move(seconds)
        Noting(sorter).sweep(time_left=in_time_for(1))
    assert len(visited) == number


def slow(store: Any, name: str, watch: Stopwatch, seconds: Callable[..., float]) -> None:
    """Let the calls of a store take time."""
    call = getattr(store, name)

    def slowly(*args: Any) -> Any:
        watch.sleep(seconds(*args))
        return call(*args)

    setattr(store, name, slowly)


def store_unseen(sorter: StreamSorter, seq: int, queue: str) -> None:
    """Store a message as a writer does that dies at once."""
    sorter.stores.items.put(Arrival(check_message(message(seq, queue), KeyNames()), -1), sorter.clock())


def test_i7_long_backlogs_delay_no_gap_that_is_due() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1, max_advance=10, gap_policy="skip after 10 seconds")
    backlogs, gaps = [f"back{number}" for number in range(4)], [f"gap{number:02}" for number in range(56)]
    for queue in backlogs:
        sorter.put_many(message(seq, queue) for seq in range(1, 4_000))
        sorter.set_policy(queue, "wait")
        store_unseen(sorter, 0, queue)
    sorter.put_many(message(seq, queue) for queue in gaps for seq in (0, 2))
    watch = Stopwatch(TIMEOUT)
    slow(sorter.stores.cursors, "move", watch, lambda *_: 0.05)
    clock.move(60)
    done = Sweeper(sorter).sweep(time_left=watch.left)
    assert [queue for queue in gaps if sorter.position(queue) < 2] == []
    assert (done.looked_at, done.complete) == (60, False)
    positions = [sorter.position(queue) for queue in backlogs]
    assert min(positions) > 500, "the backlogs have the rest of the time, each its share"
    assert {queue for queue, age in done.gap_ages.items() if age == 0.0} == set(backlogs)
    for _ in range(10):
        watch.now = 0.0
        clock.move(60)
        done = Sweeper(sorter).sweep(time_left=watch.left)
    assert [sorter.position(queue) for queue in backlogs] == [3_999] * 4
    assert (done.complete, done.waiting) == (True, [])


def test_what_a_sweep_gave_up_before_its_time_was_over_is_released() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1, gap_policy="skip after 10 seconds")
    sorter.put_many(message(seq) for seq in range(2, 20_001, 2))
    watch = Stopwatch(TIMEOUT)
    # One queue takes so many writes a second.
    slow(sorter.stores.items, "skip", watch, lambda tombstones, _: len(tombstones.seqs) / 200)
    slow(sorter.stores.cursors, "move", watch, lambda *_: 0.01)
    clock.move(10)
    done = Sweeper(sorter).sweep(time_left=watch.left)
    given_up = [event.seqs.start for event in done.skipped]
    assert (done.complete, done.waiting) == (False, ["q"])
    assert len(given_up) > 4_000
    assert sorter.position("q") == given_up[-1] + 1
    watch.now = 0.0
    done = Sweeper(sorter).sweep(now=clock() + 60, time_left=watch.left)
    assert (sorter.position("q"), done.complete) == (20_000, True)


def test_a_queue_that_there_is_no_time_for_has_waited_as_long_as_was_noted() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    sorter.put_many([message(0), message(9_001)])
    Sweeper(sorter).sweep()
    clock.move(600)
    sorter.set_policy("q", skip_after=60)
    watch = Stopwatch(TIMEOUT)
    slow(sorter.stores.items, "skip", watch, lambda *_: 28.0)
    slow(sorter.stores.cursors, "move", watch, lambda *_: 28.0)
    done = Sweeper(sorter).sweep(time_left=watch.left)
    assert (done.complete, done.gap_ages) == (False, {"q": 600.0})


def test_a_listing_of_all_queues_that_takes_long_leaves_time_for_them_and_goes_on_the_next_time() -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    names = [f"q{number:02}" for number in range(20)]
    sorter.put_many(message(0, queue) for queue in names)
    watch = Stopwatch(TIMEOUT)
    listed: list[int] = []

    def listing(start: int | None = None) -> QueuePage:
        watch.sleep(4.0)
        listed.append(start or 0)
        after = (start or 0) + 1
        return QueuePage((names[start or 0],), after if after < len(names) else None)

    sorter.stores.cursors.queues = listing  # type: ignore[method-assign]
    sweeper = Sweeper(sorter)
    told_at: list[float] = []
    looked_at = 0
    for _ in range(5):
        watch.now = 0.0
        done = sweeper.sweep_all(time_left=watch.left, on_figures=lambda _: told_at.append(watch.now))
        looked_at += done.looked_at
    assert max(told_at) <= TIMEOUT / 2
    assert listed == list(range(20)), "each page once"
    assert (looked_at, done.complete) == (20, True)
    assert not sweeper.sweep_all(time_left=lambda: TIMEOUT - watch.now).complete, "then it begins anew"


def test_what_was_listed_before_a_listing_failed_is_looked_after() -> None:
    sorter = StreamSorter.in_memory(in_flight=1, gap_policy="skip after 0 seconds")
    sorter.put_many(message(1, f"q{number}") for number in range(5))
    waiting = sorter.stores.cursors.waiting

    def listing(before: float, start: Any = None) -> QueuePage:
        if start is not None:
            raise StoreUnavailable("no second page")
        return QueuePage(waiting(before).queues, "more")

    sorter.stores.cursors.waiting = listing  # type: ignore[method-assign]
    figures: list[Sweep] = []
    with pytest.raises(StoreUnavailable, match="no second page"):
        Sweeper(sorter).sweep(now=sorter.clock() + 10, time_left=lambda: 50.0, on_figures=figures.append)
    assert (len(figures[0].skipped), figures[0].looked_at, figures[0].listed) == (5, 5, False)
