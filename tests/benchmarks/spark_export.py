"""How fast a point-in-time export becomes ordered Parquet, against a read, sort and write in Spark without any check.

    python -m tests.benchmarks.spark_export [rows [rounds]]

Both read the same gzip files and write the same rows, in turn, in one session. Ratios within one round count.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from stream_sort.replay import read_export
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.engine.options import JobParser
from stream_sort.replay.engine.session import spark_session
from tests.benchmarks.spark_archive import _in_order
from tests.spark.exports import ID, md5

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = 4_000_000
QUEUES = 1_000
FILE_ROWS = 250_000
ROUNDS = 3
BAR = 1.3
# What a hand-written job knows of its table.
SCHEMA = (
    "Item struct<queue: struct<S: string>, seq: struct<N: string>, amount: struct<N: string>, event: struct<S: string>>"
)
ITEM = (
    "to_json(named_struct('amount', cast(Item.amount.N as bigint), 'event', Item.event.S, "
    "'queue', Item.queue.S, 'seq', cast(Item.seq.N as bigint))) as item"
)


@dataclass(frozen=True, slots=True)
class Ordering:
    """Seconds, and the medians of the ratios within each round."""

    rows: int
    frame: float
    job: float
    by_hand: float
    frame_ratio: float
    job_ratio: float

    def __str__(self) -> str:
        return (
            f"export -> ordered Parquet, {self.rows:,} rows: read_export {self.frame:.1f} s, backfill "
            f"{self.job:.1f} s; {self.frame_ratio:.2f} and {self.job_ratio:.2f} times a read, sort and write "
            f"by hand ({self.by_hand:.1f} s; bar {BAR})"
        )


def measure(spark: SparkSession, folder: Path, rows: int = ROWS, rounds: int = ROUNDS) -> Ordering:
    """Some rounds of all, and one before them that does not count."""
    make(folder, rows)
    found = [_round(spark, folder, rows) for _ in range(rounds + 1)][1:]
    frame, job, by_hand = (statistics.median(column) for column in zip(*found, strict=True))
    frame_ratio = statistics.median(ours / theirs for ours, _, theirs in found)
    job_ratio = statistics.median(ours / theirs for _, ours, theirs in found)
    return Ordering(rows, frame, job, by_hand, frame_ratio, job_ratio)


def make(folder: Path, rows: int) -> None:
    """An export with every queue scattered over all its files."""
    data = folder / "AWSDynamoDB" / ID / "data"
    data.mkdir(parents=True)
    listed = []
    for number, lines in enumerate(_files(rows)):
        content = gzip.compress("".join(lines).encode(), compresslevel=1)
        name = f"{number:05d}.json.gz"
        (data / name).write_bytes(content)
        key = f"AWSDynamoDB/{ID}/data/{name}"
        listed.append({"itemCount": len(lines), "md5Checksum": md5(content), "dataFileS3Key": key})
    (data.parent / "manifest-files.json").write_text("".join(json.dumps(row) + "\n" for row in listed))
    summary = {"itemCount": rows, "outputFormat": "DYNAMODB_JSON", "exportType": "FULL_EXPORT"}
    (data.parent / "manifest-summary.json").write_text(json.dumps(summary))


def _files(rows: int) -> Iterator[list[str]]:
    order = list(range(rows))
    random.Random(1).shuffle(order)
    for start in range(0, rows, FILE_ROWS):
        yield [_line(number % QUEUES, number // QUEUES) for number in order[start : start + FILE_ROWS]]


def _line(queue: int, seq: int) -> str:
    event = f"{seq * 2654435761 % 2**32:08x}" * 8
    return (
        f'{{"Item":{{"queue":{{"S":"account-{queue:04d}"}},"seq":{{"N":"{seq}"}},'
        f'"_ss_at":{{"N":"{1_700_000_000_000 + seq}"}},"_ss_seen":{{"N":"{seq - 1}"}},'
        f'"amount":{{"N":"{seq * 37 % 10_007}"}},"event":{{"S":"{event}"}}}}}}\n'
    )


def _round(spark: SparkSession, folder: Path, rows: int) -> tuple[float, float, float]:
    out, home = folder / "out", folder / "AWSDynamoDB" / ID

    def job() -> None:
        given = ["--export", str(home), "--sink", "parquet", "--out", str(out), "--quiet"]
        if not backfill(BackfillOptions.of(JobParser("backfill").parse_args(given)), spark).complete:
            raise AssertionError("the backfill is not complete")

    frame = _seconds(lambda: read_export(spark, str(home)).write.parquet(str(out)), out, rows)
    return frame, _seconds(job, out, rows), _seconds(lambda: _by_hand(spark, home).write.parquet(str(out)), out, rows)


def _by_hand(spark: SparkSession, home: Path) -> DataFrame:
    lines = spark.read.schema(SCHEMA).json(str(home / "data"))
    return lines.selectExpr("Item.queue.S as queue", "cast(Item.seq.N as bigint) as seq", ITEM).orderBy("queue", "seq")


def _seconds(work: Callable[[], None], out: Path, rows: int) -> float:
    began = time.perf_counter()
    work()
    took = time.perf_counter() - began
    files = [pq.read_table(file, columns=["queue", "seq"]) for file in out.glob("*.parquet")]
    written = sum(file.num_rows for file in files)
    if written != rows or not all(map(_in_order, files)):
        raise AssertionError(f"{written:,} rows of {rows:,} were written, or not in order")
    shutil.rmtree(out)
    return took


def main() -> int:
    """Measure, print, and tell by the exit code whether the bar is met."""
    rows, rounds = (*map(int, sys.argv[1:]), *(ROWS, ROUNDS)[len(sys.argv) - 1 :])
    spark = spark_session("export benchmark")
    with tempfile.TemporaryDirectory() as folder:
        ordering = measure(spark, Path(folder), rows, rounds)
    spark.stop()
    print(ordering)
    return 0 if max(ordering.frame_ratio, ordering.job_ratio) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
