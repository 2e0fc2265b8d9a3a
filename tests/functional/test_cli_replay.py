"""The jobs of the command line where Spark is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules["{missing}"] = None
sys.argv = ["stream-sort", "{job}", "{option}"]
from stream_sort.cli.app import main
main()
"""


INSTALL = "pip install '.[cli,spark]' in its folder, or make setup there; and Java 17"
JOBS = pytest.mark.parametrize(
    ("job", "missing"), [("backfill", "pyarrow"), ("audit", "pyarrow"), ("archive", "pyspark")]
)


def run_without(missing: str, job: str, option: str) -> subprocess.CompletedProcess[str]:
    code = CODE.format(job=job, missing=missing, option=option)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@JOBS
def test_without_the_extra_a_job_says_what_to_install(job: str, missing: str) -> None:
    done = run_without(missing, job, "--quiet")
    assert (done.returncode, done.stderr) == (2, f"stream-sort: {job} needs Spark: {INSTALL}\n")


@JOBS
def test_without_the_extra_a_job_says_what_it_takes_all_the_same(job: str, missing: str) -> None:
    done = run_without(missing, job, "--help")
    assert (done.returncode, done.stderr) == (0, f"stream-sort: {job} needs Spark: {INSTALL}\n")
    assert done.stdout.startswith(f"usage: stream-sort {job} ")
    assert "--items-table" in done.stdout
