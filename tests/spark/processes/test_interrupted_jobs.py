"""Ctrl-C at any moment of a job, as a terminal sends it: to every process of the group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from tests.spark.backfills import fill, rows, source_of, table_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

ROOT = Path(__file__).parents[3]
PATIENCE = 90


def start(methods: str, argv: list[str]) -> subprocess.Popen[str]:
    """Start a backfill that is interrupted in its first call of each of these methods of Java's."""
    command = [sys.executable, "-m", "tests.spark.pressed_job", methods, *argv]
    env = os.environ | {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=env, text=True, start_new_session=True, **pipes)


def left_over(job: subprocess.Popen[str]) -> list[str]:
    """What still runs of a job that has ended, Java and workers: all of it has the job's session."""
    listed = subprocess.run(["ps", "-eo", "sess=,args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(job.pid)]


def assert_interrupted(job: subprocess.Popen[str]) -> None:
    _, told = job.communicate(timeout=PATIENCE)
    lines = told.splitlines()
    assert job.returncode == 130, told
    assert "Traceback" not in told
    assert any(line.startswith("stream-sort: stopping; ") for line in lines)
    assert lines[-1].startswith("stream-sort: interrupted; to go on: run the same command again")
    until = time.monotonic() + PATIENCE
    while left_over(job) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left_over(job)


def test_ctrl_c_in_a_call_to_java_ends_the_job_with_one_line(
    access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 5})
    job = start("setDefaultSession", [*table_options(access), "--sink", "parquet", "--out", str(tmp_path / "out")])
    assert_interrupted(job)


def test_ctrl_c_over_and_over_stops_tasks_once_and_the_job_goes_on_later(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 16})
    out = tmp_path / "out"
    argv = [*table_options(access), "--sink", "parquet", "--out", str(out), "--rows-per-part", "1"]
    job = start("cancelJobGroup", [*argv, "--max-read-units", "2"])
    while job.poll() is None and not list(out.glob("part-*")):
        time.sleep(0.01)
    for _ in range(3):
        os.killpg(job.pid, signal.SIGINT)
        time.sleep(0.1)
    assert_interrupted(job)
    assert len(rows(out)) < 16
    again = BackfillOptions(source_of(access), SinkOptions("parquet", out=str(out)), rows_per_part=1)
    assert backfill(again, spark).complete
    assert rows(out) == [("ada", seq) for seq in range(16)]


def test_ctrl_c_while_spark_leaves_changes_nothing_any_more(
    access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 5})
    job = start("stop", [*table_options(access), "--sink", "parquet", "--out", str(tmp_path / "out"), "--json"])
    shown, told = job.communicate(timeout=PATIENCE)
    assert (job.returncode, json.loads(shown)["complete"]) == (0, True)
    assert "Traceback" not in told
