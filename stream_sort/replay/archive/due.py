"""What of each queue may be archived: released, consumed by everybody, and not archived yet. Knows no Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.core.consumption import first_checkpoint
from stream_sort.errors import SettingsError
from stream_sort.replay.archive.origin import AT_ONCE
from stream_sort.replay.archive.plan import end_of_plans
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

    `watermark` is None where the control table has none; `held_by` is the consumer that is furthest behind.
    """

    cursor: Cursor
    after: int
    consumed: int
    watermark: int | None = None
    held_by: str = ""

    @property
    def queue(self) -> str:
        """The queue."""
        return self.cursor.queue

    @property
    def range(self) -> Range:
        """What is to be archived; it may be empty."""
        return Range(self.queue, self.after, max(self.after, self.consumed))

    @property
    def problem(self) -> str:
        """What keeps the archive from going on; empty if nothing does."""
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
            new = [cursor for cursor in cursors if cursor.queue not in marks]
            ends = dict(zip((cursor.queue for cursor in new), pool.map(self._archived, new), strict=True)) | marks
        rows = {consumer.name: self.control.checkpoints(consumer.name, queues) for consumer in consumers}
        for cursor in cursors:
            queue = cursor.queue
            behind = {one.name: _checkpoint(one, rows[one.name].get(queue), cursor) for one in consumers}
            slowest = min(behind, key=behind.__getitem__, default="")
            consumed = min([cursor.position, *behind.values()])
            if ends[queue] > cursor.position:
                raise SettingsError(
                    f"queue {queue!r} is archived in {self.storage.uri} up to seq {ends[queue]}, and released up to "
                    f"{cursor.position} only; is it the archive of other tables?"
                )
            held_by = slowest if consumed < cursor.position else ""
            yield Due(cursor, ends[queue], consumed, marks.get(queue), held_by)

    def _archived(self, cursor: Cursor) -> int:
        """How far the archive itself goes: the watermark of one that was moved is under its old address."""
        end = end_of_plans(self.storage, cursor.queue)
        return cursor.start if end is None else end


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
