"""Gap policies keep up with any number of losses: a gap is as old as the oldest message stored beyond it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import GapPolicy, NotWithdrawn, Status, StreamSorter, Sweeper
from stream_sort.model.message import MAX_SEQ
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import beside, forget_arrival

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.model.records import Tombstones

MINUTE = 60.0


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def sorter(clock: MovableClock) -> StreamSorter:
    return StreamSorter.in_memory(clock=clock)


def put(sorter: StreamSorter, seqs: Iterable[int], queue: str = "q") -> None:
    sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)


def skipped(sorter: StreamSorter) -> list[range]:
    return [gap.seqs for gap in Sweeper(sorter).sweep().skipped]


def test_even_ids_do_not_take_a_policy_time_each(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=10)
    put(sorter, range(2, 201, 2))
    clock.move(10)
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 200


def test_a_hundred_thousand_slots_are_released_within_one_policy_time_and_one_sweep(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=10)
    put(sorter, range(2, 100_001, 2))
    clock.move(10)
    done = Sweeper(sorter).sweep()
    assert (len(done.skipped), sorter.position("q")) == (50_000, 100_000)


def test_what_was_stored_a_week_ago_is_released_by_the_first_sweep(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, 2, 4))
    clock.move(7 * 86_400)
    assert skipped(sorter) == [range(1, 2), range(3, 4)]
    assert sorter.position("q") == 4


def test_a_lossy_stream_stays_near_its_end_for_an_hour(sorter: StreamSorter, clock: MovableClock) -> None:
    """10 messages a second, 1 % lost, skip after 30 s, a sweep a minute."""
    sorter.set_policy("q", skip_after=30)
    rate, lost_each, behind = 10, 100, 0
    for minute in range(60):
        for second in range(60):
            first = (minute * 60 + second) * rate
            put(sorter, (seq for seq in range(first, first + rate) if seq % lost_each != 50))
            clock.move(1)
        behind = max(behind, first + rate - 1 - sorter.position("q"))
        Sweeper(sorter).sweep()
    assert behind <= rate * (30 + 2 * MINUTE)
    clock.move(30)
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 60 * 60 * rate - 1


def test_a_move_does_not_make_a_gap_younger(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 2, 4))
    clock.move(29)
    put(sorter, (1,))
    clock.move(1)
    assert skipped(sorter) == [range(3, 4)]


def test_a_late_neighbour_does_not_shorten_the_time_of_a_gap(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 2))
    clock.move(29)
    put(sorter, (4,))
    clock.move(1)
    assert skipped(sorter) == [range(1, 2)]
    clock.move(28)
    assert skipped(sorter) == []
    clock.move(1)
    assert skipped(sorter) == [range(3, 4)]


def test_a_gap_is_due_by_an_older_message_beyond_a_younger_one(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 6))
    clock.move(29)
    put(sorter, (2, 4, 8))
    clock.move(1)
    assert skipped(sorter) == [range(1, 2), range(3, 4), range(5, 6)]
    assert sorter.position("q") == 6


@pytest.mark.parametrize("behind", [-MINUTE, MINUTE])
def test_clocks_that_differ_by_a_minute_skip_nothing_early_by_more_than_that(
    sorter: StreamSorter, clock: MovableClock, behind: float
) -> None:
    sorter.set_policy("q", skip_after=300)
    writer = beside(sorter, clock=MovableClock(clock() - behind))
    put(writer, (0, 2, 4))
    clock.move(300 - MINUTE - 1)
    assert skipped(sorter) == []
    clock.move(2 * MINUTE + 2)
    assert skipped(sorter) == [range(1, 2), range(3, 4)]


def test_a_tombstone_that_was_put_a_week_ago_makes_no_gap_old(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0,))
    sorter.skip("q", [5])
    clock.move(7 * 86_400)
    done = Sweeper(sorter).sweep()
    assert (done.skipped, done.waiting, done.gap_ages) == ([], [], {}), "nobody waits for these"
    put(sorter, (3,))
    clock.move(29)
    assert skipped(sorter) == []
    clock.move(1)
    assert skipped(sorter) == [range(1, 3)]
    assert sorter.position("q") == 3


def test_a_seq_that_is_a_time_by_mistake_makes_no_other_gap_old(sorter: StreamSorter, clock: MovableClock) -> None:
    """What lies beyond a gap that no policy skips says nothing about the gaps before it."""
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 10**12))
    clock.move(3_600)
    put(sorter, (2,))
    done = Sweeper(sorter).sweep()
    assert (done.skipped, done.gap_ages) == ([], {"q": 0.0})
    clock.move(30)
    assert skipped(sorter) == [range(1, 2)]


def test_a_gap_before_a_message_without_a_time_is_as_old_as_the_sweep_that_first_saw_it(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 2, 1, 4))
    forget_arrival(sorter, 4)
    clock.move(40)
    assert skipped(sorter) == []
    clock.move(29)
    assert skipped(sorter) == []
    clock.move(1)
    assert skipped(sorter) == [range(3, 4)]


def test_a_message_without_a_time_makes_no_gap_old_that_it_does_not_hold_up(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 2))
    clock.move(29)
    put(sorter, (4,))
    forget_arrival(sorter, 4)
    clock.move(1)
    assert skipped(sorter) == [range(1, 2)]


def test_a_time_that_lies_ahead_counts_as_none(sorter: StreamSorter, clock: MovableClock) -> None:
    sorter.set_policy("q", skip_after=30)
    put(beside(sorter, clock=MovableClock(clock() + 86_400)), (0, 2))
    Sweeper(sorter).sweep_all()
    clock.move(30)
    done = Sweeper(sorter).sweep_all()
    assert [gap.seqs for gap in done.skipped] == [range(1, 2)]


def test_a_message_that_arrives_while_a_slow_sweep_is_under_way_makes_no_gap_old(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    # The tombstone marks the queue, though no message waits.
    sorter.skip("q", [3])
    clock.move(100)
    began = clock()
    clock.move(20)
    put(sorter, (2,))
    assert Sweeper(sorter).sweep(now=began).skipped == []
    clock.move(29)
    assert skipped(sorter) == []
    clock.move(1)
    assert skipped(sorter) == [range(2)]


def counted(sorter: StreamSorter) -> Counter[str]:
    """Counts the calls of the items table from now on."""
    calls: Counter[str] = Counter()
    items = sorter.stores.items
    for name in ("page", "arrivals", "look", "skip", "highest"):
        setattr(items, name, counting(calls, name, getattr(items, name)))
    return calls


def counting(calls: Counter[str], name: str, call: Any) -> Any:
    def counted(*args: Any) -> Any:
        calls[name] += 1
        return call(*args)

    return counted


@pytest.mark.parametrize("slots", [2_000, 20_000])
def test_a_walk_reads_one_page_for_a_hundred_slots_at_most(
    sorter: StreamSorter, clock: MovableClock, slots: int
) -> None:
    sorter.set_policy("q", skip_after=10)
    put(sorter, range(1, slots, 2))
    clock.move(10)
    calls = counted(sorter)
    Sweeper(sorter).sweep()
    assert sorter.position("q") == slots - 1
    assert calls["page"] + calls["arrivals"] + calls["look"] <= slots / 100
    assert calls["skip"] <= slots / 2 / 100


@pytest.mark.parametrize("policy", ["wait", "skip after 86400 seconds"])
def test_a_queue_whose_gap_is_known_not_to_be_due_costs_no_walk(
    sorter: StreamSorter, clock: MovableClock, policy: str
) -> None:
    sorter.set_policy("q", policy)
    put(sorter, range(1, 2_000, 2))
    clock.move(60)
    Sweeper(sorter).sweep()
    calls = counted(sorter)
    for age in (120, 180, 240):
        clock.move(60)
        assert Sweeper(sorter).sweep().gap_ages == {"q": age}
    assert (calls["page"], calls["arrivals"], calls["look"]) == (0, 0, 3)


def test_a_queue_that_moves_on_to_another_gap_is_measured_anew(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0, 2))
    clock.move(100)
    put(sorter, (4,))
    assert Sweeper(sorter).sweep().gap_ages == {"q": 100.0}
    clock.move(10)
    put(sorter, (1,))
    assert Sweeper(sorter).sweep().gap_ages == {"q": 10.0}
    assert sorter.explain("q").waiting_since == clock() - 10


def test_a_message_that_was_withdrawn_makes_no_gap_old_any_more(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0, 9))
    clock.move(60)
    put(sorter, (2,))
    assert Sweeper(sorter).sweep().gap_ages == {"q": 60.0}
    sorter.withdraw("q", 9, reason="a wrong seq")
    clock.move(10)
    assert Sweeper(sorter).sweep().gap_ages == {"q": 10.0}
    sorter.set_policy("q", skip_after=30)
    assert skipped(sorter) == []


def test_a_policy_that_is_shortened_acts_at_the_next_sweep(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0, 2, 4))
    clock.move(60)
    Sweeper(sorter).sweep()
    sorter.set_policy("q", skip_after=30)
    assert skipped(sorter) == [range(1, 2), range(3, 4)]


def test_one_sweep_skips_up_to_a_gap_that_is_too_long_and_tells_of_that_one(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=30)
    put(sorter, (0, 2, 4, 10**6, 10**6 + 2))
    clock.move(30)
    done = Sweeper(sorter).sweep()
    assert ([gap.seqs for gap in done.skipped], sorter.position("q")) == ([range(1, 2), range(3, 4)], 4)
    assert [gap.seqs for gap in done.too_long] == [range(5, 10**6)]
    assert (done.waiting, done.gap_ages) == (["q"], {"q": 30.0})


def test_i7_a_queue_with_the_longest_gap_there_can_be_stops_no_sweep_and_is_explained(clock: MovableClock) -> None:
    sorter = StreamSorter.in_memory(clock=clock, gap_policy=GapPolicy(0.0))
    sorter.open("long", first_seq=-1)
    put(sorter, (MAX_SEQ,), queue="long")
    put(sorter, (1,), queue="other")
    done = Sweeper(sorter).sweep()
    assert ([gap.seqs for gap in done.too_long], done.failed) == ([range(-1, MAX_SEQ)], [])
    assert sorter.position("other") == 1
    assert sorter.explain("long").gaps == [range(-1, MAX_SEQ)]


def stray_before_a_young_message(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0, 10**12))
    clock.move(7_200)
    Sweeper(sorter).sweep()


def tombstone_ahead(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0,))
    clock.move(120)
    sorter.skip("q", [15], "never sent")
    clock.move(7_200)
    Sweeper(sorter).sweep()


def withdrawn_message(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0,))
    clock.move(120)
    put(sorter, (5,))
    Sweeper(sorter).sweep()
    clock.move(7_200)
    sorter.withdraw("q", 5, "a wrong seq")


def mark_of_a_duplicate(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0,))
    clock.move(120)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert sorter.stores.cursors.set_waiting(row, clock())
    clock.move(7_200)


@pytest.mark.parametrize("untimed", [False, True], ids=["stored while the sweep runs", "without an arrival time"])
@pytest.mark.parametrize(
    "before", [stray_before_a_young_message, tombstone_ahead, withdrawn_message, mark_of_a_duplicate]
)
def test_a_gap_seconds_old_is_not_given_up_for_an_age_on_the_row_that_is_not_its_own(
    sorter: StreamSorter, clock: MovableClock, before: Any, *, untimed: bool
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    before(sorter, clock)
    start = clock()
    clock.move(0.5)
    put(sorter, (3,))
    if untimed:
        forget_arrival(sorter, 3)
    done = Sweeper(sorter).sweep(now=start)
    assert (done.skipped, done.gap_ages) == ([], {"q": 0.0})
    clock.move(3_600)
    assert skipped(sorter) == [range(1, 3)], "it ages from the first sweep that saw it"


def test_a_message_without_a_time_is_not_as_old_as_a_stray_behind_a_tombstone(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, 10**12))
    sorter.skip("q", [2])
    clock.move(7_200)
    Sweeper(sorter).sweep()
    put(sorter, (3,))
    forget_arrival(sorter, 3)
    assert skipped(sorter) == []


def test_a_gap_that_is_filled_in_part_by_a_thousand_messages_is_not_younger_for_it(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (5_000,))
    Sweeper(sorter).sweep()
    clock.move(3_540)
    put(sorter, range(1, 1_001))
    assert Sweeper(sorter).sweep().gap_ages == {"q": 3_540.0}
    clock.move(60)
    assert skipped(sorter) == [range(1), range(1_001, 5_000)]
    assert sorter.position("q") == 5_000


def test_a_gap_before_a_tombstone_before_a_gap_too_long_is_told_as_too_long(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=60)
    put(sorter, (0, 10**12))
    sorter.skip("q", [2])
    clock.move(60)
    for age in (60.0, 120.0):
        done = Sweeper(sorter).sweep()
        assert [gap.seqs for gap in done.too_long] == [range(1, 10**12)]
        assert (done.skipped, done.gap_ages) == ([], {"q": age})
        clock.move(60)
    remedy = sorter.explain("q").remedy
    assert "no policy skips" in remedy
    assert f"withdraw('q', {10**12})" in remedy


def test_a_gap_whose_stray_is_withdrawn_while_it_is_given_up_swallows_no_good_message(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, range(11))
    put(sorter, (4_000,))
    clock.move(3_600)
    skip = sorter.stores.items.skip

    def late(tombstones: Tombstones, now: float) -> Any:
        sorter.stores.items.skip = skip  # type: ignore[method-assign]
        sorter.withdraw("q", 4_000, reason="a wrong seq")
        return skip(tombstones, now)

    sorter.stores.items.skip = late  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep()
    assert ([gap.seqs for gap in done.skipped], done.waiting, sorter.position("q")) == ([range(3_999, 4_000)], [], 10)
    put(sorter, range(11, 400))
    assert sorter.position("q") == 399


def test_a_stray_is_not_withdrawn_once_the_gap_before_it_is_being_given_up(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, 4_000))
    clock.move(3_600)
    skip = sorter.stores.items.skip
    refused = []

    def late(tombstones: Tombstones, now: float) -> Any:
        done = skip(tombstones, now)
        with pytest.raises(NotWithdrawn) as caught:
            sorter.withdraw("q", 4_000, reason="a wrong seq")
        refused.append(caught.value)
        return done

    sorter.stores.items.skip = late  # type: ignore[method-assign]
    assert skipped(sorter) == [range(1, 4_000)]
    assert (sorter.position("q"), len(refused) > 1) == (4_000, True)


def gap_that_is_old_by_a_stray_far_behind(sorter: StreamSorter, clock: MovableClock) -> None:
    """The stray is 2700; between it and the gap 1 to 300 lie over two thousand messages that are younger."""
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, 2_700))
    clock.move(3_000)
    put(sorter, range(301, 2_601))
    for _ in range(4):
        clock.move(1)
        Sweeper(sorter).sweep()
    put(sorter, range(1, 101))


@pytest.mark.parametrize("call", [1, 2, 3])
def test_a_stray_that_is_withdrawn_while_what_is_left_of_its_gap_is_given_up_swallows_no_good_message(
    sorter: StreamSorter, clock: MovableClock, call: int
) -> None:
    gap_that_is_old_by_a_stray_far_behind(sorter, clock)
    clock.move(600)
    skip, calls, withdrawn = sorter.stores.items.skip, [], []

    def late(tombstones: Tombstones, now: float) -> Any:
        calls.append(tombstones)
        if len(calls) == call:
            with suppress(NotWithdrawn):
                withdrawn.append(sorter.withdraw("q", 2_700, reason="a wrong seq"))
        return skip(tombstones, now)

    sorter.stores.items.skip = late  # type: ignore[method-assign]
    Sweeper(sorter).sweep()
    is_late = sorter.put({"queue": "q", "seq": 180}).status is Status.LATE
    # Once the slot before it is filled, it stays.
    assert (bool(withdrawn), is_late) == ((True, False) if call == 1 else (False, True))


def test_a_gap_that_is_filled_from_below_and_not_due_is_not_measured_anew_as_far_as_before(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    gap_that_is_old_by_a_stray_far_behind(sorter, clock)
    calls = counted(sorter)
    assert Sweeper(sorter).sweep().gap_ages == {"q": 3_004.0}
    assert calls["arrivals"] <= 2


def test_an_old_message_behind_thousands_of_young_ones_makes_every_gap_before_it_due(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, *range(5_000, 5_100)))
    clock.move(7 * 86_400)
    put(sorter, (seq for seq in range(2, 3_500) if seq % 100))
    # Each sweep looks at a thousand more.
    for _ in range(5):
        clock.move(MINUTE)
        Sweeper(sorter).sweep()
    assert sorter.position("q") == 5_099


def test_the_next_gap_is_not_skipped_late_for_thousands_of_young_messages_before_an_old_one(
    sorter: StreamSorter, clock: MovableClock
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (0, 2, *range(3_000, 3_100)))
    for _ in range(50):
        clock.move(MINUTE)
        Sweeper(sorter).sweep()
    put(sorter, (*range(4, 2_500), 1))
    for _ in range(10):
        clock.move(MINUTE)
        Sweeper(sorter).sweep()
    assert sorter.position("q") == 3_099


@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_a_gap_is_as_old_as_what_lay_beyond_a_gap_too_long_once_that_is_split(
    sorter: StreamSorter, clock: MovableClock, sweeps: int
) -> None:
    sorter.set_policy("q", skip_after=3_600)
    put(sorter, (15_000,))
    clock.move(3_600)
    put(sorter, (1,))
    for _ in range(sweeps):
        assert Sweeper(sorter).sweep().gap_ages == {"q": 0.0}
    put(sorter, (7_000,))
    assert skipped(sorter) == [range(1), range(2, 7_000), range(7_001, 15_000)]


def test_a_walk_over_tombstones_ends_with_the_time_and_says_so(sorter: StreamSorter, clock: MovableClock) -> None:
    put(sorter, (0,))
    sorter.skip("q", range(2, 20_001))
    calls = counted(sorter)
    arrivals = sorter.stores.items.arrivals

    def slow(*given: Any) -> Any:
        clock.move(1)
        return arrivals(*given)

    sorter.stores.items.arrivals = slow  # type: ignore[method-assign]
    end = clock() + 10
    done = Sweeper(sorter).sweep(time_left=lambda: end - clock())
    assert (done.complete, calls["arrivals"]) == (False, 6)
