"""Whether replay grows with its rows and no faster, in time and memory.

python -m tests.benchmarks.spark_growth [rows]
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from stream_sort.replay import register
from stream_sort.replay.engine.session import spark_session
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from tests.benchmarks.spark_archive import SEGMENT_ROWS, _slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 1_000_000
ROUNDS = 3
LONGEST_GROWTH = 4.6
# Beyond this, memory does not "stay flat": what differs is how much Python happens to keep.
FLAT_MB = 60


def main() -> int:
    """Measure, print, and tell by the exit code whether the bars are met."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    spark = spark_session("growth benchmark")
    register(spark)
    with tempfile.TemporaryDirectory() as folder:
        growth, memory = _growth(spark, Path(folder), rows)
    spark.stop()
    print(f"growth: {rows * 4:,} rows take {growth:.2f} times as long as {rows:,} (bar: {LONGEST_GROWTH})")
    print(f"memory: at its highest, a worker or the driver's Python had {memory:+.0f} MB with 4 times the rows")
    return 0 if growth <= LONGEST_GROWTH and memory <= FLAT_MB else 1


def _growth(spark: SparkSession, folder: Path, rows: int) -> tuple[float, float]:
    for name, count in (("one", rows), ("four", 4 * rows)):
        _archive(folder / name, [Range(f"account-{n:02}", -1, count // 10 - 1) for n in range(10)])
    _seconds(spark, folder, "one")
    before = _peak_mb()
    # Each pair in one round: what disturbs the machine disturbs both.
    times = [(_seconds(spark, folder, "one"), _seconds(spark, folder, "four")) for _ in range(ROUNDS)]
    return median(four / one for one, four in times), _peak_mb() - before


def _archive(folder: Path, ranges: list[Range]) -> None:
    storage = Storage(str(folder))
    for whole in ranges:
        for start in range(whole.after, whole.through, SEGMENT_ROWS):
            held = Range(whole.queue, start, min(start + SEGMENT_ROWS, whole.through))
            write_segment(storage, held, _slots(held))


def _seconds(spark: SparkSession, folder: Path, name: str) -> float:
    began = time.perf_counter()
    frame = spark.read.format("stream_sort").option("archive", str(folder / name)).load()
    frame.write.parquet(str(folder / "out"))
    took = time.perf_counter() - began
    shutil.rmtree(folder / "out")
    return took


def _peak_mb() -> float:
    """The most memory that this process or one of Spark's Python workers ever had."""
    mine = [os.getpid(), *(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())]
    return max(_high_water(pid) for pid in mine if pid == os.getpid() or _is_worker(pid))


def _is_worker(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _high_water(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
