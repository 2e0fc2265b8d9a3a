"""What a sweep tells of gaps: found, closed, given up, each with its queue, seqs and age."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import GapEvent, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import beside, message
from tests.unit.test_put_many_in_time import Stopwatch

if TYPE_CHECKING:
    from stream_sort.model.records import Cursor, Tombstones
    from stream_sort.upkeep.sweep import Sweep

Told = tuple[str, str, range, float]


class Listener:
    def __init__(self) -> None:
        self.events: list[GapEvent] = []

    def __call__(self, event: GapEvent) -> None:
        self.events.append(event)

    def told(self) -> list[Told]:
        events, self.events = self.events, []
        return [(str(one.kind), one.queue, one.seqs, one.age) for one in events]


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sorter(clock: MovableClock) -> StreamSorter:
    return StreamSorter.in_memory(clock=clock)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def sweeper(sorter: StreamSorter, listener: Listener) -> Sweeper:
    return Sweeper(sorter, on_gap=listener)


def put(sorter: StreamSorter, *seqs: int, queue: str = "q") -> None:
    for seq in seqs:
        sorter.put({"queue": queue, "seq": seq})


def test_a_gap_is_found_once_and_closed_once(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, 3)
    clock.move(10)
    assert sweeper.sweep().found == listener.events
    assert listener.told() == [("found", "q", range(1, 3), 10.0)]
    clock.move(10)
    sweeper.sweep()
    assert listener.told() == []
    put(sorter, 1, 2)
    clock.move(5)
    assert sweeper.sweep().closed == listener.events
    assert listener.told() == [("closed", "q", range(1, 3), 25.0)]
    sweeper.sweep()
    sweeper.sweep_all()
    assert listener.told() == []


def test_a_gap_that_was_given_up_is_not_closed_as_well(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 2)
    clock.move(10)
    sweeper.sweep()
    assert listener.told() == [("found", "q", range(1, 2), 10.0)]
    clock.move(20)
    put(sorter, 4)
    sweeper.sweep()
    assert listener.told() == [("given_up", "q", range(1, 2), 30.0), ("found", "q", range(3, 4), 0.0)]
    clock.move(30)
    sweeper.sweep()
    assert listener.told() == [("given_up", "q", range(3, 4), 30.0)]
    sweeper.sweep()
    sweeper.sweep_all()
    assert listener.told() == []


def test_a_queue_that_moved_on_to_another_gap_has_closed_the_first(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, 2, 4)
    sweeper.sweep()
    listener.told()
    clock.move(10)
    put(sorter, 1)
    sweeper.sweep()
    assert listener.told() == [("closed", "q", range(1, 2), 10.0), ("found", "q", range(3, 4), 10.0)]


def test_what_is_left_of_a_gap_is_not_found_again(sorter: StreamSorter, sweeper: Sweeper, listener: Listener) -> None:
    put(sorter, 0, 6)
    sweeper.sweep()
    assert listener.told() == [("found", "q", range(1, 6), 0.0)]
    put(sorter, 1)
    sweeper.sweep()
    put(sorter, 2, 5)
    sweeper.sweep()
    assert listener.told() == []
    put(sorter, 3, 4)
    sweeper.sweep()
    assert [(kind, seqs) for kind, _, seqs, _ in listener.told()] == [("closed", range(3, 5))]


def test_a_gap_that_is_due_when_it_is_first_seen_is_given_up_and_not_found(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=0)
    put(sorter, 0, 2, 4)
    sweeper.sweep()
    assert [kind for kind, *_ in listener.told()] == ["given_up", "given_up"]


def test_a_gap_too_long_is_found_and_told_of_at_every_sweep_but_calls_nobody_back(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=0)
    put(sorter, 0, 10**6)
    assert [len(sweeper.sweep().too_long) for _ in range(3)] == [1, 1, 1]
    assert listener.told() == [("found", "q", range(1, 10**6), 0.0)]


def test_a_callback_that_raises_stops_nothing_and_is_recorded(sorter: StreamSorter) -> None:
    for queue in "abc":
        put(sorter, 1, queue=queue)
    called = []

    def fail(event: GapEvent) -> None:
        called.append(event.queue)
        raise ValueError(event.queue)

    done = Sweeper(sorter, on_gap=fail).sweep()
    assert (sorted(called), sorted(done.waiting), done.failed) == (["a", "b", "c"], ["a", "b", "c"], [])
    assert sorted((event.queue, str(error)) for event, error in done.callback_errors) == [
        ("a", "a"),
        ("b", "b"),
        ("c", "c"),
    ]


def test_a_callback_may_put_what_is_missing(sorter: StreamSorter) -> None:
    put(sorter, 0, 3)
    done = Sweeper(sorter, on_gap=lambda event: put(sorter, *event.seqs) if event.kind == "found" else None).sweep()
    assert (sorter.position("q"), done.callback_errors) == (3, [])


STRAY = 10**12


def names(listener: Listener) -> list[tuple[str, range]]:
    return [(kind, seqs) for kind, _, seqs, _ in listener.told()]


def test_gaps_before_a_stray_are_found_and_closed_once_each_and_the_stray_is_found_once(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, STRAY)
    sweeper.sweep()
    assert names(listener) == [("found", range(1, STRAY))]
    put(sorter, 1, 4)
    for _ in range(2):
        sweeper.sweep()
    assert names(listener) == [("found", range(2, 4))]
    put(sorter, 2, 3)
    for _ in range(2):
        sweeper.sweep()
    assert names(listener) == [("closed", range(2, 4))]
    put(sorter, 7)
    sweeper.sweep()
    put(sorter, 6)
    sweeper.sweep()
    put(sorter, 5)
    sweeper.sweep()
    assert names(listener) == [("found", range(5, 7)), ("closed", range(5, 6))]


def test_a_stray_that_came_unseen_behind_another_gap_is_found_when_the_queue_waits_for_it(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, STRAY, 2)
    sweeper.sweep()
    put(sorter, 1)
    sweeper.sweep()
    assert names(listener) == [("found", range(1, 2)), ("closed", range(1, 2)), ("found", range(3, STRAY))]


@pytest.mark.parametrize("tombstones", [[], [9]], ids=["nothing else is stored", "a tombstone is left"])
def test_a_gap_that_ends_by_a_withdrawal_is_closed_once(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener, tombstones: list[int]
) -> None:
    put(sorter, 0, 5)
    sorter.skip("q", tombstones)
    sweeper.sweep()
    assert names(listener) == [("found", range(1, 5))]
    sorter.withdraw("q", 5)
    for _ in range(3):
        sweeper.sweep()
    assert names(listener) == [("closed", range(1, 5))]


def test_a_gap_that_a_withdrawal_makes_longer_is_found_as_it_is_now(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, 5, 9)
    sweeper.sweep()
    sorter.withdraw("q", 5)
    for _ in range(2):
        sweeper.sweep()
    assert names(listener) == [("found", range(1, 5)), ("closed", range(1, 5)), ("found", range(1, 9))]


def test_a_gap_of_which_a_part_was_filled_before_a_throttle_is_told_whole(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 101)
    skip = sorter.stores.items.skip

    def throttled(tombstones: Tombstones, now: float) -> Any:
        if len(tombstones.seqs) == 1:
            return skip(tombstones, now)
        sorter.stores.items.skip = skip  # type: ignore[method-assign]
        skip(replace(tombstones, seqs=tombstones.seqs[:75]), now)
        raise StoreUnavailable("24 of 99 are throttled")

    sorter.stores.items.skip = throttled  # type: ignore[method-assign]
    clock.move(60)
    assert sweeper.sweep().failed == []
    assert sorter.position("q") == 101
    told = [("given_up", range(100, 101)), ("given_up", range(25, 100)), ("given_up", range(1, 25))]
    assert names(listener) == told


def test_a_gap_is_found_although_the_reply_to_its_note_was_lost(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener
) -> None:
    put(sorter, 0, 5)
    note_gap = sorter.stores.cursors.note_gap

    def lost(*given: Any) -> Any:
        sorter.stores.cursors.note_gap = note_gap  # type: ignore[method-assign]
        note_gap(*given)
        raise StoreUnavailable("no reply")

    sorter.stores.cursors.note_gap = lost  # type: ignore[method-assign]
    assert sweeper.sweep().failed == []
    assert names(listener) == [("found", range(1, 5))]
    sweeper.sweep()
    assert names(listener) == []


def test_a_gap_is_given_up_once_although_a_writer_moves_on_before_its_note_is_gone(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 5)
    sweeper.sweep()
    clock.move(60)
    note_gap = sorter.stores.cursors.note_gap

    def late(*given: Any) -> Any:
        sorter.stores.cursors.note_gap = note_gap  # type: ignore[method-assign]
        put(sorter, 6)
        return note_gap(*given)

    sorter.stores.cursors.note_gap = late  # type: ignore[method-assign]
    for _ in range(3):
        sweeper.sweep()
        clock.move(60)
    assert [name for name in names(listener) if name[0] == "given_up"] == [("given_up", range(1, 5))]


def unavailable(*_: Any) -> Any:
    raise StoreUnavailable("throttled")


def test_a_gap_that_was_given_up_in_a_sweep_that_could_not_move_the_cursor_is_not_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 3)
    sweeper.sweep()
    clock.move(60)
    with monkeypatch.context() as throttle:
        throttle.setattr(sorter.stores.cursors, "move", unavailable)
        sweeper.sweep()
    assert names(listener) == [("found", range(1, 3)), ("given_up", range(1, 3))]
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    # Nobody knows whether the sweep that failed lived to tell it.
    assert (names(listener), sorter.position("q")) == ([("given_up", range(1, 3))], 3)


@pytest.mark.parametrize("method", ["set_waiting", "note_gap"])
def test_a_gap_is_closed_although_the_reply_to_the_end_of_its_note_was_lost(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener, method: str
) -> None:
    put(sorter, 0, 5)
    if method == "note_gap":
        # The queue stays marked as waiting behind a tombstone.
        sorter.skip("q", [9])
    sweeper.sweep()
    sorter.withdraw("q", 5)
    cursors = sorter.stores.cursors
    write = getattr(cursors, method)

    def lost(cursor: Cursor, change: Any) -> Any:
        answer = write(cursor, change)
        if change is not None:
            return answer
        setattr(cursors, method, write)
        raise StoreUnavailable("no reply")

    setattr(cursors, method, lost)
    for _ in range(3):
        assert sweeper.sweep().failed == []
    assert names(listener) == [("found", range(1, 5)), ("closed", range(1, 5))]
    assert getattr(cursors, method) == write


def test_what_was_given_up_before_a_throttle_that_lasts_is_told(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 50, 250)
    clock.move(60)
    items = sorter.stores.items
    skip, calls = items.skip, []

    def throttled(tombstones: Tombstones, now: float) -> Any:
        calls.append(tombstones)
        if len(calls) > 2:
            throttle.setattr(items, "arrivals", unavailable)
            unavailable()
        return skip(tombstones, now)

    with monkeypatch.context() as throttle:
        throttle.setattr(items, "skip", throttled)
        assert [queue for queue, _ in sweeper.sweep().failed] == ["q"]
    assert names(listener) == [("given_up", range(124, 250))]
    sweeper.sweep()
    told = [("given_up", range(1, 50)), ("given_up", range(51, 124))]
    assert (names(listener), sorter.position("q")) == (told, 250)


def test_what_came_of_a_gap_that_was_given_up_in_part_is_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 250)
    sweeper.sweep()
    clock.move(60)
    items = sorter.stores.items
    skip, calls = items.skip, []

    def throttled(tombstones: Tombstones, now: float) -> Any:
        calls.append(tombstones)
        return unavailable() if len(calls) > 2 else skip(tombstones, now)

    with monkeypatch.context() as throttle:
        throttle.setattr(items, "skip", throttled)
        sweeper.sweep()
    put(sorter, *range(1, 124))
    clock.move(60)
    sweeper.sweep()
    # What the sweep that failed gave up is told again: nobody knows whether it lived to tell it.
    given_up = [("given_up", range(124, 250))] * 2
    told = [("found", range(1, 250)), *given_up, ("closed", range(1, 124))]
    assert (names(listener), sorter.position("q")) == (told, 250)


def test_what_sweeps_gave_up_of_a_gap_that_was_too_long_when_it_was_found_is_not_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, 0, 15_000)
    sweeper.sweep()
    put(sorter, 7_000)
    clock.move(60)

    with monkeypatch.context() as death:
        death.setattr(sorter.stores.cursors, "move", killed)
        with pytest.raises(Killed):
            sweeper.sweep()
    sweeper.sweep()
    told = dict.fromkeys(names(listener))
    assert ("found", range(1, 15_000)) in told
    closed = [seqs for kind, seqs in told if kind == "closed"]
    given_up = {seq for kind, seqs in told if kind == "given_up" for seq in seqs}
    assert (closed, sorter.position("q")) == ([range(7_000, 7_001)], 15_000)
    assert given_up == set(range(1, 15_000)) - {7_000}


def test_a_closed_gap_that_no_policy_can_have_given_up_costs_no_read(
    sorter: StreamSorter, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(sorter, 0, 3)
    sweeper.sweep()
    put(sorter, 1, 2)
    monkeypatch.setattr(sorter.stores.items, "arrivals", unavailable)
    assert sweeper.sweep().failed == []
    assert names(listener) == [("found", range(1, 3)), ("closed", range(1, 3))]


class Killed(BaseException):
    """As if the process had ended."""


def test_a_long_gap_that_came_in_whole_does_not_use_up_the_time_of_the_sweep_that_tells_it_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", "skip after 7d")
    put(sorter, 0, 20_000)
    sweeper.sweep()
    listener.told()
    sorter.put_many(message(seq) for seq in range(1, 20_000))
    watch, arrivals = Stopwatch(55.0), sorter.stores.items.arrivals

    def of_large_messages(queue: str, after: int, limit: int) -> Any:
        watch.sleep(0.5)
        return arrivals(queue, after, min(limit, 50))

    sorter.stores.items.arrivals = of_large_messages  # type: ignore[method-assign]
    clock.move(60)
    assert sweeper.sweep(time_left=watch.left).complete
    assert watch.now < 10
    assert [(kind, seqs) for kind, _, seqs, _ in listener.told()] == [("closed", range(1, 20_000))]
    sweeper.sweep()
    assert listener.told() == []


@pytest.mark.parametrize("pages_in_time", [0, 3])
def test_a_gap_that_came_in_is_told_as_closed_by_a_sweep_without_time_to_look_at_it(
    sorter: StreamSorter, sweeper: Sweeper, pages_in_time: int
) -> None:
    sorter.set_policy("q", "skip after 7d")
    put(sorter, 0, 1_000)
    sweeper.sweep()
    sorter.put_many(message(seq) for seq in range(1, 1_000))
    watch, arrivals = Stopwatch(55.0), sorter.stores.items.arrivals
    pages: list[int] = []

    def slow_page(queue: str, after: int, limit: int) -> Any:
        pages.append(after)
        watch.sleep(watch.left() if len(pages) > pages_in_time else 0)
        return arrivals(queue, after, min(limit, 50))

    sorter.stores.items.arrivals = slow_page  # type: ignore[method-assign]
    closed = sweeper.sweep(time_left=watch.left).closed
    assert len(pages) == pages_in_time + 1
    assert [event.seqs for event in closed] == [range(1, 1_000)]


def test_a_gap_given_up_by_a_sweep_that_was_killed_is_told_by_the_next(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=600)
    put(sorter, 0, 3)
    sweeper.sweep()
    clock.move(600)

    with monkeypatch.context() as death:
        death.setattr(sorter.stores.cursors, "move", killed)
        with pytest.raises(Killed):
            sweeper.sweep()
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    assert names(listener) == [("found", range(1, 3)), ("given_up", range(1, 3))]


def test_a_gap_whose_last_tombstones_a_killed_sweep_left_is_told_whole_by_the_next(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=600)
    put(sorter, 0, 5)
    sweeper.sweep()
    clock.move(600)
    skip = sorter.stores.items.skip

    def killed(*given: Any) -> Any:
        skip(*given)
        raise Killed

    with monkeypatch.context() as death:
        death.setattr(sorter.stores.items, "skip", killed)
        with pytest.raises(Killed):
            sweeper.sweep()
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    told = [("found", range(1, 5)), ("given_up", range(1, 4)), ("given_up", range(4, 5))]
    assert (names(listener), sorter.position("q")) == (told, 5)


@pytest.fixture
def measured_in_part(sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener) -> None:
    """A gap that is due by a message which the sweep that noted it did not look at."""
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, 0, 1_520)
    clock.move(3_000)
    put(sorter, *range(11, 1_511), 1_700)
    sweeper.sweep()
    assert names(listener) == [("found", range(1, 11))]
    listener.told()
    clock.move(600)


@pytest.mark.usefixtures("measured_in_part")
def test_a_gap_older_than_noted_that_a_killed_sweep_gave_up_is_told_by_the_next_and_not_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as death:
        death.setattr(sorter.stores.cursors, "move", killed)
        with pytest.raises(Killed):
            sweeper.sweep()
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    told = [("given_up", range(1, 11)), ("found", range(1_521, 1_700))]
    assert (names(listener), sorter.position("q")) == (told, 1_520)


@pytest.mark.usefixtures("measured_in_part")
def test_a_gap_older_than_noted_that_was_given_up_with_little_time_is_not_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    assert not sweep_short_of_time(sorter, sweeper).complete
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    # That of the note is told twice: nobody knows whether the sweep with little time lived to tell it.
    told = dict.fromkeys(names(listener))
    given_up = [("given_up", range(1, 11)), ("given_up", range(1_511, 1_520))]
    assert [*told] == [*given_up, ("found", range(1_521, 1_700))]


@pytest.mark.parametrize("policy", ["wait", "skip after 7d"])
def test_a_gap_that_was_given_up_is_not_closed_by_a_policy_that_is_set_since(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, policy: str
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, 0, 11)
    clock.move(10)
    put(sorter, 20)
    sweeper.sweep()
    clock.move(3_590)
    assert not sweep_short_of_time(sorter, sweeper).complete
    sorter.set_policy("q", policy)
    for _ in range(3):
        clock.move(60)
        sweeper.sweep()
    told = dict.fromkeys(names(listener))
    assert [*told] == [("found", range(1, 11)), ("given_up", range(1, 11)), ("found", range(12, 20))]


def test_a_gap_that_was_given_up_for_a_message_stored_after_its_note_is_not_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, 0, 10)
    sweeper.sweep()
    clock.move(60)
    put(sorter, 1)
    put(beside(sorter, clock=MovableClock(clock() - 3_600)), 11)
    with monkeypatch.context() as death:
        death.setattr(sorter.stores.cursors, "move", killed)
        with pytest.raises(Killed):
            sweeper.sweep()
    clock.move(60)
    sweeper.sweep()
    told = [("found", range(1, 10)), ("given_up", range(2, 10)), ("closed", range(1, 2))]
    assert (names(listener), sorter.position("q")) == (told, 11)


def killed(*_: Any) -> Any:
    raise Killed


def sweep_short_of_time(sorter: StreamSorter, sweeper: Sweeper) -> Sweep:
    """Sweep, and let the time be over as soon as seq 1 is skipped."""
    skip, left = sorter.stores.items.skip, [100.0]

    def slow(tombstones: Tombstones, now: float) -> Any:
        left[0] = 40.0 if 1 in tombstones.seqs else 100.0
        return skip(tombstones, now)

    sorter.stores.items.skip = slow  # type: ignore[method-assign]
    done = sweeper.sweep(time_left=lambda: left[0])
    sorter.stores.items.skip = skip  # type: ignore[method-assign]
    return done


@pytest.mark.parametrize(
    ("came", "told"),
    [
        (range(1, 10), [("closed", range(1, 10))]),
        (range(1, 9), [("given_up", range(9, 10)), ("closed", range(1, 9))]),
        (range(5, 10), [("given_up", range(1, 5)), ("closed", range(5, 10))]),
    ],
    ids=["all", "the lower ones", "the upper ones"],
)
def test_what_comes_while_a_gap_is_given_up_is_closed_and_not_given_up(
    sorter: StreamSorter, clock: MovableClock, listener: Listener, came: range, told: list[tuple[str, range]]
) -> None:
    sweeper = Sweeper(sorter, on_gap=listener)
    sorter.set_policy("q", skip_after=600)
    put(sorter, 0, 10)
    sweeper.sweep()
    listener.told()
    clock.move(600)
    skip = sorter.stores.items.skip

    def late(*given: Any) -> Any:
        sorter.stores.items.skip = skip  # type: ignore[method-assign]
        put(sorter, *came)
        return skip(*given)

    sorter.stores.items.skip = late  # type: ignore[method-assign]
    for _ in range(3):
        sweeper.sweep()
        clock.move(60)
    assert (names(listener), sorter.position("q")) == (told, 10)


def test_a_gap_whose_stray_is_withdrawn_while_it_is_given_up_is_closed(
    sorter: StreamSorter, clock: MovableClock, sweeper: Sweeper, listener: Listener
) -> None:
    sorter.set_policy("q", skip_after=600)
    put(sorter, 0, 10)
    sweeper.sweep()
    clock.move(600)
    skip = sorter.stores.items.skip

    def late(*given: Any) -> Any:
        sorter.stores.items.skip = skip  # type: ignore[method-assign]
        sorter.withdraw("q", 10)
        return skip(*given)

    sorter.stores.items.skip = late  # type: ignore[method-assign]
    for _ in range(3):
        sweeper.sweep()
    told = [("found", range(1, 10)), ("given_up", range(9, 10)), ("closed", range(1, 9))]
    assert names(listener) == told


@pytest.mark.parametrize("gaps_a_queue", [1, 40])
def test_a_callback_that_takes_long_hears_of_every_gap_in_the_end_and_leaves_the_time_for_waking(
    clock: MovableClock, gaps_a_queue: int
) -> None:
    sorter = StreamSorter.in_memory(clock=clock, in_flight=4, gap_policy="skip after 1 second")
    queues = 100 // gaps_a_queue
    for number in range(queues):
        sorter.put_many(message(2 * seq, f"q{number}") for seq in range(gaps_a_queue + 1))
    watch = Stopwatch(55.0)
    told: list[tuple[str, range]] = []
    nudged_at: list[float] = []

    def on_gap(event: GapEvent) -> None:
        watch.sleep(2.0)
        told.append((event.queue, event.seqs))

    class Sleepers:
        def lagging(self, now: float) -> list[str]:  # noqa: ARG002  # the port's signature
            nudged_at.append(watch.now)
            return []

    sweeper = Sweeper(sorter, on_gap=on_gap, lagging=Sleepers())
    for _ in range(9):
        watch.now = 0.0
        clock.move(60)
        done = sweeper.sweep(time_left=watch.left)
    assert len(told) == len(set(told)) == queues * gaps_a_queue
    assert max(nudged_at) <= 27.5 + 4 * 2.0
    assert done.complete
