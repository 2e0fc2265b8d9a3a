"""What `stream-sort report` counts of a period is what was put in it, whatever order and rhythm messages came in."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort import StreamSorter
from stream_sort.insight import traffic
from stream_sort.insight.traffic import BINS, TrafficCounts, walk_queues
from stream_sort.model.slots import expand
from stream_sort.testing.clock import MovableClock

PAUSES = st.sampled_from([0.0, 1.0, 30.0, 100.0, 1_000.0])
Put = tuple[float, list[tuple[str, int]]]


@st.composite
def histories(draw: st.DrawFn) -> list[Put]:
    """Puts into three queues, in any order, and how long after the one before each came."""
    slots = [(queue, seq) for queue in "abc" for seq in range(draw(st.integers(0, 15)))]
    puts: list[Put] = []
    for slot in draw(st.permutations(slots)):
        if puts and draw(st.booleans()):
            puts[-1][1].append(slot)
        else:
            puts.append((draw(PAUSES), [slot]))
    return puts


class Past:
    """A sorter with a history, and what came when."""

    def __init__(self, puts: list[Put], skips: list[tuple[str, int]]) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock)
        self.arrived: list[float] = []
        self.skipped: list[float] = []
        self.released: list[float] = []
        for pause, slots in puts:
            self.clock.move(pause)
            self.note(partial(self.put, slots))
        for queue, seq in skips:
            self.clock.move(1.0)
            self.note(partial(self.skip, queue, seq))

    def note(self, act: Any) -> None:
        before = {queue: self.position(queue) for queue in "abc"}
        act()
        for queue, old in before.items():
            found = self.sorter.stores.items.page(queue, old, self.position(queue), 100).slots
            self.released += [self.clock() for entry in expand(found) if not entry.is_tombstone]

    def position(self, queue: str) -> int:
        return self.sorter.position(queue)

    def put(self, slots: list[tuple[str, int]]) -> None:
        self.sorter.put_many([{"queue": queue, "seq": seq} for queue, seq in slots])
        self.arrived += [self.clock()] * len(slots)

    def skip(self, queue: str, seq: int) -> None:
        self.skipped += [self.clock()] * len(self.sorter.skip(queue, [seq]).skipped)

    def counted(self, begin: float, reads: int) -> TrafficCounts:
        rows = self.sorter.stores.cursors.rows(None).rows
        end = self.clock()
        walks = walk_queues(self.sorter.stores.items, rows, (begin, end), reads, self.sorter.in_flight)
        return TrafficCounts.of(walks, begin, end)


SKIPS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 16)), max_size=4)
BACK = st.sampled_from([1.0, 60.0, 500.0, 5_000.0, 100_000.0])


@pytest.fixture(autouse=True, scope="module")
def small_pages() -> Any:
    """Pages that are small beside the queues."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traffic, "FIRST_PAGE", 2)
        patch.setattr(traffic, "PAGE", 3)
        yield


@given(histories(), SKIPS, BACK)
def test_with_enough_reads_every_message_of_the_period_is_counted_once(
    puts: list[Put], skips: list[tuple[str, int]], back: float
) -> None:
    past = Past(puts, skips)
    begin = past.clock() - back
    told = past.counted(begin, 1_000)
    assert told.is_complete
    series = (past.arrived, past.released, past.skipped)
    assert told.totals == tuple(sum(at >= begin for at in times) for times in series)


@given(histories(), SKIPS, BACK, st.integers(0, 8))
def test_with_too_few_reads_what_is_said_to_be_complete_is_and_the_rest_is_no_more_than_there_was(
    puts: list[Put], skips: list[tuple[str, int]], back: float, reads: int
) -> None:
    past = Past(puts, skips)
    begin = past.clock() - back
    told = past.counted(begin, reads)
    for counts, times in zip(
        (told.arrived, told.released, told.skipped), (past.arrived, past.released, past.skipped), strict=True
    ):
        true = [0] * BINS
        for at in times:
            if at >= begin:
                true[min(BINS - 1, int((at - begin) / back * BINS))] += 1
        for number, (count, there) in enumerate(zip(counts, true, strict=True)):
            if begin + number * told.step >= told.complete_since:
                assert count == there
        assert sum(counts) <= sum(true)
