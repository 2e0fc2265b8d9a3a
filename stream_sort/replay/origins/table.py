"""The live tables as an origin: the cursor table says what there is, ranges of the items table are read by key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput, Trimmed
from stream_sort.replay.origins.origin import read_parts
from stream_sort.replay.ranges import Range, Selection, clipped
from stream_sort.replay.slots import SlotDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stream_sort.errors import MissingItems
    from stream_sort.model.records import Cursor
    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.origins.origin import Work
    from stream_sort.replay.origins.rate import Rate
    from stream_sort.replay.ranges import Part
    from stream_sort.stores.dynamodb.raw_pages import RawPages


@dataclass(frozen=True)
class TableOrigin:
    """What the selection wants of the live tables; `rate` keeps the whole job to so many read units a second.

    `asked` is what must not have been trimmed. A selection may be wider: a filter on all seqs asks for none of them.
    """

    access: TableAccess
    selection: Selection = field(default_factory=Selection)
    consistent: bool = True
    rate: Rate | None = None
    asked: Selection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def ranges(self, spark: SparkSession | None = None) -> list[Range]:  # noqa: ARG002  # tables need no Spark
        """Return the ranges from the cursor rows alone; beyond the position, the highest stored seq is looked up."""
        cursors = list(self.access.cursors(self.selection))
        if self.asked is not None:
            for cursor in cursors:
                check_not_trimmed(self.asked, cursor)
        return clipped(self.selection, map(self.whole, cursors))

    def run(self, spark: SparkSession, parts: Sequence[Part], work: Work) -> Iterator[Any]:
        """See Origin."""
        return read_parts(spark, parts, self, work)

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Yield the slots of a range, a batch for each page that the table sends."""
        for page in self._pages.read(wanted.queue, wanted.after, wanted.through):
            if page.items:
                yield self._decoder.batch(page.items)
            if self.rate is not None:
                self.rate.used(page.units)
            # The next page then takes the same memory, which saves a sixth of the time.
            del page

    def whole(self, cursor: Cursor) -> Range:
        """Return what there is of a queue."""
        through = cursor.position
        if not self.selection.released:
            through = max(through, self.access.homes.of(cursor.queue).items.highest(cursor.queue) or through)
        return Range(cursor.queue, cursor.start, through)

    @cached_property
    def _pages(self) -> RawPages:
        return self.access.pages(consistent=self.consistent)

    @cached_property
    def _decoder(self) -> SlotDecoder:
        return SlotDecoder(self.access.keys)


def check_not_trimmed(asked: Selection, cursor: Cursor) -> None:
    """Raise InvalidInput if a seq that was asked for lies in what was trimmed from the queue."""
    first, last = asked.from_seq, asked.to_seq
    ends_below = last is not None and last <= cursor.start
    if cursor.start < cursor.first_seq or (not ends_below and (first is None or first > cursor.start)):
        return
    lowest = cursor.first_seq if first is None else max(first, cursor.first_seq)
    if last is not None and last < lowest:
        return
    highest = min(cursor.start, cursor.start if last is None else last)
    whole = "; all of it was trimmed" if ends_below else f"; what is left begins at {cursor.start + 1}"
    raise InvalidInput(
        f"seqs {lowest} to {highest} of queue {cursor.queue!r} were trimmed from the table{whole}. "
        "Read what was trimmed from the archive, if there is one (--archive, or the option archive), or ask for less"
    )


def trimmed_since(hole: MissingItems, cursor: Cursor | None) -> Trimmed | None:
    """Return what a hole is that a trim made after the range was planned; None if it is another kind of hole."""
    if cursor is None or cursor.floor is None or hole.missing[0].start > cursor.floor:
        return None
    return Trimmed(hole.queue, cursor.floor)
