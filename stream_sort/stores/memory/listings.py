"""Listings of cursor rows in a dict: queues that wait, that are active, and all of them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.model.activity import HOUR, hour_of
from stream_sort.model.records import Cursor, CursorPage, QueuePage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.stores.memory.tables import MemoryTables


class MemoryCursorListings:
    """The listings of a CursorStore in a dict. One page holds all, unless rows are asked for with a limit."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def waiting(self, before: float, start: Any = None) -> QueuePage:  # noqa: ARG002  # one page holds all
        """See CursorStore."""
        with self._tables.lock:
            marked = [
                (row.waiting_since, row.queue)
                for row in self._tables.cursors.values()
                if row.waiting_since is not None and row.waiting_since <= before
            ]
            return QueuePage(tuple(queue for _, queue in sorted(marked)))

    def active(self, since: float, start: Any = None) -> QueuePage | None:  # noqa: ARG002  # one page holds all
        """See CursorStore."""
        with self._tables.lock:
            return QueuePage(tuple(row.queue for row in self._tables.cursors.values() if _is_active(row, since)))

    def queues(self, start: Any = None) -> QueuePage:  # noqa: ARG002  # one page holds all
        """See CursorStore."""
        with self._tables.lock:
            return QueuePage(tuple(self._tables.cursors))

    def rows(self, start: Any = None, limit: int | None = None) -> CursorPage:
        """See CursorStore."""
        with self._tables.lock:
            first, there = start or 0, self._tables.cursors
            end = len(there) if limit is None else first + limit
            return CursorPage(tuple(islice(there.values(), first, end)), end if end < len(there) else None)

    def rows_of(self, queues: Sequence[str]) -> CursorPage:
        """See CursorStore."""
        with self._tables.lock:
            found = (self._tables.cursors.get(queue) for queue in dict.fromkeys(queues))
            return CursorPage(tuple(row for row in found if row is not None))


def _is_active(row: Cursor, since: float) -> bool:
    at = row.active_at
    return at is not None and at > since - HOUR and hour_of(row.queue, at) >= hour_of(row.queue, since)
