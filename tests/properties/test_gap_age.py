"""Which gaps a sweep skips, held against the definition: a gap is as old as the oldest message stored beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_sort import StreamSorter, Sweeper
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from stream_sort.sweeper import Sweep

PATIENCE = 30.0
MAX_GAP = 6
PAUSES = st.sampled_from([0.0, 1.0, 5.0, 17.0, 29.0, 30.0, 31.0])
PUTS = st.tuples(st.just("put"), st.integers(0, 12))
SKIPS = st.tuples(st.just("skip"), st.integers(0, 12))
SWEEPS = st.tuples(st.sampled_from(["sweep", "sweep_all"]), st.just(0))
STEPS = st.lists(st.tuples(PAUSES, st.one_of(PUTS, PUTS, PUTS, SKIPS, SWEEPS)), min_size=1, max_size=30)


class Model:
    """A queue, and the definition: slots with their arrivals, None for a tombstone."""

    def __init__(self) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock, gap_policy=f"skip after {PATIENCE:g} seconds")
        self.slots: dict[int, float | None] = {}

    @property
    def position(self) -> int:
        end = -1
        while end + 1 in self.slots:
            end += 1
        return end

    def fill(self, name: str, seq: int) -> None:
        if name == "put":
            self.sorter.put({"queue": "q", "seq": seq})
        else:
            self.sorter.skip("q", seq)
        self.slots.setdefault(seq, self.clock() if name == "put" else None)

    def gaps(self) -> list[range]:
        expected, found = self.position + 1, []
        for seq in sorted(slot for slot in self.slots if slot >= expected):
            if seq > expected:
                found.append(range(expected, seq))
            expected = seq + 1
        return found

    def since(self, gap: range) -> float | None:
        """When the oldest message beyond a gap arrived; what lies beyond a gap too long counts for that one only."""
        ends = [other.start for other in self.gaps() if other.start > gap.start and len(other) > MAX_GAP]
        return self.oldest(gap.stop, min(ends, default=10**9))

    def oldest(self, first: int, end: int) -> float | None:
        return min((at for seq, at in self.slots.items() if first <= seq < end and at is not None), default=None)

    def due(self) -> list[range]:
        """Every gap that is old enough, up to the first that is not, or that is too long."""
        due = []
        for gap in self.gaps():
            since = self.since(gap)
            if since is None or self.clock() - since < PATIENCE or len(gap) > MAX_GAP:
                break
            due.append(gap)
        return due

    def sweep(self, name: str) -> Sweep:
        done: Sweep = getattr(Sweeper(self.sorter, max_gap=MAX_GAP), name)()
        for gap in done.skipped:
            self.slots.update(dict.fromkeys(gap.seqs))
        return done


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_a_sweep_skips_what_is_due_and_nothing_else_and_tells_how_old_the_next_gap_is(
    steps: list[tuple[float, tuple[str, int]]],
) -> None:
    model = Model()
    for pause, (name, seq) in steps:
        model.clock.move(pause)
        if name in {"put", "skip"}:
            model.fill(name, max(0, model.position + seq))
            continue
        due = model.due()
        done = model.sweep(name)
        assert [gap.seqs for gap in done.skipped] == due
        assert model.sorter.position("q") == model.position
        left = model.gaps()[:1]
        since = model.since(left[0]) if left else None
        if left and since is None:
            # Nothing but tombstones before a gap that is too long: what lies beyond that is held up.
            since = model.oldest(left[0].stop, 10**9)
        ages = {} if since is None else {"q": model.clock() - since}
        assert done.gap_ages == ages
        # By the usual limit none of these gaps is too long.
        if model.slots:
            assert model.sorter.explain("q").waiting_since == model.oldest(model.position + 1, 10**9)
