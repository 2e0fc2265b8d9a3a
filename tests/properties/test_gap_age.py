"""A policy gives up on a gap when it has been there long enough: never earlier, and at most one sweep later."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_sort import StreamSorter, Sweeper
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from stream_sort.sweeper import Sweep

PATIENCE = 30.0
PAUSES = st.sampled_from([1.0, 5.0, 17.0, 29.0, 31.0])
STEPS = st.lists(st.tuples(PAUSES, st.one_of(st.just("sweep"), st.integers(0, 8))), min_size=1, max_size=25)


class World:
    """A queue, and when the gap that holds it up began, as somebody knows who saw it all."""

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock, gap_policy=f"skip after {PATIENCE:g} seconds")
        self.stored: set[int] = set()
        self.position = -1
        self.began: float | None = None
        self.swept: float | None = None

    def put(self, seq: int) -> None:
        self.sorter.put({"queue": "q", "seq": seq})
        self.take({seq})

    def sweep(self) -> Sweep:
        done = Sweeper(self.sorter).sweep()
        for gap in done.skipped:
            self.take({*gap.seqs})
        self.swept = self.clock()
        return done

    def take(self, seqs: set[int]) -> None:
        """Some slots are filled now: the queue moves over them, or a gap begins, or nothing new happens."""
        self.stored |= seqs
        end = next(seq for seq in count(self.position + 1) if seq not in self.stored) - 1
        waits = any(seq > end for seq in self.stored)
        if not waits:
            self.began = None
        elif end != self.position or self.began is None:
            self.began = self.clock()
        self.position = end


@settings(max_examples=300)
@given(STEPS)
def test_a_policy_acts_when_a_gap_is_old_enough_and_at_most_one_sweep_later(
    steps: list[tuple[float, str | int]],
) -> None:
    world = World()
    for pause, step in steps:
        world.clock.move(pause)
        if isinstance(step, int):
            world.put(max(0, world.position + step))
            continue
        began, before = world.began, world.swept
        done = world.sweep()
        if done.skipped:
            assert began is not None
            assert world.clock() - began >= PATIENCE
        elif began is not None:
            assert world.clock() - max(began, before or 0.0) < PATIENCE
