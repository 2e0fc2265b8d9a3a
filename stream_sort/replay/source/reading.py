"""What one read of the data source is: which ranges, from where, and how its rows are shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from stream_sort.errors import MissingItems, SettingsError
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.table import TableOrigin, trimmed_since
from stream_sort.replay.ranges import Range, cut
from stream_sort.replay.slots import MESSAGES, SLOTS, in_time, messages
from stream_sort.replay.source.fields import MISFITS, Fields
from stream_sort.replay.source.options import NULL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.errors import Trimmed
    from stream_sort.replay.origins.rate import Rate
    from stream_sort.replay.ranges import Part
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
            return TableOrigin(options.access, options.selection, options.consistent, self.rate, options.asked)
        storage = Storage(options.archive or "", endpoint_url=options.endpoint_url, region=options.region)
        return ArchiveOrigin(storage, options.selection)

    def parts(self, ranges: Iterable[Range]) -> list[Part]:
        """Return the ranges as partitions."""
        return cut(ranges, self.options.rows_per_partition)

    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition, in order; raises MissingItems at a hole in what is released, or Trimmed."""
        origin, shown = self.origin, self._view()
        for wanted in part.ranges:
            try:
                yield from map(shown, self._slots(origin, wanted))
            except MissingItems as hole:
                raise self._trimmed(hole) or hole from None

    def _slots(self, origin: TableOrigin | ArchiveOrigin, wanted: Range) -> Iterator[pa.RecordBatch]:
        selection = self.options.selection
        checked = Completeness(wanted, may_have_holes=not selection.released)
        for batch in checked.watched(origin.read(wanted)):
            kept = in_time(batch, selection) if selection.by_time else batch
            if kept.num_rows:
                yield kept
        self._check_holes(origin, checked.holes)

    def _trimmed(self, hole: MissingItems) -> Trimmed | None:
        access = self.options.access
        return None if access is None else trimmed_since(hole, access.sorter.stores.cursors.get(hole.queue))

    @property
    def shows_fields(self) -> bool:
        """Whether the columns are the message's own fields; otherwise they are ours."""
        ours = {field.name: field.type for field in (SLOTS if self.options.slots else MESSAGES)}
        own = [field for field in self.schema if ours.get(field.name) != field.type]
        if self.options.slots and (own or len(self.schema) != len(SLOTS)):
            raise SettingsError(f"slots=true has columns of its own ({', '.join(SLOTS.names)}); give no schema with it")
        return bool(own) or "item" not in self.schema.names

    def _check_holes(self, origin: TableOrigin | ArchiveOrigin, holes: list[Range]) -> None:
        """Raise for holes in what is released; beyond the position, where one read past it, a hole may stand."""
        access = self.options.access
        if access is None:
            return
        for hole in holes:
            released = min(hole.through, access.sorter.position(hole.queue))
            if released > hole.after:
                behind = Range(hole.queue, hole.after, released)
                # It may have been filled, and released, since it was seen.
                for _ in Completeness(behind).watched(origin.read(behind)):
                    pass

    def _view(self) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
        if self.shows_fields:
            fields = Fields(self.schema, nulls=self.options.mode == NULL)
            return lambda batch: _warned(fields, messages(batch))
        if self.options.slots:
            return lambda batch: batch
        names, schema = self.schema.names, self.schema
        return lambda batch: pa.RecordBatch.from_arrays([messages(batch)[name] for name in names], schema=schema)


def _warned(fields: Fields, batch: pa.RecordBatch) -> pa.RecordBatch:
    before = fields.misfits
    rows = fields.rows(batch)
    if fields.misfits > before and MISFITS not in rows.schema.names:
        count = fields.misfits - before
        sys.stderr.write(f"stream_sort: {count} values did not fit and are null; a column {MISFITS} int counts them\n")
    return rows
