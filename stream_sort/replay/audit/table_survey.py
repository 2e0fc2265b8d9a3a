"""What is stored in a live table, as an audit sees it: every item, whether a cursor knows of it or not.

The table is scanned in segments, keys only. Each segment becomes runs where it is read, so that little moves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from stream_sort.errors import AccessDenied, StreamSortError, named_error
from stream_sort.model.message import MAX_SEQ, MIN_SEQ
from stream_sort.model.withdrawal import is_kept_aside
from stream_sort.replay.audit.queues import RunCollector
from stream_sort.replay.origins.access import PATIENCE
from stream_sort.replay.origins.export.lines import KEYS
from stream_sort.replay.origins.origin import run_parts
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.values import int_at, is_whole, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.origins.rate import Rate
    from stream_sort.stores.dynamodb.raw_pages import RawPage
    from stream_sort.stores.dynamodb.values import Wire

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
    """Reads the keys of all items, or of those of some queues; `rate` keeps the whole job to so many read units.

    `no_slot` tells by queue, once the runs are known, how many items are in no slot, and `failed` why a queue that was
    named could not be read.
    """

    access: TableAccess
    queues: tuple[str, ...] | None = None
    consistent: bool = True
    rate: Rate | None = None
    no_slot: Counter[str] = field(default_factory=Counter, compare=False)
    failed: dict[str, str] = field(default_factory=dict, compare=False)

    def runs(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """Yield the runs that each task has found, as it ends."""
        stretches = self._stretches(spark.sparkContext.defaultParallelism)
        for runs, no_slot, failed in run_parts(spark, stretches, self._look):
            self.no_slot.update(no_slot)
            self.failed.update(failed)
            yield runs

    def _stretches(self, cores: int) -> list[Stretch]:
        if self.queues is not None:
            starts = range(0, len(self.queues), QUEUES_A_TASK)
            return [Stretch(queues=self.queues[start : start + QUEUES_A_TASK]) for start in starts]
        count = max(2 * cores, min(MOST_SEGMENTS, _table_bytes(self.access) // SEGMENT_BYTES))
        return [Stretch(segment, count) for segment in range(count)]

    def _look(self, stretch: Stretch) -> tuple[pa.RecordBatch, Counter[str], dict[str, str]]:
        found, no_slot, failed = RunCollector(), Counter[str](), dict[str, str]()
        for queue in stretch.queues or (None,):
            try:
                for page in self._pages(stretch, queue):
                    found.take(keys_batch(page.items, self.access.keys, no_slot))
                    if self.rate is not None:
                        self.rate.used(page.units)
            except StreamSortError:
                # Spark tries again.
                raise
            except Exception as error:
                if queue is None:
                    raise
                # I7: a bug that one queue meets keeps no other from being audited.
                failed[queue] = str(named_error(queue, error))
        return found.runs(), no_slot, failed

    def _pages(self, stretch: Stretch, queue: str | None) -> Iterator[RawPage]:
        pages = self.access.pages(consistent=self.consistent)
        return pages.keys_in(stretch.segment, stretch.segments) if queue is None else pages.keys_of(queue)


def _table_bytes(access: TableAccess) -> int:
    """Return the size of the items table as of some hours ago; 0 where nobody may ask for it."""
    try:
        return int(access.described(PATIENCE).get("TableSizeBytes", 0))
    except AccessDenied:
        return 0


def keys_batch(items: list[Wire], keys: KeyNames, no_slot: Counter[str]) -> pa.RecordBatch:
    """Keys that a table has sent, in a batch of KEYS; counts by queue what others wrote where no slot is (1.5).

    Withdrawals are left out: they are in no queue.
    """
    items = [item for item in items if not is_kept_aside(text_at(item, keys.queue))]
    seqs = _seqs(items, keys.seq)
    if None in seqs:
        no_slot.update(text_at(item, keys.queue) for item, seq in zip(items, seqs, strict=True) if seq is None)
        items = [item for item, seq in zip(items, seqs, strict=True) if seq is not None]
        seqs = [seq for seq in seqs if seq is not None]
    columns = (
        [text_at(item, keys.queue) for item in items],
        seqs,
        [tables.SKIPPED in item for item in items],
        [tables.LATE_TYPES in item for item in items],
        [None] * len(items),
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, KEYS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=KEYS)


def _seqs(items: list[Wire], name: str) -> Sequence[int | None]:
    """Return the seqs of items, None where a number is none."""
    try:
        seqs = [int(item[name]["N"]) for item in items]
        if not seqs or (min(seqs) >= MIN_SEQ and max(seqs) <= MAX_SEQ):
            return seqs
    except (LookupError, ValueError):
        pass
    # Rare, so it may take its time.
    return [_seq(item, name) for item in items]


def _seq(item: Wire, name: str) -> int | None:
    if "N" in item.get(name, {}) and not is_whole(item, name):
        return None
    seq = int_at(item, name)
    return seq if MIN_SEQ <= seq <= MAX_SEQ else None
