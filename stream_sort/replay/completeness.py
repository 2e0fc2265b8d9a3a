"""The slots of ranges as they pass: each range with its own, every seq once, ascending, none missing. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.errors import MissingItems, StoreError
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.replay.ranges import Part


class Completeness:
    """Watches the slots of one range go by: every seq once, ascending, none missing, tombstones counted.

    A hole raises MissingItems, or is noted in `holes` when it `may_have_holes`.
    """

    def __init__(self, wanted: Range, *, may_have_holes: bool = False) -> None:
        self._range = wanted
        self._may_have_holes = may_have_holes
        self._last = wanted.after
        self.rows = 0
        self.tombstones = 0
        self.holes: list[Range] = []

    def watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same batches, checked as they pass; what is missing at the end is found there."""
        for batch in batches:
            self.take(batch)
            yield batch
        self.finish()

    def take(self, batch: pa.RecordBatch) -> None:
        """Check the next slots of the range."""
        if not batch.num_rows:
            return
        seqs = batch.column("seq")
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        if first <= self._last or last > self._range.through:
            raise self._disorder(first, last)
        if first > self._last + 1:
            self._hole(self._last, first - 1)
        if last - first + 1 != batch.num_rows or not _ascends(seqs):
            self._look_inside(seqs)
        self._last = last
        self.rows += batch.num_rows
        self.tombstones += batch.num_rows - batch.column("skipped").null_count

    def finish(self) -> None:
        """Check that nothing is missing at the end: no more slots come."""
        if self._last < self._range.through:
            self._hole(self._last, self._range.through)
            self._last = self._range.through

    def _look_inside(self, seqs: pa.Array) -> None:
        before = seqs[0].as_py()
        for seq in seqs.to_pylist()[1:]:
            if seq <= before:
                raise self._disorder(seq, before)
            if seq > before + 1:
                self._hole(before, seq - 1)
            before = seq

    def _hole(self, after: int, through: int) -> None:
        if not self._may_have_holes:
            raise MissingItems(self._range.queue, [range(after + 1, through + 1)])
        self.holes.append(Range(self._range.queue, after, through))

    def _disorder(self, seq: int, other: int) -> StoreError:
        return StoreError(
            f"queue {self._range.queue!r}: seq {seq} came out of order, beside {other}, "
            f"in ({self._range.after}, {self._range.through}]; the source is damaged, or was read wrongly"
        )


def _ascends(seqs: pa.Array) -> bool:
    """Return True if each seq is the one before plus one: where first, last and count are right, no step is below 1."""
    if len(seqs) == 1:
        return True
    steps = pc.subtract(seqs.slice(1), seqs.slice(0, len(seqs) - 1))
    return bool(pc.min(steps).as_py() == 1)


def by_range(part: Part, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Range, Iterator[pa.RecordBatch]]]:
    """Yield each range of a part with its own slots; what is not taken of a range is passed over.

    Slots that belong to no range of the part, or come out of their turn, raise StoreError.
    """
    line = _Line(batches)
    for wanted in part.ranges:
        own = line.of(wanted)
        yield wanted, own
        for _ in own:
            pass
    left = line.next()
    if left is not None:
        place = f"queue {left.column('queue')[0].as_py()!r}, seq {left.column('seq')[0].as_py()}"
        raise StoreError(f"{place}: came in part {part.number}, where it has no place; was the source changed?")


def pieces(batches: Iterator[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of at most `most`."""
    for batch in batches:
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)


class _Line:
    """The batches that wait, of which the first may be cut."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._first: pa.RecordBatch | None = None

    def next(self) -> pa.RecordBatch | None:
        while self._first is None or not self._first.num_rows:
            self._first = next(self._batches, None)
            if self._first is None:
                return None
        return self._first

    def of(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Cut off what belongs to a range, as long as there is some of it in front."""
        while (batch := self.next()) is not None:
            count = _belonging(batch, wanted)
            if not count:
                return
            self._first = batch.slice(count)
            yield batch.slice(0, count)


def _belonging(batch: pa.RecordBatch, wanted: Range) -> int:
    """Return how many of the first rows are of the range's queue and not behind its end."""
    queues, seqs = batch.column("queue"), batch.column("seq")
    belongs = pc.and_(pc.equal(queues, wanted.queue), pc.less_equal(seqs, wanted.through))
    first_other: int = pc.index(belongs, pa.scalar(value=False)).as_py()
    return batch.num_rows if first_other < 0 else first_other
