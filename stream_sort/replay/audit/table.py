"""What is stored in a live table, as an audit sees it: every item, whether a cursor knows of it or not.

The table is scanned in segments, keys only. Each segment becomes runs where it is read, so that little moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stream_sort.errors import AccessDenied
from stream_sort.replay.access import PATIENCE
from stream_sort.replay.audit.runs import RunCollector
from stream_sort.replay.export.files import KEYS
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.connection import make_client
from stream_sort.stores.dynamodb.values import int_at, is_whole, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from stream_sort.core.message import KeyNames
    from stream_sort.replay.access import TableAccess
    from stream_sort.replay.rate import Rate
    from stream_sort.stores.dynamodb.raw_pages import RawPage

# Bytes that one segment should have, and as many segments as a scan may have.
SEGMENT_BYTES = 256 * 1024 * 1024
MOST_SEGMENTS = 10_000
QUEUES_A_TASK = 100


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one task looks at: one of so many segments of the table, or some queues."""

    segment: int = 0
    segments: int = 1
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSurvey:
    """Reads the keys of all items, or of those of some queues; `rate` keeps the whole job to so many read units."""

    access: TableAccess
    queues: tuple[str, ...] | None = None
    consistent: bool = True
    rate: Rate | None = None

    def runs(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """The runs that each task has found, as it ends."""
        from stream_sort.replay.jobs.tasks import run_parts  # noqa: PLC0415  # executors do not need Spark's driver side

        return run_parts(spark, self._stretches(spark.sparkContext.defaultParallelism), self._look)

    def _stretches(self, cores: int) -> list[Stretch]:
        if self.queues is not None:
            starts = range(0, len(self.queues), QUEUES_A_TASK)
            return [Stretch(queues=self.queues[start : start + QUEUES_A_TASK]) for start in starts]
        count = max(2 * cores, min(MOST_SEGMENTS, _table_bytes(self.access) // SEGMENT_BYTES))
        return [Stretch(segment, count) for segment in range(count)]

    def _look(self, stretch: Stretch) -> pa.RecordBatch:
        found = RunCollector()
        for page in self._pages(stretch):
            found.take(keys_batch(page.items, self.access.keys))
            if self.rate is not None:
                self.rate.used(page.units)
        return found.runs()

    def _pages(self, stretch: Stretch) -> Iterator[RawPage]:
        pages = self.access.pages(consistent=self.consistent)
        if not stretch.queues:
            yield from pages.keys_in(stretch.segment, stretch.segments)
        for queue in stretch.queues:
            yield from pages.keys_of(queue)


def _table_bytes(access: TableAccess) -> int:
    """The size of the items table as of some hours ago; 0 where nobody may ask for it."""
    client = make_client(access.settings, region=access.region, endpoint_url=access.endpoint_url)
    try:
        table = Calls(client, PATIENCE)("describe_table", access.items_table, TableName=access.items_table).body[
            "Table"
        ]
    except AccessDenied:
        return 0
    return int(table.get("TableSizeBytes", 0))


def keys_batch(items: list[dict[str, dict[str, Any]]], keys: KeyNames) -> pa.RecordBatch:
    """Keys that a table has sent, in batches of KEYS; what others wrote between two seqs (1.5) is no slot."""
    items = [item for item in items if "N" not in item.get(keys.seq, {}) or is_whole(item, keys.seq)]
    columns = (
        [text_at(item, keys.queue) for item in items],
        [int_at(item, keys.seq) for item in items],
        [tables.SKIPPED in item for item in items],
        [tables.LATE_TYPES in item for item in items],
        [None] * len(items),
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, KEYS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=KEYS)
