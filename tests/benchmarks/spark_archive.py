"""How fast an archive is replayed in order, against sorting the same rows in Spark, and against copying them.

    python -m tests.benchmarks.spark_archive [rows]

All three read files and write Parquet files, in turn, in one session. Ratios within one round count.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stream_sort.replay import register
from stream_sort.replay.engine.session import spark_session
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import MESSAGES, SLOTS, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = 4_000_000
QUEUES = 40
SEGMENT_ROWS = 100_000
PAGE = 10_000
ROUNDS = 3
AGAINST_SORT, AGAINST_COPY = 2.5, 1.35


@dataclass(frozen=True, slots=True)
class Replay:
    """Seconds, and the medians of the ratios within each round."""

    rows: int
    archive: float
    sort: float
    copy: float
    against_sort: float
    against_copy: float

    def __str__(self) -> str:
        return (
            f"archive -> replay in order, {self.rows:,} rows: {self.archive:.1f} s; "
            f"{self.against_sort:.2f} times faster than a sort in Spark ({self.sort:.1f} s; bar {AGAINST_SORT}), "
            f"{self.against_copy:.2f} times a plain Parquet copy ({self.copy:.1f} s; bar {AGAINST_COPY})"
        )


def measure(spark: SparkSession, folder: Path, rows: int = ROWS, rounds: int = ROUNDS) -> Replay:
    """Some rounds of all three, and one before them that does not count."""
    make(folder, rows)
    found = [_round(spark, folder, rows) for _ in range(rounds + 1)][1:]
    archive, sort, copy = (statistics.median(column) for column in zip(*found, strict=True))
    against_sort = statistics.median(theirs / ours for ours, theirs, _ in found)
    against_copy = statistics.median(ours / theirs for ours, _, theirs in found)
    return Replay(rows, archive, sort, copy, against_sort, against_copy)


def make(folder: Path, rows: int) -> None:
    """The same rows three times: archived, in order as plain Parquet, and shuffled as plain Parquet."""
    storage = Storage(str(folder / "archive"))
    for kind in ("ordered", "shuffled"):
        (folder / kind).mkdir()
    # Plain files hold as many rows as segments, or the number of tasks would be what is compared.
    for number, held in enumerate(_segments(rows)):
        batches = list(_slots(held))
        write_segment(storage, held, batches)
        table = pa.Table.from_batches([messages(batch) for batch in batches], MESSAGES)
        pq.write_table(table, folder / "ordered" / f"{number:05d}.parquet", compression="zstd", compression_level=1)
    _shuffle(folder)


def _segments(rows: int) -> Iterator[Range]:
    each = rows // QUEUES
    for queue in range(QUEUES):
        for start in range(0, each, SEGMENT_ROWS):
            yield Range(f"account-{queue:04d}", start - 1, min(start + SEGMENT_ROWS, each) - 1)


def _slots(held: Range) -> Iterator[pa.RecordBatch]:
    for start in range(held.after + 1, held.through + 1, PAGE):
        seqs = range(start, min(start + PAGE, held.through + 1))
        items = [
            json.dumps(
                {
                    "amount": seq * 37 % 10_007,
                    "event": f"{seq * 2654435761 % 2**32:08x}" * 8,
                    "queue": held.queue,
                    "seq": seq,
                }
            )
            for seq in seqs
        ]
        count = len(items)
        columns: list[Any] = [
            [held.queue] * count,
            seqs,
            items,
            [1_700_000_000_000 + seq for seq in seqs],
            *[[None] * count] * (len(SLOTS) - 4),
        ]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, SLOTS, strict=True)], schema=SLOTS
        )


def _shuffle(folder: Path) -> None:
    """Rows as they arrive: every file holds some of every queue, in any order."""
    whole = pq.read_table(folder / "ordered")
    order = list(range(whole.num_rows))
    random.Random(1).shuffle(order)
    for number, start in enumerate(range(0, len(order), SEGMENT_ROWS)):
        some = whole.take(pa.array(order[start : start + SEGMENT_ROWS]))
        name = folder / "shuffled" / f"{number:05d}.parquet"
        pq.write_table(some, name, compression="zstd", compression_level=1)


def _round(spark: SparkSession, folder: Path, rows: int) -> tuple[float, float, float]:
    archive = spark.read.format("stream_sort").option("archive", str(folder / "archive"))
    shuffled = spark.read.parquet(str(folder / "shuffled"))
    ordered = spark.read.parquet(str(folder / "ordered"))
    # Spark packs the plain files into a task for each core; with many small tasks, their start is what is measured.
    archive = archive.option("rowsPerPartition", -(-rows // spark.sparkContext.defaultParallelism))
    # The two that are close are taken in turn, twice, and the less disturbed one counts.
    pairs = [(_seconds(archive.load, folder, rows), _copy_seconds(ordered, folder, rows)) for _ in range(2)]
    ours, copy = (min(column) for column in zip(*pairs, strict=True))
    return ours, _seconds(lambda: shuffled.orderBy("queue", "seq"), folder, rows), copy


def _seconds(source: Callable[[], DataFrame], folder: Path, rows: int, *, in_order: bool = True) -> float:
    out = folder / "out"
    began = time.perf_counter()
    source().write.parquet(str(out))
    took = time.perf_counter() - began
    files = [pq.read_table(file, columns=["queue", "seq"]) for file in out.glob("*.parquet")]
    shutil.rmtree(out)
    written = sum(file.num_rows for file in files)
    if written != rows:
        raise AssertionError(f"{written:,} rows of {rows:,} were written")
    if in_order and not all(map(_in_order, files)):
        raise AssertionError("rows were written out of order")
    return took


def _copy_seconds(plain: DataFrame, folder: Path, rows: int) -> float:
    """Spark packs plain files by their size, so a copy comes out in no order: that is what it is spared."""
    return _seconds(lambda: plain, folder, rows, in_order=False)


def _in_order(file: pa.Table) -> bool:
    """Whether seqs count up by one, but where another queue begins."""
    queues, seqs = file.column("queue").combine_chunks(), file.column("seq").combine_chunks()
    count = len(seqs) - 1
    if count < 1:
        return True
    follows = pc.equal(pc.subtract(seqs.slice(1), seqs.slice(0, count)), 1)
    changes = pc.less(queues.slice(0, count), queues.slice(1))
    return bool(pc.all(pc.or_(follows, changes)).as_py())


def main() -> int:
    """Measure, print, and tell by the exit code whether the bars are met."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    spark = spark_session("archive benchmark")
    register(spark)
    with tempfile.TemporaryDirectory() as folder:
        replay = measure(spark, Path(folder), rows)
    spark.stop()
    print(replay)
    return 0 if replay.against_sort >= AGAINST_SORT and replay.against_copy <= AGAINST_COPY else 1


if __name__ == "__main__":
    sys.exit(main())
