"""What an archive must hold at least, as its tables have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.jobs.origins import access_of
from stream_sort.replay.ranges import Range
from stream_sort.replay.selection import Selection

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.jobs.options import Source


def promised(source: Source, storage: Storage, queues: tuple[str, ...] | None) -> dict[str, Range]:
    """What an archive must hold at least, by the watermarks of its tables; nothing where no control table is named."""
    if not source.control_table:
        return {}
    access, only = access_of(source), None if queues is None else frozenset(queues)
    starts = {cursor.queue: cursor.first_seq - 1 for cursor in access.cursors(Selection(only=only))}
    marks = ArchiveOptions(access, source.control_table, storage).ledgers().marks.watermarks(list(starts))
    return {queue: Range(queue, starts[queue], mark) for queue, mark in marks.items()}
