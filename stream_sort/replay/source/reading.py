"""What one read of the data source is: which ranges, from where, and how its rows are shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.replay.archive.origin import ArchiveOrigin
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import cut
from stream_sort.replay.slots import MESSAGES, in_time, messages
from stream_sort.replay.source.fields import MISFITS, Fields
from stream_sort.replay.source.options import NULL
from stream_sort.replay.table import TableOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from stream_sort.replay.ranges import Part, Range
    from stream_sort.replay.rate import Rate
    from stream_sort.replay.source.options import SourceOptions


@dataclass(frozen=True)
class Reading:
    """What is read and how it is shown; goes to every executor."""

    options: SourceOptions
    schema: pa.Schema
    rate: Rate | None = None

    @property
    def origin(self) -> TableOrigin | ArchiveOrigin:
        """Where it is read from."""
        options = self.options
        if options.access is not None:
            return TableOrigin(options.access, options.selection, options.consistent, self.rate)
        storage = Storage(options.archive or "", endpoint_url=options.endpoint_url, region=options.region)
        return ArchiveOrigin(storage, options.selection)

    def parts(self, ranges: Iterable[Range]) -> list[Part]:
        """The ranges as partitions."""
        return cut(ranges, self.options.rows_per_partition)

    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, in order; raises MissingItems at a hole in what is released."""
        origin, shown = self.origin, self._view()
        selection = self.options.selection
        for wanted in part.ranges:
            checked = Completeness(wanted, may_have_holes=not selection.released)
            for batch in checked.watched(origin.read(wanted)):
                kept = in_time(batch, selection) if selection.by_time else batch
                if kept.num_rows:
                    yield shown(kept)

    def _view(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        if self.options.slots:
            return lambda batch: batch
        if self.schema.names == MESSAGES.names and self.schema.types == MESSAGES.types:
            return messages
        fields = Fields(self.schema, nulls=self.options.mode == NULL)
        return lambda batch: _warned(fields, messages(batch))


def _warned(fields: Fields, batch: pa.RecordBatch) -> pa.RecordBatch:
    before = fields.misfits
    rows = fields.rows(batch)
    if fields.misfits > before and MISFITS not in rows.schema.names:
        count = fields.misfits - before
        sys.stderr.write(f"stream_sort: {count} values did not fit and are null; a column {MISFITS} int counts them\n")
    return rows
