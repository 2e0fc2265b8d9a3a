"""Queues that wait and do not change: what a sweep asks for them, and what makes it visit one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter, Sweep, Sweeper
from stream_sort.model.gaps import Gap
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.faulty import Faulty

NAMES = [f"q{number}" for number in range(250)]


class Counted(Sweeper):
    """Notes which queues it visits."""

    def __init__(self, sorter: StreamSorter) -> None:
        super().__init__(sorter)
        self.visited: list[str] = []

    def visit(self, sorter: Any, queue: str, *args: Any) -> Any:  # type: ignore[override]
        self.visited.append(queue)
        return Sweeper.visit(sorter, queue, *args)


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sorter(clock: MovableClock) -> StreamSorter:
    """Queues that wait, each at a gap that a sweep has measured."""
    sorter = StreamSorter.in_memory(clock=clock)
    sorter.put_many(message(2, queue) for queue in NAMES)
    Sweeper(sorter).sweep()
    return sorter


def visits(sorter: StreamSorter, *, now: float | None = None) -> tuple[list[str], Sweep]:
    sweeper = Counted(sorter)
    return sweeper.visited, sweeper.sweep(now=now)


def test_ten_thousand_idle_queues_cost_a_sweep_a_request_for_forty_of_them(clock: MovableClock) -> None:
    sorter = StreamSorter.in_memory(clock=clock)
    number = 10_000
    sorter.put_many(message(1, f"q{one}") for one in range(number))
    Sweeper(sorter).sweep()
    clock.move(86_400)
    calls: list[str] = []
    for store in (sorter.stores.items, sorter.stores.cursors):
        count_calls(store, calls)
    done = Sweeper(sorter).sweep()
    assert (len(done.waiting), done.looked_at, done.complete) == (number, number, True)
    assert set(done.gap_ages.values()) == {86_400.0}
    assert set(calls) == {"waiting", "rows_of", "taken"}
    assert len(calls) <= number / 40 + 20


def count_calls(store: Any, calls: list[str]) -> None:
    """Note each call of a store; none is for more keys than one request takes."""

    def counted(name: str, call: Any) -> Any:
        def one(*args: Any) -> Any:
            calls.append(name)
            assert name not in {"rows_of", "taken"} or len(args[0]) <= 100
            return call(*args)

        return one

    for name in dir(store):
        if not name.startswith("_"):
            setattr(store, name, counted(name, getattr(store, name)))


def test_idle_queues_cost_as_few_requests_on_dynamodb(client: Faulty, clock: MovableClock) -> None:
    sorter = StreamSorter(client=client, in_flight=1, clock=clock)
    sorter.put_many(message(1, f"q{one}") for one in range(12))
    Sweeper(sorter).sweep()
    before = sorter.stores.requests()
    done = Sweeper(sorter).sweep()
    # Four shares of the index, the rows, and the slots behind them.
    assert (sorter.stores.requests() - before, len(done.waiting)) == (4 + 1 + 1, 12)


def test_a_queue_that_waits_as_before_is_not_visited_and_counted(sorter: StreamSorter, clock: MovableClock) -> None:
    clock.move(60)
    visited, done = visits(sorter)
    assert visited == []
    assert (done.looked_at, sorted(done.waiting), done.oldest_gap) == (250, sorted(NAMES), 60.0)


def test_a_queue_with_a_stray_behind_its_gap_costs_a_page_a_sweep_as_a_message_may_split_that_gap(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.put_many(message(seq, "behind") for seq in (2, 1_800_000_000_000))
    for _ in range(3):
        clock.move(60)
        Sweeper(sorter).sweep()
    assert visits(sorter)[0] == ["behind"]
    calls: list[str] = []
    count_calls(sorter.stores.items, calls)
    Sweeper(sorter).sweep()
    assert calls.count("arrivals") == 1


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "beside another"])
def test_a_message_within_a_gap_too_long_for_its_sweep_is_seen_whatever_else_waits(
    clock: MovableClock, others: int
) -> None:
    sorter = StreamSorter.in_memory(clock=clock)
    sweeper = Sweeper(sorter, max_gap=5)
    sorter.put_many(message(20, f"q{number}") for number in range(1 + others))
    sweeper.sweep()
    clock.move(500)
    sorter.put(message(3, "q0"))
    clock.move(60)
    done = sweeper.sweep()
    assert done.gap_ages["q0"] == 60.0
    assert [event.seqs for event in done.found] == [range(3)]


def test_a_queue_is_idle_once_all_that_waits_behind_its_gap_was_looked_at(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.put_many(message(seq, "behind") for seq in range(2, 4_500))
    for _ in range(6):
        clock.move(60)
        Sweeper(sorter).sweep()
    assert visits(sorter)[0] == []
    row = sorter.stores.cursors.get("behind")
    assert row is not None
    assert row.gap == Gap(range(2), row.gap.since if row.gap else 0.0)


def come(sorter: StreamSorter) -> None:
    """Store the message that is missing, as a writer does that dies at once."""
    sorter.stores.items.put(Arrival(check_message(message(0, "q7"), KeyNames()), -1), sorter.clock())


def doubt(sorter: StreamSorter) -> None:
    row = sorter.stores.cursors.get("q7")
    assert row is not None
    sorter.stores.cursors.set_waiting(row, -row.next_mark(sorter.clock()))


CHANGES: dict[str, Callable[[StreamSorter], object]] = {
    "something fills the slot behind its position": come,
    "it moved": lambda sorter: sorter.put(message(0, "q7")),
    "a seq was skipped": lambda sorter: sorter.skip("q7", [0]),
    "what waited was withdrawn": lambda sorter: sorter.withdraw("q7", 2),
    "its gap is due": lambda sorter: sorter.set_policy("q7", skip_after=30),
    "its mark is in doubt": doubt,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_queue_is_visited_if(sorter: StreamSorter, clock: MovableClock, change: str) -> None:
    CHANGES[change](sorter)
    clock.move(60)
    visited, done = visits(sorter)
    assert visited == ["q7"]
    assert (done.looked_at, done.complete) == (250, True)


def test_the_mark_of_an_idle_queue_stays(sorter: StreamSorter, clock: MovableClock) -> None:
    for _ in range(3):
        clock.move(60)
        visits(sorter)
    assert all((row := sorter.stores.cursors.get(queue)) is not None and row.is_marked for queue in NAMES)


def test_idle_queues_do_not_use_up_the_time_for_waking(sorter: StreamSorter, clock: MovableClock) -> None:
    clock.move(60)
    left = iter([100.0, *[40.0] * 100])
    done = Sweeper(sorter).sweep(time_left=lambda: next(left))
    assert (done.looked_at, done.complete, len(done.waiting)) == (100, False, 250)


def test_where_the_rows_cannot_be_read_at_once_every_queue_is_visited(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    def failing(_: Any) -> Any:
        raise ZeroDivisionError("a bug")

    sorter.stores.items.taken = failing  # type: ignore[method-assign]
    clock.move(60)
    visited, done = visits(sorter)
    assert (len(visited), len(done.waiting), done.failed) == (250, 250, [])


def test_a_gap_that_opens_within_one_too_long_to_skip_is_told_as_found(clock: MovableClock) -> None:
    sorter = StreamSorter.in_memory(clock=clock)
    for queue in ("a", "other"):
        sorter.put_many(message(seq, queue) for seq in (0, 1_700_000_000_000))
    found: list[tuple[str, range]] = []
    sweeper = Sweeper(sorter, on_gap=lambda event: found.append((event.queue, event.seqs)))
    sweeper.sweep()
    found.clear()
    sorter.put_many(message(seq, "a") for seq in range(2, 10))
    clock.move(60)
    sweeper.sweep()
    assert found == [("a", range(1, 2))]


def test_a_queue_that_is_named_twice_keeps_no_other_from_being_swept(clock: MovableClock) -> None:
    sorter = StreamSorter.in_memory(clock=clock, gap_policy="skip after 10 seconds")
    sorter.put_many(message(1, queue) for queue in NAMES)
    clock.move(10)
    done = Sweeper(sorter).sweep(queues=[NAMES[0], *NAMES])
    assert done.complete
    assert {sorter.position(queue) for queue in NAMES} == {1}
