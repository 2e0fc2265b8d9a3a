"""What an archive must hold at least, as its tables have it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.jobs.origins import access_of
from stream_sort.replay.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.ports.archive import Archived, ArchiveMarks
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.jobs.options import Source


@dataclass(frozen=True, slots=True)
class Promise:
    """What an archive must hold of a queue: all of `(after, through]`; if that is not sure, it may have begun later."""

    after: int
    through: int
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Promises:
    """What an archive must hold, by its watermarks: `made` are those of the queues with `rows` in the cursor table."""

    made: Mapping[str, Promise] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()
    marks: ArchiveMarks | None = None

    def without_rows(self, queues: Iterable[str]) -> dict[str, Promise]:
        """Those of other queues: a cursor row may be lost, too. No run archives such a queue meanwhile."""
        wanted = sorted(set(queues) - self.rows)
        found = self.marks.archived(wanted) if self.marks is not None else {}
        return {queue: _promise(mark, -1) for queue, mark in found.items()}


def promised(source: Source, storage: Storage, queues: tuple[str, ...] | None) -> Promises:
    """What an archive must hold at least, by the watermarks of its tables; nothing where no control table is named."""
    if not source.control_table:
        return Promises()
    access, only = access_of(source), None if queues is None else frozenset(queues)
    starts = {cursor.queue: cursor.first_seq - 1 for cursor in access.cursors(Selection(only=only))}
    marks = ArchiveOptions(access, source.control_table, storage).ledgers().marks
    made = {queue: _promise(mark, starts[queue]) for queue, mark in marks.archived(list(starts)).items()}
    return Promises(made, frozenset(starts), marks)


def _promise(mark: Archived, start: int) -> Promise:
    return Promise(start, mark.watermark, is_sure=False) if mark.began is None else Promise(mark.began, mark.watermark)
