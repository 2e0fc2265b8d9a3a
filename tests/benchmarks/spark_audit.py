"""How long an audit of an archive takes, against a bare groupBy count/min/max in Spark over the same rows as Parquet.

    python -m tests.benchmarks.spark_audit [rows [rounds]]

The audit reads every byte and checks it; the groupBy reads two columns. Ratios within one round count.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from stream_sort.replay.audit.job import audit
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.engine.session import spark_session
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import MESSAGES, messages
from tests.benchmarks.spark_archive import _slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 4_000_000
QUEUES = 1_000
FILE_ROWS = 100_000
ROUNDS = 5
BAR = 1.5


@dataclass(frozen=True, slots=True)
class Auditing:
    """Seconds, and the median of the ratios within each round."""

    rows: int
    audit: float
    packed: float
    plain: float
    against_packed: float
    against_plain: float

    def __str__(self) -> str:
        return (
            f"audit of {self.rows:,} rows in {QUEUES:,} queues: {self.audit:.1f} s, "
            f"{self.against_packed:.2f} times a bare groupBy over few large files ({self.packed:.1f} s; bar {BAR}), "
            f"{self.against_plain:.2f} times one over a file for each queue, as in the archive ({self.plain:.1f} s)"
        )


def measure(spark: SparkSession, folder: Path, rows: int = ROWS, rounds: int = ROUNDS) -> Auditing:
    """Some rounds of all, and two before them that do not count."""
    make(folder, rows)
    found = [
        (_audit(spark, folder, rows), _bare(spark, folder / "packed"), _bare(spark, folder / "plain"))
        for _ in range(rounds + 2)
    ][2:]
    ours, packed, plain = (statistics.median(column) for column in zip(*found, strict=True))
    against_packed = statistics.median(one / other for one, other, _ in found)
    return Auditing(
        rows, ours, packed, plain, against_packed, statistics.median(one / other for one, _, other in found)
    )


def make(folder: Path, rows: int) -> None:
    """The same rows three times: archived, as plain Parquet in as many files, and in few large ones."""
    storage, plain, packed = Storage(str(folder / "archive")), folder / "plain", folder / "packed"
    plain.mkdir()
    packed.mkdir()
    held: list[pa.Table] = []
    for queue in range(QUEUES):
        whole = Range(f"account-{queue:04d}", -1, rows // QUEUES - 1)
        batches = list(_slots(whole))
        write_segment(storage, whole, batches)
        table = pa.Table.from_batches(map(messages, batches), MESSAGES)
        pq.write_table(table, plain / f"{queue:05d}.parquet", compression="zstd", compression_level=1)
        held.append(table)
        if sum(one.num_rows for one in held) >= FILE_ROWS or queue == QUEUES - 1:
            pq.write_table(
                pa.concat_tables(held), packed / f"{queue:05d}.parquet", compression="zstd", compression_level=1
            )
            held = []


def _audit(spark: SparkSession, folder: Path, rows: int) -> float:
    began = time.perf_counter()
    report = audit(AuditOptions(Source(archive=str(folder / "archive"))), spark)
    took = time.perf_counter() - began
    if not report.complete or report.totals()["messages"] != rows:
        raise AssertionError(report.text())
    return took


def _bare(spark: SparkSession, folder: Path) -> float:
    began = time.perf_counter()
    frame = spark.read.parquet(str(folder))
    found = frame.groupBy("queue").agg(sf.count("*"), sf.min("seq"), sf.max("seq"))
    if len(found.collect()) != QUEUES:
        raise AssertionError("not all queues were counted")
    return time.perf_counter() - began


def main() -> int:
    """Measure, print, and tell by the exit code whether the bar is met."""
    rows, rounds = (*map(int, sys.argv[1:]), *(ROWS, ROUNDS)[len(sys.argv) - 1 :])
    spark = spark_session("audit benchmark")
    with tempfile.TemporaryDirectory() as folder:
        auditing = measure(spark, Path(folder), rows, rounds)
    spark.stop()
    print(auditing)
    return 0 if auditing.against_packed <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
