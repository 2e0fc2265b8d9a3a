"""Which seqs are there, as runs: contiguous stretches of one queue with what they hold. Pure but for Arrow's arrays.

A run is a row: `first` to `last` are all there, in `rows` slots (more than there are seqs where some came twice), of
which some are tombstones or hold a late message. Millions of slots become a few rows where they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

RUNS = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("last", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("tombstones", pa.int64(), nullable=False),
        pa.field("late", pa.int64(), nullable=False),
    ]
)
SUMS = ("rows", "tombstones", "late")
# Runs that are held before they are sorted and joined.
HELD = 500_000


class RunCollector:
    """Takes slots in any order and keeps their runs; slots that come in order cost almost no memory."""

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._count = 0
        self._limit = HELD

    def take(self, slots: pa.RecordBatch) -> None:
        """Add slots, with the columns queue, seq, tombstone and late."""
        if slots.num_rows:
            self._hold(_adjoined(_single(slots)))

    def take_runs(self, runs: pa.RecordBatch) -> None:
        """Add runs that somebody else has found."""
        if runs.num_rows:
            self._hold(runs)

    def runs(self) -> pa.RecordBatch:
        """Return all runs so far, sorted by queue and seq; no two of a queue touch or overlap."""
        if self._held:
            self._held = [joined_runs(self._held)]
            self._count = self._held[0].num_rows
        return self._held[0] if self._held else pa.RecordBatch.from_pylist([], schema=RUNS)

    def _hold(self, runs: pa.RecordBatch) -> None:
        self._held.append(runs)
        self._count += runs.num_rows
        if self._count > self._limit:
            # What does not get shorter is not sorted again at every turn.
            self._limit = max(HELD, 2 * self.runs().num_rows)


def joined_runs(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the same slots in as few runs as possible, sorted by queue and seq."""
    table = pa.Table.from_batches(list(batches), schema=RUNS).sort_by([("queue", "ascending"), ("first", "ascending")])
    runs = _one_batch(table)
    if runs.num_rows < 2:  # noqa: PLR2004  # nothing to join
        return runs
    same = pc.equal(runs["queue"].slice(1), runs["queue"].slice(0, runs.num_rows - 1))
    last = runs["last"].slice(0, runs.num_rows - 1)
    if pc.any(pc.and_(same, pc.less(runs["last"].slice(1), last))).as_py():
        return _joined_one_by_one(runs)
    # first - 1, not last + 1: the highest seq of all is the highest of its type.
    touches = pc.less_equal(pc.subtract(runs["first"].slice(1), 1), last)
    return _folded(runs, pc.and_(same, touches))


def _single(slots: pa.RecordBatch) -> pa.RecordBatch:
    """Return each slot as a run of its own."""
    seq = slots["seq"]
    ones = pc.add(pc.multiply(seq, 0), 1)
    marks = (slots[name].cast(pa.int64()) for name in ("tombstone", "late"))
    return pa.RecordBatch.from_arrays([slots["queue"], seq, seq, ones, *marks], schema=RUNS)


def _adjoined(runs: pa.RecordBatch) -> pa.RecordBatch:
    """Return runs in the order they came, each joined with the next where that begins just after it."""
    count = runs.num_rows - 1
    same = pc.equal(runs["queue"].slice(1), runs["queue"].slice(0, count))
    follows = pc.equal(pc.subtract(runs["first"].slice(1), 1), runs["last"].slice(0, count))
    return _folded(runs, pc.and_(same, follows))


def _folded(runs: pa.RecordBatch, joins: pa.Array) -> pa.RecordBatch:
    """Return each run joined with the one before where `joins` says so, an entry for every run but the first."""
    breaks = pc.indices_nonzero(pc.invert(joins)).cast(pa.int64())
    starts = pa.concat_arrays([pa.array([0], pa.int64()), pc.add(breaks, 1)])
    ends = pa.concat_arrays([breaks, pa.array([runs.num_rows - 1], pa.int64())])
    columns = [runs["queue"].take(starts), runs["first"].take(starts), runs["last"].take(ends)]
    columns += [_sums(runs[name], starts, ends) for name in SUMS]
    return pa.RecordBatch.from_arrays(columns, schema=RUNS)


def _sums(values: pa.Array, starts: pa.Array, ends: pa.Array) -> pa.Array:
    """Return the sum of each stretch: of all up to its end, less what was before it."""
    so_far = pc.cumulative_sum(values)
    return pc.add(pc.subtract(so_far.take(ends), so_far.take(starts)), values.take(starts))


def _joined_one_by_one(runs: pa.RecordBatch) -> pa.RecordBatch:
    """Sorted runs of which some lie within others: where history is kept twice, which is rare."""
    joined: list[dict[str, Any]] = []
    for run in runs.to_pylist():
        before = joined[-1] if joined else None
        if before is None or before["queue"] != run["queue"] or run["first"] - 1 > before["last"]:
            joined.append(run)
            continue
        before["last"] = max(before["last"], run["last"])
        for name in SUMS:
            before[name] += run[name]
    return pa.RecordBatch.from_pylist(joined, schema=RUNS)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=RUNS)
