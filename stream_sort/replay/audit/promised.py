"""What an archive must hold at least, as its tables have it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.errors import StreamSortError
from stream_sort.replay.origins.archive.owner import Owner
from stream_sort.replay.ranges import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.ports import CursorStore
    from stream_sort.ports.archive import Archived, ArchiveMarks
    from stream_sort.replay.engine.source import Source
    from stream_sort.replay.files.storage import Storage


@dataclass(frozen=True, slots=True)
class Promise:
    """What an archive must hold of a queue: all of `(after, through]`; if that is not sure, it may have begun later."""

    after: int
    through: int
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Promises:
    """What an archive must hold, by its watermarks: `made` are those of the queues with rows in the cursor table.

    `floors` tells of all those rows how far the queue is trimmed; of queues with `damaged` rows nothing is known.
    """

    made: Mapping[str, Promise] = field(default_factory=dict)
    floors: Mapping[str, int | None] = field(default_factory=dict)
    marks: ArchiveMarks | None = None
    cursors: CursorStore | None = None
    damaged: Mapping[str, StreamSortError] = field(default_factory=dict)

    def without_rows(self, queues: Iterable[str]) -> dict[str, Promise]:
        """Return those of other queues: a cursor row may be lost, too. One with a row by now was begun meanwhile."""
        found = self._marked(set(queues).difference(self.floors, self.damaged))
        return {queue: _promise(mark, -1) for queue, mark in found.items() if not self._has_row(queue)}

    def _has_row(self, queue: str) -> bool:
        return self.cursors is not None and self.cursors.get(queue) is not None

    def unmarked(self, queues: Iterable[str]) -> list[str]:
        """Return those of some archived queues that have no watermark, nor have got one since."""
        wanted = set(queues).difference(self.made) if self.marks is not None else set()
        return sorted(wanted.difference(self._marked(wanted)))

    def _marked(self, queues: set[str]) -> dict[str, Archived]:
        return self.marks.archived(sorted(queues)) if self.marks is not None else {}


def promised(source: Source, storage: Storage, queues: tuple[str, ...] | None) -> Promises:
    """Return what an archive must hold at least, by its watermarks; nothing where no control table is named.

    SettingsError for tables that are not those of the archive: they know nothing of it.
    """
    if not source.control_table:
        return Promises()
    access, only = source.access, None if queues is None else frozenset(queues)
    Owner.of(access).check(storage)
    starts, floors, damaged = dict[str, int](), dict[str, int | None](), dict[str, StreamSortError]()
    for cursor in access.cursors(Selection(only=only), damaged):
        starts[cursor.queue], floors[cursor.queue] = cursor.first_seq - 1, cursor.floor
    marks = access.archive_marks(source.control_table, storage.canonical)
    made = {queue: _promise(mark, starts[queue]) for queue, mark in marks.archived(list(starts)).items()}
    return Promises(made, floors, marks, access.homes.only.cursors, damaged)


def _promise(mark: Archived, start: int) -> Promise:
    return Promise(start, mark.watermark, is_sure=False) if mark.began is None else Promise(mark.began, mark.watermark)
