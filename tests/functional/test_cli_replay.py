"""The jobs of the command line where Spark is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
sys.modules["{missing}"] = None
sys.argv = ["stream-sort", "{job}", "--help"]
from stream_sort.cli.app import main
main()
"""


@pytest.mark.parametrize(("job", "missing"), [("backfill", "pyarrow"), ("audit", "pyarrow"), ("archive", "pyspark")])
def test_without_the_extra_a_job_says_what_to_install(job: str, missing: str) -> None:
    code = CODE.format(job=job, missing=missing)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    install = "pip install '.[cli,spark]' in its folder, or make setup there; and Java 17"
    assert (done.returncode, done.stderr) == (2, f"stream-sort: {job} needs Spark: {install}\n")
