"""What is in an export, as an audit sees it: runs of every file, stitched; where a queue lies scattered, exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.replay.audit.queues import RunCollector
from stream_sort.replay.origins.export.files import read_keys
from stream_sort.replay.origins.export.lines import KEYS
from stream_sort.replay.origins.export.origin import ExportOrigin
from stream_sort.replay.origins.origin import map_in_arrow, run_parts, run_tasks
from stream_sort.replay.ranges import ROWS_PER_PART, Range, Selection, cut_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.export.manifest import DataFile, Export
    from stream_sort.replay.origins.export.order import Doubles
    from stream_sort.replay.origins.origin import Answer
    from stream_sort.replay.ranges import Part

# So many runs of a file may travel; with more, the queues that are in many pieces are looked at once more.
MOST_RUNS = 100_000
FEW_PIECES = 16
# Seqs that go to one task together when a scattered queue is put in order.
BLOCK_BITS = 20
KEY_COLUMNS = "queue string, seq bigint, tombstone boolean, late boolean, block bigint"
BLOCKS = pa.schema([KEYS.field(name) for name in KEYS.names[:4]] + [pa.field("block", pa.int64(), nullable=False)])


@dataclass(frozen=True, slots=True)
class FileRuns:
    """What is in one file: runs, the queues whose runs were too many to be told, and by queue what is in no slot."""

    runs: pa.RecordBatch
    no_slot: Counter[str]
    scattered: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ExportSurvey:
    """Reads the keys of all items of an export, and checks its files.

    `no_slot` tells by queue, once the runs are known, how many items are in no slot.
    """

    storage: Storage
    keys: KeyNames
    queues: tuple[str, ...] | None = None
    no_slot: Counter[str] = field(default_factory=Counter, compare=False)

    def runs(self, spark: SparkSession) -> Iterator[pa.RecordBatch]:
        """Yield the runs of all files."""
        export = ExportOrigin(self.storage).export
        looks = list(run_parts(spark, export.files, partial(_look, export, self.keys, self.queues)))
        scattered = frozenset[str]().union(*(look.scattered for look in looks))
        for look in looks:
            self.no_slot.update(look.no_slot)
            yield _without(look.runs, scattered)
        if scattered:
            yield from self._exact(spark, export, scattered)

    def conflicts(self, spark: SparkSession, runs: list[Range]) -> Doubles:
        """Return what of these runs, of queues that have something twice, is there in two versions."""
        origin = ExportOrigin(self.storage, Selection(), self.keys)
        for _ in origin.run(spark, cut_parts(runs, ROWS_PER_PART), _pass_by):
            pass
        return origin.doubles

    def _exact(self, spark: SparkSession, export: Export, scattered: frozenset[str]) -> Iterator[pa.RecordBatch]:

        def tasks(answer: Answer) -> Any:
            files = spark.range(0, len(export.files), 1, len(export.files))
            keys: DataFrame = map_in_arrow(files, partial(_blocks, export, self.keys, scattered), KEY_COLUMNS)
            return map_in_arrow(keys.repartition("queue", "block"), partial(_joined, answer), "nothing int").rdd

        return run_tasks(spark, tasks)


def _look(export: Export, keys: KeyNames, queues: tuple[str, ...] | None, file: DataFile) -> FileRuns:
    found, no_slot = RunCollector(), Counter[str]()
    for batch in read_keys(export, file, keys, no_slot):
        found.take(batch if queues is None else batch.filter(pc.is_in(batch["queue"], pa.array(queues, pa.string()))))
    runs = found.runs()
    wanted = Counter({queue: count for queue, count in no_slot.items() if queues is None or queue in queues})
    if runs.num_rows <= MOST_RUNS:
        return FileRuns(runs, wanted)
    pieces = pa.Table.from_batches([runs]).group_by("queue").aggregate([("first", "count")])
    many = pieces.filter(pc.greater(pieces["first_count"], FEW_PIECES))["queue"].to_pylist()
    scattered = frozenset(many)
    return FileRuns(_without(runs, scattered), wanted, scattered)


def _without(runs: pa.RecordBatch, queues: frozenset[str]) -> pa.RecordBatch:
    return runs.filter(pc.invert(pc.is_in(runs["queue"], pa.array(list(queues), pa.string())))) if queues else runs


def _blocks(
    export: Export, keys: KeyNames, scattered: frozenset[str], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    wanted = pa.array(list(scattered), pa.string())
    for number in numbers:
        for index in number.column(0).to_pylist():
            for batch in read_keys(export, export.files[index], keys):
                kept = batch.filter(pc.is_in(batch["queue"], wanted))
                block = pc.shift_right(kept["seq"], BLOCK_BITS)
                yield pa.RecordBatch.from_arrays([*kept.columns[:4], block], schema=BLOCKS)


def _joined(answer: Answer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    def runs() -> pa.RecordBatch:
        found = RunCollector()
        for batch in batches:
            found.take(batch)
        return found.runs()

    answer(runs)
    yield from ()


def _pass_by(_: Part, slots: Iterator[pa.RecordBatch]) -> None:
    for _batch in slots:
        pass
