"""Which gaps a sweep skips, held against the definition: a gap is as old as the oldest message stored beyond it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_sort import NotWithdrawn, StreamSorter, Sweeper
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import forget_arrival

if TYPE_CHECKING:
    from stream_sort.upkeep.sweep import Sweep

PATIENCE = 30.0
MAX_GAP = 6
PAUSES = st.sampled_from([0.0, 1.0, 5.0, 17.0, 29.0, 30.0, 31.0])
PUTS = st.tuples(st.just("put"), st.integers(0, 12))
OTHERS = st.tuples(st.sampled_from(["skip", "untimed", "withdraw"]), st.integers(0, 12))
SWEEPS = st.tuples(st.sampled_from(["sweep", "sweep_all"]), st.just(0))
# A message that is stored while a sweep runs: after its `now`, and before it comes to the queue.
MEANWHILE = st.tuples(st.just("meanwhile"), st.integers(0, 12))
STEPS = st.lists(st.tuples(PAUSES, st.one_of(PUTS, PUTS, OTHERS, SWEEPS, MEANWHILE)), min_size=1, max_size=30)


class Model:
    """A queue, and the definition: slots with their arrivals, None for a tombstone.

    `untimed` are those without a time.
    """

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock, gap_policy=f"skip after {PATIENCE:g} seconds")
        self.slots: dict[int, float | None] = {}
        self.untimed: set[int] = set()
        self.now = self.clock()

    @property
    def position(self) -> int:
        end = -1
        while end + 1 in self.slots:
            end += 1
        return end

    def fill(self, name: str, seq: int) -> None:
        is_new = seq not in self.slots
        if name == "skip":
            self.sorter.skip("q", seq)
        else:
            self.sorter.put({"queue": "q", "seq": seq})
        self.slots.setdefault(seq, None if name == "skip" else self.clock())
        if name == "untimed" and is_new:
            forget_arrival(self.sorter, seq)
            self.untimed.add(seq)

    def withdraw(self, seq: int) -> None:
        if not self.slots:
            return
        with contextlib.suppress(NotWithdrawn):
            self.sorter.withdraw("q", seq, f"at {self.clock()}")
            self.slots.pop(seq, None)
            self.untimed.discard(seq)

    def gaps(self) -> list[range]:
        expected, found = self.position + 1, []
        for seq in sorted(slot for slot in self.slots if slot >= expected):
            if seq > expected:
                found.append(range(expected, seq))
            expected = seq + 1
        return found

    def since(self, gap: range, *, at_most: bool) -> float | None:
        """When the oldest message beyond a gap arrived; what lies beyond a gap too long counts for that one only."""
        ends = [other.start for other in self.gaps() if other.start > gap.start and len(other) > MAX_GAP]
        return self.oldest(gap.stop, min(ends, default=10**9), at_most=at_most)

    def oldest(self, first: int, end: int, *, at_most: bool) -> float | None:
        """When the oldest message of a range arrived, at the earliest (`at_most` so old) or at the latest."""
        arrivals = []
        for seq, at in self.slots.items():
            if first <= seq < end and at is not None:
                arrivals.append(self.now if seq in self.untimed and not at_most else at)
        return min(arrivals, default=None)

    def due(self, *, at_most: bool) -> list[range]:
        """Every gap that is old enough, up to the first that is not, or that is too long."""
        due = []
        for gap in self.gaps():
            since = self.since(gap, at_most=at_most)
            if since is None or self.now - since < PATIENCE or len(gap) > MAX_GAP:
                break
            due.append(gap)
        return due

    def sweep(self, name: str) -> Sweep:
        done: Sweep = getattr(Sweeper(self.sorter, max_gap=MAX_GAP), name)(now=self.now)
        for gap in done.skipped:
            self.slots.update(dict.fromkeys(gap.seqs))
        return done

    def held_up_since(self, *, at_most: bool) -> float | None:
        left = self.gaps()[:1]
        since = self.since(left[0], at_most=at_most) if left else None
        if left and since is None:
            # Nothing but tombstones before a gap that is too long: what lies beyond that is held up.
            since = self.oldest(left[0].stop, 10**9, at_most=at_most)
        return since

    def step(self, name: str, seq: int) -> bool:
        """Do one step; True if a sweep comes now."""
        self.now = self.clock()
        if name == "meanwhile":
            self.clock.move(1.0)
        if name in {"put", "skip", "untimed", "meanwhile"}:
            self.fill(name, max(0, self.position + seq))
        elif name == "withdraw":
            self.withdraw(self.position + seq)
        return name in {"sweep", "sweep_all", "meanwhile"}


@settings(max_examples=600, deadline=None)
@given(STEPS)
def test_a_sweep_skips_what_is_due_and_nothing_else_and_tells_how_old_the_next_gap_is(
    steps: list[tuple[float, tuple[str, int]]],
) -> None:
    model = Model()
    for pause, (name, seq) in steps:
        model.clock.move(pause)
        if not model.step(name, seq):
            continue
        must, may = model.due(at_most=False), model.due(at_most=True)
        done = model.sweep("sweep_all" if name == "meanwhile" else name)
        skipped = [gap.seqs for gap in done.skipped]
        # A message without a time ages from the first sweep that saw it.
        assert must == skipped[: len(must)]
        assert skipped == may[: len(skipped)]
        assert model.sorter.position("q") == model.position
        check_age(model, done)


def check_age(model: Model, done: Sweep) -> None:
    oldest, youngest = model.held_up_since(at_most=True), model.held_up_since(at_most=False)
    if oldest is None or youngest is None:
        assert done.gap_ages == {}
        return
    assert list(done.gap_ages) == ["q"]
    assert max(0.0, model.now - youngest) <= done.gap_ages["q"] <= max(0.0, model.now - oldest)
    # By the usual limit none of these gaps is too long.
    if not model.untimed:
        waits = model.oldest(model.position + 1, 10**9, at_most=True)
        assert model.sorter.explain("q").waiting_since == waits
