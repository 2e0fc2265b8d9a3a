"""Writes the same parts twice: by tasks that die once each in the middle, and undisturbed. Run as a script."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from stream_sort.replay.backfill.ledger import Ledger
from stream_sort.replay.backfill.targets.files import FileWork
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.origin import read_parts
from stream_sort.replay.ranges import Range, Selection, cut_parts
from tests.replayed import slots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from stream_sort.replay.origins.origin import Work
    from stream_sort.replay.ranges import Part


@dataclass(frozen=True)
class MadeUp:
    """An origin of made up slots; where `marks` is a folder, the first to read a range dies in its middle."""

    marks: str

    def run(self, spark: SparkSession, parts: Sequence[Part], work: Work) -> Iterator[Any]:
        return read_parts(spark, parts, self, work)

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        middle = (wanted.after + wanted.through) // 2
        yield slots(wanted.queue, range(wanted.after + 1, middle + 1))
        if self.marks and self._is_first(f"{wanted.after}"):
            if wanted.after % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("this task fails")
        yield slots(wanted.queue, range(middle + 1, wanted.through + 1))

    def _is_first(self, name: str) -> bool:
        try:
            (Path(self.marks) / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def main(folder: str) -> None:
    """Do both, each into a folder of its own."""
    root = Path(folder)
    (root / "marks").mkdir()
    session = SparkSession.builder.master("local[2,3]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    parts = cut_parts([Range("ada", -1, 44), Range("bob", 100, 120)], 15)
    for name, marks in (("fragile", str(root / "marks")), ("undisturbed", "")):
        out, ledger = Storage(str(root / name)), Ledger(Storage(str(root / f"{name}-ledger")))
        work = FileWork(out, ledger, "parquet", Selection(), may_have_holes=False)
        answers = list(MadeUp(marks).run(session, parts, work))
        print(name, sorted(record.number for record in answers), sum(record.rows for record in answers))
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
