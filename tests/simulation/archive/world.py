"""What runs of archive share: a queue that grows, its tables, its archive; and a run that may die in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.model.slots import expand
from stream_sort.ports import Homes
from stream_sort.replay.archive import job
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.manifest import QUEUES
from stream_sort.sorter import Options, Sorter
from stream_sort.stores.memory.tables import MemoryTables
from stream_sort.testing.simulation.failure import Trace
from tests.simulation.archive.files import MemoryFiles
from tests.simulation.archive.fuse import Crash, Fuse
from tests.simulation.archive.seams import SPARK
from tests.simulation.archive.tables import CONTROL, FusedCursors, FusedItems, FusedMarks, MemoryAccess, MemoryOptions

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports.archive import Archived
    from stream_sort.replay.engine.report import JobReport

QUEUE = "q"
SKIPS = 0.1


class World:
    """One queue, its tables, its archive and its clock.

    `released` is every slot that the queue ever released, and `trimmed` what runs have deleted of them. `losses` are
    the mishaps so far; `is_forgotten` is whether a watermark was ever lost among them.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.trace = Trace()
        self.met: Counter[str] = Counter()
        self.fuse = Fuse()
        self.files = MemoryFiles(self.fuse)
        self.storage = Storage("memory")
        self.marks = FusedMarks(self.fuse)
        self.released: dict[int, Entry] = {}
        self.trimmed: dict[int, Entry] = {}
        self.losses = 0
        self.is_forgotten = False
        self._now = 1_000.0
        rows = MemoryTables()
        self._items = FusedItems(rows, self.fuse)
        stores = replace(rows.home(), items=self._items, cursors=FusedCursors(rows, self.fuse))
        self.sorter = Sorter(Homes(stores), Options(), lambda: self._now)
        self._next = rng.choice([0, 0, 0, -7])
        self.sorter.open(QUEUE, first_seq=self._next)

    @property
    def cursor(self) -> Cursor:
        """The row of the queue."""
        found = self.sorter.stores.cursors.get(QUEUE)
        assert found is not None
        return found

    @property
    def mark(self) -> Archived | None:
        """The watermark of the queue, None if there is none."""
        return self.marks.archived([QUEUE]).get(QUEUE)

    @property
    def names(self) -> list[str]:
        """The files of the queue in the archive, sorted."""
        return self.files.list(QUEUES)

    def release(self, count: int) -> None:
        """So many more messages, of which some are skipped."""
        for seq in range(self._next, self._next + count):
            self._now += 1
            if self.rng.random() < SKIPS:
                self.sorter.skip(QUEUE, [seq], reason="lost on the way")
            else:
                self.sorter.put({"queue": QUEUE, "seq": seq, "value": self.rng.randrange(100)})
        self._next += count
        page = self.sorter.stores.items.page(QUEUE, self._next - count - 1, self._next, count)
        self.released |= {entry.seq: entry for entry in expand(page.slots)}
        self.trace.add("sender", f"releases {count}, up to seq {self.cursor.position}")

    def trim_by_hand(self, through: int) -> None:
        """Somebody trims the table, before there is an archive."""
        self.sorter.trim(QUEUE, through, control_table=None)
        self._items.deleted.clear()
        self.trace.add("operator", f"trims up to seq {through}")

    def run(self, segment_rows: int, *, trim: bool, changes: int | None = None) -> JobReport | None:
        """A run of archive, which dies behind so many changes; None if it did."""
        access, per_part = MemoryAccess(self.sorter), self.rng.choice([1, 5, 1_000])
        options = MemoryOptions(
            access, CONTROL, self.storage, None, segment_rows, rows_per_part=per_part, trim=trim, marks=self.marks
        )
        if changes is not None:
            self.fuse.set(changes)
        report = None
        try:
            report = job.archive(options, SPARK)
        except Crash:
            self.met["crashes"] += 1
        finally:
            self.fuse.remove()
            self._note_run(f"segments of {segment_rows}{', trims' if trim else ''}", changes, report)
        return report

    def _note_run(self, what: str, changes: int | None, report: JobReport | None) -> None:
        self.trimmed |= self._items.deleted
        self.met["slots trimmed"] += len(self._items.deleted)
        self._items.deleted.clear()
        stands = f"watermark {self.mark and self.mark.watermark}, floor {self.cursor.floor}"
        if report is None:
            self.trace.add("archive", what, f"dies behind change {changes}" if changes else "fails", stands)
            return
        self.met["complete" if report.complete else "problems"] += 1
        problems = [str(row["problem"]) for row in report.queues if row["problem"]]
        self.trace.add("archive", what, answer="; ".join([*(problems or ["complete"]), stands]))
