"""What of each queue may be archived: released, consumed by everybody, and not archived yet. Knows no Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.core.consumption import first_checkpoint
from stream_sort.errors import SettingsError
from stream_sort.replay.archive.manifest import folder_of
from stream_sort.replay.archive.origin import AT_ONCE
from stream_sort.replay.archive.shelf import Damage, Shelf, settled, with_data
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.core.consumption import Checkpoint, Subscription
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore
    from stream_sort.ports.archive import ArchiveMarks
    from stream_sort.replay.files.storage import Storage

TOGETHER = 100


@dataclass(frozen=True, slots=True)
class Due:
    """How a queue stands: archived up to `after`, consumed by all up to `consumed`.

    `watermark` is None where the control table has none; `held_by` is the consumer that is furthest behind. Where the
    archive has lost something, `after` is before that, and `lost` how far it went; what it was may be known.
    """

    cursor: Cursor
    after: int
    consumed: int
    watermark: int | None = None
    held_by: str = ""
    lost: int | None = None
    damage: Damage | None = None

    @property
    def queue(self) -> str:
        """The queue."""
        return self.cursor.queue

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
        return (
            f"it is archived up to seq {self.after} and trimmed up to {self.cursor.start}: what is between is in "
            "neither. Put it back from a backup, or begin another archive"
        )


@dataclass(frozen=True, slots=True)
class Ledgers:
    """Where it stands how far queues are consumed and archived."""

    control: ControlStore
    marks: ArchiveMarks
    storage: Storage

    def due(self, cursors: Iterable[Cursor]) -> list[Due]:
        """How each queue stands, sorted by name."""
        # Whoever registers later starts where the archive or the table can still serve it.
        consumers = self.control.consumers()
        found = (one for some in _chunks(cursors) for one in self._some(some, consumers))
        return sorted(found, key=lambda one: one.queue)

    def _some(self, cursors: Sequence[Cursor], consumers: Sequence[Subscription]) -> Iterator[Due]:
        queues = [cursor.queue for cursor in cursors]
        marks = self.marks.watermarks(queues)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            shelves = list(pool.map(self._shelf, queues))
        rows = {consumer.name: self.control.checkpoints(consumer.name, queues) for consumer in consumers}
        for cursor, shelf in zip(cursors, shelves, strict=True):
            queue = cursor.queue
            behind = {one.name: _checkpoint(one, rows[one.name].get(queue), cursor) for one in consumers}
            slowest = min(behind, key=behind.__getitem__, default="")
            consumed = min([cursor.position, *behind.values()])
            held_by = slowest if consumed < cursor.position else ""
            after, lost = _archived(cursor, shelf, marks.get(queue))
            self._check_end(cursor, after if lost is None else lost)
            yield Due(cursor, after, consumed, marks.get(queue), held_by, lost, shelf.damage())

    def _shelf(self, queue: str) -> Shelf:
        def look() -> Shelf:
            return Shelf.of(with_data(self.storage.list(folder_of(queue))))

        return settled(look(), look)

    def _check_end(self, cursor: Cursor, end: int) -> None:
        if end > cursor.position:
            raise SettingsError(
                f"queue {cursor.queue!r} is archived in {self.storage.uri} up to seq {end}, and released up to "
                f"{cursor.position} only; is it the archive of other tables?"
            )


def _archived(cursor: Cursor, shelf: Shelf, watermark: int | None) -> tuple[int, int | None]:
    """Up to where the archive is whole, and how far it went where that is further."""
    damage, end = shelf.damage(), shelf.end
    known = [one for one in (end, watermark) if one is not None]
    if damage is not None:
        return damage.after, max(known, default=damage.after)
    if watermark is None:
        # A new archive, or one that was moved: its watermark is under its old address.
        return (cursor.start if end is None else end), None
    if end is None:
        return cursor.first_seq - 1, watermark
    return min(end, watermark), (watermark if end < watermark else None)


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
