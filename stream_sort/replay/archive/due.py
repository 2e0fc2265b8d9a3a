"""What of each queue may be archived: released, consumed by everybody, and not archived yet. Knows no Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.core.consumption import first_checkpoint
from stream_sort.errors import SettingsError
from stream_sort.replay.archive.folders import AT_ONCE, Looker
from stream_sort.replay.archive.manifest import folder_of
from stream_sort.replay.archive.plan import is_written
from stream_sort.replay.archive.shelf import settled, with_data
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.core.consumption import Checkpoint, Subscription
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore, CursorStore
    from stream_sort.ports.archive import Archived, ArchiveMarks
    from stream_sort.replay.archive.plan import SegmentPlan
    from stream_sort.replay.archive.shelf import Damage, Shelf
    from stream_sort.replay.files.storage import Storage

TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Due:
    """How a queue stands: archived up to `after`, consumed by all up to `consumed`.

    `mark` is None where the control table has none; `held_by` is the consumer that is furthest behind. Where the
    archive has lost something, `after` is before that, and `lost` how far it went; what it was may be known.
    `unfinished` is where a plan begins that is not finished, `unmarked` are those that only lack their marks. `begin`
    is where the first plan begins that is there, and `unplanned` whether segments may lie beyond `after` whose plan
    was lost.
    """

    cursor: Cursor
    after: int
    consumed: int
    mark: Archived | None = None
    held_by: str = ""
    lost: int | None = None
    damage: Damage | None = None
    unfinished: int | None = None
    unmarked: tuple[SegmentPlan, ...] = ()
    begin: int | None = None
    unplanned: bool = False

    @property
    def queue(self) -> str:
        """The queue."""
        return self.cursor.queue

    @property
    def began(self) -> int:
        """After which seq the archive begins: what is stored up to there is none of its."""
        known = [self.after, *([] if self.begin is None else [self.begin - 1])]
        return min([*known, *([] if self.mark is None or self.mark.began is None else [self.mark.began])])

    @property
    def lacks_watermark(self) -> bool:
        """Whether it is archived, and no watermark says so.

        A run died before it was set, the archive was moved, or the control table was restored to an earlier time.
        """
        if self.mark is None:
            return self.after > self.began and not self.problem
        return self.after > self.mark.watermark and self.lost is None and not self.problem

    @property
    def unmarked_segments(self) -> int:
        """The segments of plans that only lack their marks; those beyond `after` are yet to be counted."""
        return sum(len(plan.ends) for plan in self.unmarked if plan.through <= self.after)

    def step(self, wanted: Range) -> Range:
        """What one plan may hold of a range: none goes over the first one that is there."""
        ahead = self.ahead(wanted)
        return wanted if ahead is None else Range(wanted.queue, wanted.after, min(wanted.through, ahead - 1))

    def ahead(self, wanted: Range) -> int | None:
        """Where the first plan begins, if that is behind the beginning of a range."""
        return None if self.begin is None or wanted.after >= self.begin - 1 else self.begin

    @property
    def range(self) -> Range:
        """What is to be archived; it may be empty. What was lost was consumed by all when it was archived."""
        ends = [self.after, self.consumed, *([] if self.lost is None else [self.lost])]
        return Range(self.queue, self.after, max(ends))

    @property
    def problem(self) -> str:
        """What keeps the archive from going on; empty if nothing does."""
        if self.damage is not None and (self.after < self.cursor.start or not self.damage.planned):
            return f"the archive is damaged: {self.damage.problem}"
        if self.after >= self.cursor.start:
            return ""
        if self.unfinished is not None:
            return (
                f"it is trimmed up to seq {self.cursor.start}, and the plan from seq {self.unfinished} on is not "
                "marked as finished, nor are all its segments there. Put them back from a backup"
            )
        return (
            f"it is archived up to seq {self.after} and trimmed up to {self.cursor.start}: what is between is in "
            "neither, or its plan is lost. Put back what is missing from a backup, or begin another archive"
        )


@dataclass(frozen=True, slots=True)
class Ledgers:
    """Where it stands how far queues are consumed and archived."""

    control: ControlStore
    marks: ArchiveMarks
    storage: Storage
    cursors: CursorStore

    def due(self, cursors: Iterable[Cursor]) -> list[Due]:
        """How each queue stands, sorted by name."""
        # Whoever registers later starts where the archive or the table can still serve it.
        consumers = self.control.consumers()
        found = (one for some in _chunks(cursors) for one in self._some(some, consumers))
        return sorted(found, key=lambda one: one.queue)

    def _some(self, cursors: Sequence[Cursor], consumers: Sequence[Subscription]) -> Iterator[Due]:
        queues = [cursor.queue for cursor in cursors]
        marks = self.marks.archived(queues)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            shelves = list(pool.map(lambda cursor: self._shelf(cursor, marks.get(cursor.queue)), cursors))
        rows = {consumer.name: self.control.checkpoints(consumer.name, queues) for consumer in consumers}
        for cursor, shelf in zip(cursors, shelves, strict=True):
            queue = cursor.queue
            behind = {one.name: _checkpoint(one, rows[one.name].get(queue), cursor) for one in consumers}
            slowest = min(behind, key=behind.__getitem__, default="")
            consumed = min([cursor.position, *behind.values()])
            held_by = slowest if consumed < cursor.position else ""
            yield self._due(Due(cursor, cursor.start, consumed, marks.get(queue), held_by), shelf)

    def _due(self, due: Due, shelf: Shelf) -> Due:
        """How a queue stands, once the archive was looked at."""
        damage = shelf.damage(due.mark.began if due.mark else None)
        after, lost = _archived(due, shelf, damage)
        self._check_end(due.cursor, max(one for one in (after, lost, shelf.end) if one is not None))
        unplanned = lost is not None or any(first > after for first in shelf.segments[-1:])
        found = replace(due, after=after, lost=lost, damage=damage, begin=shelf.begin, unplanned=unplanned)
        return replace(found, unfinished=shelf.unfinished, unmarked=shelf.unmarked)

    def _shelf(self, cursor: Cursor, mark: Archived | None) -> Shelf:
        folder = folder_of(cursor.queue)
        began = None if mark is None else cursor.first_seq - 1 if mark.began is None else mark.began
        # What is trimmed was archived, though the watermark may be older than that.
        reached = max([cursor.start, *([] if mark is None else [mark.watermark])])
        written = partial(is_written, self.storage)
        looker = Looker(self.storage.read, written, cursor.position, began, reached)

        def look() -> Shelf:
            return looker.look(folder, with_data(self.storage.list(folder)))

        return settled(look(), look)

    def _check_end(self, cursor: Cursor, end: int) -> None:
        """Whatever the watermark says: what lies beyond the position may be other messages than those to come."""
        if end <= cursor.position:
            return
        # What was released and archived since the row was read is no other table's.
        row = self.cursors.get(cursor.queue)
        if row is None or end > row.position:
            raise SettingsError(
                f"queue {cursor.queue!r} is archived in {self.storage.uri} up to seq {end}, and released up to "
                f"{cursor.position} only; is it the archive of other tables? If these were restored to an earlier "
                "time, and no other messages have come since, put back what is archived (backfill --archive ... "
                "--sink table); else begin another archive"
            )


def _archived(due: Due, shelf: Shelf, damage: Damage | None) -> tuple[int, int | None]:
    """Up to where the archive is whole, and how far it went where that is further."""
    mark, end = due.mark, shelf.end
    known = [*([] if end is None else [end]), *([] if mark is None else [mark.watermark])]
    if damage is not None:
        return damage.after, max(known, default=damage.after)
    if mark is None:
        # A new archive, or one that was moved: its watermark is under its old address.
        return (due.cursor.start if end is None else end), None
    if end is None:
        return (due.cursor.first_seq - 1 if mark.began is None else mark.began), mark.watermark
    if mark.watermark < min(end, due.cursor.start):
        # What is trimmed was archived: the watermark is older than that. Marks tell how far it went.
        return end, None
    return min(end, mark.watermark), (mark.watermark if end < mark.watermark else None)


def _checkpoint(consumer: Subscription, row: Checkpoint | None, cursor: Cursor) -> int:
    if row is None:
        return first_checkpoint(consumer.start, cursor)
    return row.seq if row.parked is None else min(row.seq, row.parked.seq - 1)


def _chunks(cursors: Iterable[Cursor]) -> Iterator[list[Cursor]]:
    some: list[Cursor] = []
    for cursor in cursors:
        some.append(cursor)
        if len(some) == TOGETHER:
            yield some
            some = []
    if some:
        yield some
