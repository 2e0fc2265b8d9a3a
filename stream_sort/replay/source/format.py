"""The data source `stream_sort`: `spark.read.format("stream_sort")` and `spark.readStream`.

The plan is made from the cursor table (or an archive's manifests) before anything is read; each partition reads its
ranges in order and checks that they are whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from stream_sort.errors import SettingsError
from stream_sort.replay.origins.rate import Rate
from stream_sort.replay.ranges import Part
from stream_sort.replay.slots import MESSAGES, SLOTS
from stream_sort.replay.source.options import source_options
from stream_sort.replay.source.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, Filter
    from pyspark.sql.types import StructType

    from stream_sort.replay.origins.rate import KeeperAddress


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
