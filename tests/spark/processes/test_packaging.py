"""The package as a zip for --py-files: driver and executors of spark-submit run from it, with no other stream_sort."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pyarrow.parquet as pq
import pytest

from stream_sort.replay.py_files import write_zip

if TYPE_CHECKING:
    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

ROOT = Path(__file__).parents[3]
LIBRARIES = sysconfig.get_path("purelib")
SUBMIT = Path(LIBRARIES) / "pyspark" / "bin" / "spark-submit"
WHERE = """
import stream_sort
from pyspark.sql import SparkSession

def where(_):
    import stream_sort.replay.slots
    return stream_sort.replay.slots.__file__

spark = SparkSession.builder.getOrCreate()
print("driver", stream_sort.__file__)
print("executor", spark.sparkContext.parallelize([1], 1).map(where).first())
"""


@pytest.fixture(scope="module")
def bundle() -> Path:
    subprocess.run(["make", "dist/stream_sort.zip"], cwd=ROOT, check=True, capture_output=True, timeout=60)
    return ROOT / "dist" / "stream_sort.zip"


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """This project's libraries without this project.

    It is installed by a .pth file, which a Python obeys in its own folder of libraries, but not in one of PYTHONPATH.
    """
    python = getattr(sys, "_base_executable", sys.executable)
    names = ("PATH", "JAVA_HOME", "HOME", "SPARK_SUBMIT_OPTS")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return kept | {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONPATH": LIBRARIES,
        "PYTHONDONTWRITEBYTECODE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


def submitted(
    environment: dict[str, str], folder: Path, bundle: Path | None, *job: str
) -> subprocess.CompletedProcess[str]:
    """What `spark-submit --py-files bundle job` does, far from this folder, with all that the job said on stdout.

    The job says it into a file: Spark passes it on as well, but when a job fails it ends without waiting until it has.
    """
    driver, said = folder / "driver", folder / "said"
    driver.write_text(f'#!/bin/sh\nexec "{environment["PYSPARK_DRIVER_PYTHON"]}" "$@" >"{said}" 2>&1\n')
    driver.chmod(0o755)
    files = [] if bundle is None else ["--py-files", str(bundle)]
    command = [str(SUBMIT), "--master", "local[1]", "--conf", "spark.ui.enabled=false", *files, *job]
    variables = environment | {"PYSPARK_DRIVER_PYTHON": str(driver)}
    done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return subprocess.CompletedProcess(command, done.returncode, said.read_text() if said.exists() else "", done.stderr)


def test_the_zip_holds_the_modules_of_the_package_and_nothing_else(bundle: Path) -> None:
    with ZipFile(bundle) as opened:
        names = opened.namelist()
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "stream_sort").rglob("*.py")}
    assert set(names) == modules | {"stream_sort/py.typed"}
    assert len(names) == len(set(names))


def test_the_same_sources_make_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    write_zip(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == bundle.read_bytes()


def test_without_the_zip_there_is_no_stream_sort_there(environment: dict[str, str], tmp_path: Path) -> None:
    done = submitted(environment, tmp_path, None, str(ROOT / "spark" / "backfill.py"), "--help")
    assert done.returncode != 0
    # An editable install leaves a folder of that name there, with the files that a wheel has beside the package.
    assert re.search(r"No module named 'stream_sort(\.replay)?'", done.stdout), done.stdout


def test_driver_and_executors_import_from_the_zip(environment: dict[str, str], bundle: Path, tmp_path: Path) -> None:
    script = tmp_path / "where.py"
    script.write_text(WHERE)
    done = submitted(environment, tmp_path, bundle, str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("driver", "executor")))
    assert {kind: "stream_sort.zip/" in path for kind, path in found.items()} == {"driver": True, "executor": True}


@pytest.mark.parametrize("job", ["backfill", "audit", "archive"])
def test_a_job_says_what_it_takes(job: str, environment: dict[str, str], bundle: Path, tmp_path: Path) -> None:
    done = submitted(environment, tmp_path, bundle, str(ROOT / "spark" / f"{job}.py"), "--help")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"usage: stream-sort {job}" in done.stdout


def test_a_backfill_runs_from_the_zip(
    environment: dict[str, str], bundle: Path, tmp_path: Path, sorter: StreamSorter, access: TableAccess
) -> None:
    sorter.put_many({"queue": queue, "seq": seq, "text": "x"} for seq in range(40) for queue in ("ada", "bob"))
    job = [str(ROOT / "spark" / "backfill.py"), "--items-table", access.items_table]
    job += ["--cursor-table", access.cursor_table, "--endpoint-url", str(access.endpoint_url), "--region", "us-east-1"]
    done = submitted(environment, tmp_path, bundle, *job, "--sink", "parquet", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert [(row["queue"], row["seq"]) for row in rows] == [
        (queue, seq) for queue in ("ada", "bob") for seq in range(40)
    ]
