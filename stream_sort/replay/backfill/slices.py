"""A part's slots, range by range and in pieces: whoever sent the batches may have cut them anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.replay.ranges import Part, Range


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
