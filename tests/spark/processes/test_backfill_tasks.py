from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import SettingsError
from stream_sort.replay.backfill.ledger import Ledger
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.backfill.run import BackfillRun
from stream_sort.replay.backfill.targets.files import FileWork
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Part, Range, Selection
from tests.replayed import slots
from tests.spark.backfills import files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

ROOT = Path(__file__).parents[3]


def test_killed_workers_and_failed_tasks_are_tried_again_and_leave_the_same_files(tmp_path: Path) -> None:
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.spark.fragile_tasks", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["fragile [0, 1, 2, 3, 4] 65", "undisturbed [0, 1, 2, 3, 4] 65"]
    assert len(list((tmp_path / "marks").iterdir())) == 5
    assert files(tmp_path / "fragile") == files(tmp_path / "undisturbed")
    assert not list((tmp_path / "fragile").glob(".*"))


def test_two_attempts_at_one_part_at_once_publish_the_same_bytes(tmp_path: Path) -> None:
    out, ledger = Storage(str(tmp_path / "out")), Ledger(Storage(str(tmp_path / "ledger")))
    work = FileWork(out, ledger, "parquet", Selection(), may_have_holes=False)
    part = Part(0, (Range("ada", -1, 99),))
    both = threading.Barrier(2)
    seen: list[bytes] = []

    def in_pieces(size: int) -> Iterator[pa.RecordBatch]:
        for first in range(0, 100, size):
            if first == 50:
                both.wait(60)
            yield slots("ada", range(first, first + size))

    def attempt(size: int) -> None:
        work(part, in_pieces(size))
        seen.append(out.read("part-0000000.parquet"))

    threads = [threading.Thread(target=attempt, args=(size,)) for size in (10, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(seen) == 2
    assert len(set(seen)) == 1
    assert list(files(tmp_path / "out")) == ["part-0000000.parquet"]


class Speculating:
    """A session that speculates; all that is asked of it is its configuration."""

    @property
    def sparkContext(self) -> Speculating:  # noqa: N802  # Spark's name
        return self

    def getConf(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        return {"spark.speculation": "true"}


def test_deliveries_are_refused_where_tasks_are_speculated_on(tmp_path: Path) -> None:
    sink = SinkOptions("kinesis", target="stream")
    options = BackfillOptions(Source("Items", "Cursor"), sink, checkpoint=str(tmp_path))
    with pytest.raises(SettingsError, match=r"spark\.speculation is on"):
        BackfillRun(options, Speculating())._work(JobPlan({}, (), 1.0))  # type: ignore[arg-type]
