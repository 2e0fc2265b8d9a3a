"""Jobs where Java is missing: what to install is said, nothing is written, and what needs no Spark goes first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from tests.unit.slot_rows import slots

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parents[2] / "spark"
TABLES = ["--items-table", "Items", "--cursor-table", "Cursor", "--region", "us-east-1"]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with what Spark's own scripts need, and no Java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for tool in ("bash", "dirname"):
        (folder / tool).symlink_to(shutil.which(tool) or "")
    return folder


def said_by(job: str, *argv: str, tools: Path) -> str:
    """The last line that a job says, which is that of a mistake."""
    env = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "SPARK_HOME"}}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{job}.py"), *argv],
        env={**env, "PATH": str(tools), "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("stream-sort: ")
    return last.removeprefix("stream-sort: ")


@pytest.fixture
def archive(tmp_path: Path) -> str:
    uri = str(tmp_path / "archive")
    write_segment(Storage(uri), Range("ada", -1, 9), slots(Range("ada", -1, 9)))
    return uri


def test_without_java_a_job_says_what_to_install(tools: Path) -> None:
    said = said_by("audit", *TABLES, tools=tools)
    assert said.endswith("Spark needs Java 17 or newer: install a JDK, or set JAVA_HOME")


def test_without_java_a_backfill_writes_nothing(tools: Path, archive: str, tmp_path: Path) -> None:
    said = said_by("backfill", "--archive", archive, "--sink", "jsonl", "--out", str(tmp_path / "out"), tools=tools)
    assert said.endswith("Spark needs Java 17 or newer: install a JDK, or set JAVA_HOME")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("job", "argv", "problem"),
    [
        ("audit", ["--archive", "{here}/nowhere"], "there is no archive at"),
        ("audit", ["--export", "{here}/nowhere"], "give the folder of a finished export"),
        (
            "audit",
            ["--archive", "{here}/archive", "--detail", "/proc/zz"],
            "--detail /proc/zz: it cannot be written to",
        ),
        ("backfill", ["--export", "{here}/nowhere", "--sink", "jsonl", "--out", "{here}/out"], "a finished export"),
        (
            "backfill",
            ["--archive", "{here}/archive", "--sink", "jsonl", "--out", "/proc/zz"],
            "--out /proc/zz: it cannot",
        ),
        ("archive", [*TABLES, "--control-table", "Control", "--archive", "/proc/x"], "--archive /proc/x: it cannot"),
    ],
)
@pytest.mark.usefixtures("archive")
def test_a_place_that_cannot_be_used_is_named_before_spark_starts(
    job: str, argv: list[str], problem: str, tools: Path, tmp_path: Path
) -> None:
    assert problem in said_by(job, *(word.format(here=tmp_path) for word in argv), tools=tools)
    assert not (tmp_path / "out").exists()
