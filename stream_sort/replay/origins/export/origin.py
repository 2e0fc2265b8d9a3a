"""A point-in-time export as an origin: its keys make the plan; one shuffle takes its slots to their parts, sorted."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from stream_sort.errors import InvalidInput, SequenceConflict, SettingsError
from stream_sort.model.message import KeyNames
from stream_sort.replay.origins.export.files import read_keys, read_slots
from stream_sort.replay.origins.export.manifest import Export, open_export
from stream_sort.replay.origins.export.order import Doubles, Places, SlotsOnce, without_doubles
from stream_sort.replay.origins.origin import map_in_arrow, run_parts, run_tasks
from stream_sort.replay.ranges import ROWS_PER_PART, Range, Selection, clipped, cut_parts
from stream_sort.replay.slots import in_time, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.export.manifest import DataFile
    from stream_sort.replay.origins.origin import Answer, Work
    from stream_sort.replay.ranges import Part

PLACED = (
    "part int, place bigint, queue string, seq bigint, item string, arrived_at bigint, skipped string, late string, "
    "binary string"
)
MESSAGES = "queue string not null, seq bigint not null, item string not null"
KEYS_AT_ONCE = 500_000
# A range that is mostly hole is a seq gone wrong, and its parts would be without number.
LONGEST_HOLE = 100_000_000
EXTENT = [("seq", "min"), ("seq", "max"), ("seq", "count")]


@dataclass(frozen=True)
class ExportOrigin:
    """What the selection wants of an export. Nothing says what was released, so it is everything that is there.

    `doubles` tells, once parts have run, what was there twice; of two different ones the first to arrive counts.
    `no_slot` tells by queue, once the ranges are known, how many items are in no slot, and are passed over; `ends`
    tells the highest seq of each queue that is wanted, in the range or not.
    """

    storage: Storage
    selection: Selection = field(default_factory=Selection)
    keys: KeyNames = field(default_factory=KeyNames)
    doubles: Doubles = field(default_factory=Doubles, compare=False)
    no_slot: Counter[str] = field(default_factory=Counter, compare=False)
    ends: dict[str, int] = field(default_factory=dict, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def export(self) -> Export:
        """The export, its manifests checked."""
        return open_export(self.storage)

    def ranges(self, spark: SparkSession) -> list[Range]:
        """Plan by the keys of all items: every file is read and checked; by time, from the first to the last."""
        found = list(run_parts(spark, self.export.files, partial(_extents, self.export, self.keys, self.selection)))
        whole = _whole([extents for extents, _ in found])
        self._note_no_slot(no_slot for _, no_slot in found)
        self.ends.update({queue: last for queue, (_, last, _) in whole.items() if self.selection.wants_queue(queue)})
        for queue in self.selection.queues or ():
            if queue not in whole:
                raise InvalidInput(f"queue {queue!r} has no item in the export {self.storage.uri}; check its name")
        ranges = clipped(self.selection, (Range(queue, first - 1, last) for queue, (first, last, _) in whole.items()))
        for one in ranges:
            _check_holes(one, whole[one.queue][2])
        return ranges

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever reads the export should know of it, once the ranges are known."""
        count = self.no_slot.total()
        if not count:
            return ()
        queues = f"{len(self.no_slot):,} queues, such as {min(self.no_slot)!r}"
        return (f"passed over: {count:,} items whose seq is none, such as 1.5, in {queues}; audit names the queues",)

    def run(self, spark: SparkSession, parts: Sequence[Part], work: Work) -> Iterator[Any]:
        """See Origin."""

        def tasks(answer: Answer) -> Any:
            return map_in_arrow(self._in_order(spark, parts), _working(spark, parts, work, answer), "nothing int").rdd

        left = dict(enumerate(parts))
        for index, answered, doubles in run_tasks(spark, tasks) if parts else ():
            del left[index]
            self.doubles.add(doubles)
            yield answered
        # Spark runs no task for what it knows to be empty.
        yield from run_parts(spark, list(left.values()), lambda part: work(part, iter(())))

    def frame(self, spark: SparkSession, rows_per_part: int = ROWS_PER_PART) -> DataFrame:
        """Return the messages in order (queue, seq, item), a partition a part; two that differ in one place raise."""
        parts = cut_parts(self.ranges(spark), rows_per_part)
        if not parts:
            return spark.createDataFrame([], MESSAGES)
        return map_in_arrow(self._in_order(spark, parts), partial(_only_messages, self.selection), MESSAGES)

    def _note_no_slot(self, found: Iterable[Counter[str]]) -> None:
        self.no_slot.clear()
        for counted in found:
            self.no_slot.update({queue: count for queue, count in counted.items() if self.selection.wants_queue(queue)})

    def _in_order(self, spark: SparkSession, parts: Sequence[Part]) -> DataFrame:
        """Return all slots of the parts, each part a partition, sorted by place."""
        files = spark.range(0, len(self.export.files), 1, len(self.export.files))
        places = spark.sparkContext.broadcast(Places(parts))
        placed = map_in_arrow(files, partial(_placed, self.export, self.keys, places), PLACED)
        return placed.repartitionById(len(parts), "part").sortWithinPartitions("place")


def _extents(export: Export, keys: KeyNames, selection: Selection, file: DataFile) -> tuple[pa.Table, Counter[str]]:
    """Check a file; return the lowest and highest seq and the count of each queue in it, and what is in no slot."""
    found: list[pa.Table] = []
    no_slot: Counter[str] = Counter()
    held: list[pa.RecordBatch] = []
    for batch in read_keys(export, file, keys, no_slot):
        held.append(in_time(batch, selection).select(["queue", "seq"]))
        if sum(one.num_rows for one in held) >= KEYS_AT_ONCE:
            found.append(_extent(held))
            held = []
    return pa.concat_tables([*found, _extent(held)]), no_slot


def _extent(batches: list[pa.RecordBatch]) -> pa.Table:
    schema = pa.schema([("queue", pa.string()), ("seq", pa.int64())])
    table = pa.Table.from_batches([batch.cast(schema) for batch in batches], schema=schema)
    return table.group_by("queue", use_threads=False).aggregate(EXTENT)


def _whole(extents: list[pa.Table]) -> dict[str, tuple[int, int, int]]:
    if not extents:
        return {}
    sums = [("seq_min", "min"), ("seq_max", "max"), ("seq_count", "sum")]
    whole = pa.concat_tables(extents).group_by("queue").aggregate(sums)
    columns = (whole[name].to_pylist() for name in ("queue", "seq_min_min", "seq_max_max", "seq_count_sum"))
    return {queue: (first, last, count) for queue, first, last, count in zip(*columns, strict=True)}


def _check_holes(wanted: Range, count: int) -> None:
    if wanted.through - wanted.after > 10 * count + LONGEST_HOLE:
        raise SettingsError(
            f"queue {wanted.queue!r} has {count:,} items over {wanted.through - wanted.after:,} seqs, mostly holes; "
            "name the range that is wanted by its first and last seq, or audit the export to see them"
        )


def _placed(export: Export, keys: KeyNames, places: Any, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    # Nothing here is in a cycle, and looking for cycles among millions of values takes a sixth of the time.
    gc.disable()
    try:
        for number in numbers:
            for index in number.column(0).to_pylist():
                for batch in read_slots(export, export.files[index], keys):
                    yield places.value.placed(batch)
    finally:
        gc.enable()


def _working(
    spark: SparkSession, parts: Sequence[Part], work: Work, answer: Answer
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what does a part's work in the task that has its slots."""
    known = spark.sparkContext.broadcast(list(parts))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415  # of the executor

        index = cast("TaskContext", TaskContext.get()).partitionId()
        slots = SlotsOnce(batches)
        answer(lambda: (index, work(known.value[index], slots), slots.doubles))
        yield from ()

    return task


def _only_messages(selection: Selection, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    doubles = Doubles()
    for batch in without_doubles(batches, doubles):
        if doubles.conflicts:
            raise SequenceConflict(*doubles.examples[0])
        yield messages(in_time(batch, selection))
