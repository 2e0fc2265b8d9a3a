"""A part into one file: named by the part's number, published whole or not at all, always the same bytes."""

from __future__ import annotations

import mmap
import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, cast

from stream_sort.errors import MissingItems
from stream_sort.replay.backfill.ledger import PartRecord
from stream_sort.replay.backfill.slices import by_range
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.backfill.targets.writers import WRITERS
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import in_time, messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from stream_sort.replay.backfill.ledger import Ledger
    from stream_sort.replay.backfill.targets.writers import Writer
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Part
    from stream_sort.replay.selection import Selection


def file_name(number: int, form: str) -> str:
    """Return the name of a part's file; names sort as the parts do."""
    return f"part-{number:07d}.{form}"


@dataclass(frozen=True, slots=True)
class FileWork:
    """Writes the messages of a part to its file, then the part's record.

    Any number of attempts may do it at once, and die anywhere: each publishes the same bytes under the same name.
    A part with a hole is not published unless holes are allowed.
    """

    out: Storage
    ledger: Ledger
    form: str
    selection: Selection
    may_have_holes: bool

    def __call__(self, part: Part, slots: Iterator[pa.RecordBatch]) -> PartRecord:
        """Do one part."""
        # A file without a name: nothing is left of it, whatever becomes of this process.
        with tempfile.TemporaryFile() as file:
            try:
                with closing(WRITERS[self.form](file)) as writer:
                    tallies = tuple(
                        self._copy(wanted, own, writer).with_conflicts(RangeTally.of(wanted), slots)
                        for wanted, own in by_range(part, slots)
                    )
            except MissingItems as hole:
                return PartRecord(part.number, (_failed(part, hole),), ended=False)
            file.flush()
            size = self._publish(file_name(part.number, self.form), file)
        record = PartRecord(part.number, tallies, ended=True, size=size)
        self.ledger.commit(record)
        return record

    def _copy(self, wanted: Range, own: Iterator[pa.RecordBatch], writer: Writer) -> RangeTally:
        watch = Completeness(wanted, may_have_holes=self.may_have_holes)
        rows = outside = tombstones = 0
        for batch in watch.watched(own):
            inside = in_time(batch, self.selection)
            found = messages(inside)
            writer.write(found)
            rows += found.num_rows
            outside += batch.num_rows - inside.num_rows
            tombstones += inside.num_rows - found.num_rows
        return replace(
            RangeTally.of(wanted),
            done=wanted.through,
            rows=rows,
            tombstones=tombstones,
            outside=outside,
            missing=tuple(watch.holes),
        )

    def _publish(self, name: str, file: IO[Any]) -> int:
        size = file.seek(0, 2)
        if not size:
            self.out.write(name, b"")
            return 0
        # Not read into memory: a part may be larger than that.
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            self.out.write(name, cast("bytes", content))
        return size


def _failed(part: Part, hole: MissingItems) -> RangeTally:
    missing = tuple(Range(hole.queue, gap.start - 1, gap.stop - 1) for gap in hole.missing)
    inside = (one for one in part.ranges if one.queue == hole.queue and one.after <= missing[0].after <= one.through)
    return replace(RangeTally.of(next(inside)), missing=missing, failed=str(hole))
