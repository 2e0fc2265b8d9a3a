"""What an audit knows of queues: which seqs are stored, as runs, and where cursors and consumers are. Pure.

A run is a row: `first` to `last` are all there, in `rows` slots (more than there are seqs where some came twice), of
which some are tombstones or hold a late message. Millions of slots become a few rows where they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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


@dataclass(slots=True)
class QueueAudit:
    """One queue. `runs` are pairs of first and last seq, ascending, with a gap between each two.

    `position` and `first_seq` are those of its cursor row, None without one; `cursor_lost` where there was one, and
    `unbegun` where there never was: then they are what the first one will say. `trimmed_through` is how far its
    messages were archived and then deleted; `no_slot` counts items in no slot; `checkpoints` are seqs by consumer.
    `error` says why the queue could not be looked at, or not whole.
    """

    queue: str
    runs: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    tombstones: int = 0
    late: int = 0
    conflicts: int = 0
    position: int | None = None
    first_seq: int | None = None
    trimmed_through: int | None = None
    cursor_lost: bool = False
    unbegun: bool = False
    no_slot: int = 0
    stuck: bool = False
    checkpoints: dict[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def seqs(self) -> int:
        """How many seqs are there, each counted once."""
        return sum(last - first + 1 for first, last in self.runs)

    @property
    def messages(self) -> int:
        """How many messages are there: tombstones and what came twice do not count."""
        return self.seqs - self.tombstones

    @property
    def duplicates(self) -> int:
        """How many slots came again."""
        return self.rows - self.seqs

    @property
    def first(self) -> int | None:
        """The lowest seq."""
        return self.runs[0][0] if self.runs else None

    @property
    def last(self) -> int | None:
        """The highest seq."""
        return self.runs[-1][1] if self.runs else None

    def gaps(self) -> list[range]:
        """Return all missing seqs from where the queue must begin to its position or its highest seq."""
        return list(self._gaps())

    def holds(self, seq: int) -> bool:
        """Return True if a slot is taken."""
        return any(first <= seq <= last for first, last in self.runs)

    def lag(self) -> dict[str, int]:
        """Return, by consumer, how many seqs are released and not yet done; below 0 for one ahead of the position."""
        if self.position is None:
            return {}
        return {name: self.position - seq for name, seq in sorted(self.checkpoints.items())}

    def _gaps(self) -> Iterator[range]:
        expected = self._start()
        for first, last in self.runs:
            if expected is not None and first > expected:
                yield range(expected, first)
            expected = last + 1 if expected is None else max(expected, last + 1)
        if self.position is not None and expected is not None and expected <= self.position:
            yield range(expected, self.position + 1)

    def _start(self) -> int | None:
        """Return the lowest seq that must be there; None for wherever the first one is."""
        if self.first_seq is None:
            return None
        return self.first_seq if self.trimmed_through is None else max(self.first_seq, self.trimmed_through + 1)


def queues_of(runs: pa.RecordBatch) -> dict[str, QueueAudit]:
    """Return the queues that joined runs, sorted, tell of."""
    found: dict[str, QueueAudit] = {}
    for queue, first, last, rows, tombstones, late in zip(
        *(column.to_pylist() for column in runs.columns), strict=True
    ):
        told = found.get(queue)
        if told is None:
            told = found[queue] = QueueAudit(queue)
        told.runs.append((first, last))
        told.rows += rows
        told.tombstones += tombstones
        told.late += late
    return found


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
