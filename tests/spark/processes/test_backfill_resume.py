"""A job whose driver is killed again and again. STREAM_SORT_KILLS=10 kills it ten times; by default it is two."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_sort import StreamSorter
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from tests.spark.backfills import files, fill, source_of, table_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort.replay.origins.access import TableAccess

KILLS = int(os.environ.get("STREAM_SORT_KILLS", "2"))
SCRIPT = Path(__file__).parents[3] / "spark" / "backfill.py"
LENGTHS = {"ada": 120 + 120 * KILLS, "bob": 60 + 60 * KILLS, "eve": 30, "{x,y}": 5}
ROWS_PER_PART = 20


def start(argv: list[str]) -> subprocess.Popen[bytes]:
    env = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    command = [sys.executable, str(SCRIPT), *argv, "--quiet"]
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE)


def kill_at_a_random_moment(job: subprocess.Popen[bytes], ledger: Path, chance: random.Random) -> bool:
    """Wait until the job writes something new, and a little longer; whether it was still running then."""
    _await_progress(job, ledger)
    time.sleep(chance.uniform(0.0, 0.6))
    running = job.poll() is None
    job.send_signal(signal.SIGKILL)
    job.communicate()
    return running


def _await_progress(job: subprocess.Popen[bytes], ledger: Path) -> None:
    before = _written(ledger)
    while job.poll() is None and _written(ledger) == before:
        time.sleep(0.01)


def _written(ledger: Path) -> set[tuple[Path, int]]:
    """The ledger's files and when each was written; those on their way to their name do not count."""
    return {(file, file.stat().st_mtime_ns) for file in ledger.rglob("*.json")}


def interrupt(argv: list[str], ledger: Path) -> None:
    """Stop the job as Ctrl-C does."""
    job = start(argv)
    _await_progress(job, ledger)
    job.send_signal(signal.SIGINT)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 130
    assert told.decode().splitlines()[-1].startswith("stream-sort: interrupted; to go on: run the same command again")


def run_killed(argv: list[str], ledger: Path, kills: int) -> int:
    """Kill the job so often, then let it finish; how often it was killed while it ran."""
    chance, killed = random.Random(kills), 0
    for _ in range(kills):
        killed += kill_at_a_random_moment(start(argv), ledger, chance)
    last = start(argv)
    _, told = last.communicate(timeout=120)
    assert last.returncode == 0, told.decode()
    return killed


def test_a_job_killed_at_random_writes_the_same_bytes_as_one_that_was_not(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    undisturbed = SinkOptions("parquet", out=str(tmp_path / "undisturbed"))
    assert backfill(BackfillOptions(source_of(access), undisturbed, rows_per_part=ROWS_PER_PART), spark).complete
    out = tmp_path / "killed"
    # A rate, so that there is time to kill it: a part takes a unit.
    pace = ["--rows-per-part", str(ROWS_PER_PART), "--max-read-units", "10"]
    argv = [*table_options(access), "--sink", "parquet", "--out", str(out), *pace]
    assert run_killed(argv, out / "_stream_sort", KILLS) == KILLS
    assert files(out) == files(tmp_path / "undisturbed")
    assert len(files(out)) > 9 * KILLS


def test_an_interrupted_job_ends_without_spark_telling_of_every_task(
    access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 60})
    pace = ["--rows-per-part", "1", "--max-read-units", "2"]
    job = start([*table_options(access), "--sink", "jsonl", "--out", str(tmp_path), *pace])
    while job.poll() is None and not list(tmp_path.glob("part-*")):
        time.sleep(0.01)
    job.send_signal(signal.SIGINT)
    _, told = job.communicate(timeout=60)
    assert job.returncode == 130
    said = told.decode()
    assert said.splitlines()[-1].startswith("stream-sort: interrupted; to go on: run the same command again")
    assert "stream-sort: stopping" in said
    assert "ERROR" not in said
    assert " WARN " not in said
    assert "log4j" not in said
    assert "\tat " not in said


def test_a_delivery_interrupted_and_killed_leaves_the_target_as_the_source(
    access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    sorter.put({"queue": "bob", "seq": LENGTHS["bob"] + 1})
    sorter.skip("bob", LENGTHS["bob"], "given up")
    name = uuid.uuid4().hex[:12]
    target = StreamSorter(f"to-items-{name}", f"to-cursor-{name}", client=dynamodb)
    target.create_tables()
    to = ["--sink", "table", "--to-items-table", f"to-items-{name}", "--to-cursor-table", f"to-cursor-{name}"]
    argv = [*table_options(access), *to, "--checkpoint", str(tmp_path), "--batch-size", "5"]
    interrupt(argv, tmp_path)
    assert run_killed(argv, tmp_path, KILLS // 2) >= 1
    for queue in LENGTHS:
        assert list(target.read(queue)) == list(sorter.read(queue))
