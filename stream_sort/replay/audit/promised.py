"""What an archive must hold at least, as its tables have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.jobs.origins import access_of
from stream_sort.replay.selection import Selection

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.jobs.options import Source


@dataclass(frozen=True, slots=True)
class Promise:
    """What an archive must hold of a queue: all of `(after, through]`; if that is not sure, it may have begun later."""

    after: int
    through: int
    is_sure: bool = True


def promised(source: Source, storage: Storage, queues: tuple[str, ...] | None) -> dict[str, Promise]:
    """What an archive must hold at least, by the watermarks of its tables; nothing where no control table is named."""
    if not source.control_table:
        return {}
    access, only = access_of(source), None if queues is None else frozenset(queues)
    starts = {cursor.queue: cursor.first_seq - 1 for cursor in access.cursors(Selection(only=only))}
    marks = ArchiveOptions(access, source.control_table, storage).ledgers().marks.archived(list(starts))
    return {
        queue: Promise(starts[queue], mark.watermark, is_sure=False)
        if mark.began is None
        else Promise(mark.began, mark.watermark)
        for queue, mark in marks.items()
    }
