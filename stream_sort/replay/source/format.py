"""The data source `stream_sort`: `spark.read.format("stream_sort")` and `spark.readStream`.

The plan is made from the cursor table (or an archive's manifests) before anything is read; each partition reads its
ranges in order and checks that they are whole.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from stream_sort.errors import MissingItems, SettingsError
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.rate import Rate
from stream_sort.replay.origins.table import TableOrigin, trimmed_since
from stream_sort.replay.ranges import Part, Range, cut_parts
from stream_sort.replay.slots import MESSAGES, SLOTS, in_time, messages
from stream_sort.replay.source.fields import MISFITS, Fields
from stream_sort.replay.source.options import NULL, source_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql.datasource import DataSourceStreamReader, Filter
    from pyspark.sql.types import StructType

    from stream_sort.errors import Trimmed
    from stream_sort.replay.origins.rate import KeeperAddress
    from stream_sort.replay.source.options import SourceOptions


class StreamSortSource(DataSource):
    """History in order. Columns `queue`, `seq`, `item` (JSON text), or the message's own fields under a schema."""

    keeper: KeeperAddress | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "stream_sort"

    def schema(self) -> StructType:
        """Return the columns when the user gives none."""
        return from_arrow_schema(SLOTS if source_options(self.options).slots else MESSAGES)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch.

        It takes filters only when it is told to: Spark 4.3 keeps one plan for all that is made of one `load()`, and so
        reads for every query, and every side of a union or join, what the last filter left: rows are missing, or come
        twice, without a word. The plan is kept where no reader can see it.
        """
        reading = self._reading(schema)
        return FilteringReader(reading) if reading.options.push_filters else RangesReader(reading)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's interface
        """Return the reader of a stream."""
        # Streams with a limit came with Spark 4.2; tables and archives are read with older ones, too.
        from stream_sort.replay.source.stream import PositionStream  # noqa: PLC0415

        return PositionStream(self._reading(schema))

    def _reading(self, schema: StructType) -> Reading:
        options = source_options(self.options)
        return Reading(options, to_arrow_schema(schema, timezone="UTC"), self._rate(options.max_read_units))

    def _rate(self, units_a_second: float | None) -> Rate | None:
        if units_a_second is None:
            return None
        if self.keeper is None:
            raise SettingsError("maxReadUnits needs stream_sort.replay.register(spark) in the driver's own process")
        return Rate(units_a_second, self.keeper)


class RangesReader(DataSourceReader):
    """Reads ranges that were planned from positions; nothing is shuffled or sorted."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Ranges of about equal length; where there are none, one without ranges, because Spark wants one."""
        parts = self._reading.parts(self._reading.origin.ranges(None))
        return [InputPartition(part) for part in parts or [Part(0, ())]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the rows of one partition, in order."""
        return self._reading.rows(partition.value)


class FilteringReader(RangesReader):
    """The same where Spark pushes filters down: those on queue and seq narrow what is read."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's interface
        """Take what says which ranges are wanted; the rest stays with Spark."""
        # Filters came with Spark 4.1.
        from stream_sort.replay.source.filters import pushed  # noqa: PLC0415

        options = self._reading.options
        # Under a schema of the user, queue and seq are fields of the message, and have the names that it gives them.
        keys = (options.queue_key, options.seq_key) if self._reading.shows_fields else ("queue", "seq")
        selection, left = pushed(filters, options.selection, keys)
        self._reading = replace(self._reading, options=replace(options, selection=selection))
        return left


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
        return cut_parts(ranges, self.options.rows_per_partition)

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
        return None if access is None else trimmed_since(hole, access.homes.of(hole.queue).cursors.get(hole.queue))

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
