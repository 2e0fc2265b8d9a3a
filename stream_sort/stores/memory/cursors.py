"""CursorStore and HeadReader in a dict. One page of a listing holds all, unless rows are asked for with a limit."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.model.activity import HOUR, hour_of
from stream_sort.model.records import Cursor, CursorPage, Head, Move, QueuePage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap
    from stream_sort.stores.memory.tables import MemoryTables


class MemoryCursorStore:
    """CursorStore in a dict."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def get(self, queue: str) -> Cursor | None:
        """See CursorStore."""
        return self._tables.cursors.get(queue)

    def create(self, cursor: Cursor) -> Move:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.setdefault(cursor.queue, cursor)
            return Move(row is cursor, row)

    def move(self, cursor: Cursor, new: int, now: float) -> Move | None:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(cursor.queue)
            if row is None or (row.position, row.withdrawals) != (cursor.position, cursor.withdrawals):
                return _lost(row)
            return self._write(replace(row, position=new, moved_at=now))

    def restart(self, cursor: Cursor, first_seq: int) -> Move | None:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(cursor.queue)
            if row is None or _start(row) != _start(cursor):
                return _lost(row)
            return self._write(replace(row, position=first_seq - 1, first_seq=first_seq))

    def set_waiting(self, cursor: Cursor, since: float | None) -> bool:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(cursor.queue)
            if row is None or (row.position, row.last_mark) != (cursor.position, cursor.last_mark):
                return False
            return self._write(replace(row, waiting_since=since, gap=None if since is None else row.gap)).won

    def note_gap(self, cursor: Cursor, gap: Gap | None) -> bool:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(cursor.queue)
            if row is None or (row.position, row.last_mark) != (cursor.position, cursor.last_mark):
                return False
            return self._write(replace(row, gap=gap)).won

    def set_policy(self, queue: str, policy: GapPolicy | None) -> bool:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(queue)
            return row is not None and self._write(replace(row, policy=policy)).won

    def nudge(self, queue: str, now: float) -> bool:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(queue)
            return row is not None and self._write(replace(row, nudges=row.nudges + 1, nudged_at=now)).won

    def set_floor(self, queue: str, floor: int) -> Move | None:
        """See CursorStore."""
        with self._tables.lock:
            row = self._tables.cursors.get(queue)
            if row is None or row.position < floor or (row.floor is not None and row.floor >= floor):
                return _lost(row)
            return self._write(replace(row, floor=floor))

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

    def _write(self, row: Cursor) -> Move:
        self._tables.cursors[row.queue] = row
        return Move(won=True, cursor=row)


class MemoryHeadReader:
    """HeadReader in a dict."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def peek(self, queue: str, seq: int) -> Head:
        """See HeadReader."""
        with self._tables.lock:
            return Head(self._tables.cursors.get(queue), seq in self._tables.queue(queue).slots)


def _start(row: Cursor) -> tuple[int, int, float | None]:
    return row.position, row.first_seq, row.last_mark


def _lost(row: Cursor | None) -> Move | None:
    return None if row is None else Move(won=False, cursor=row)


def _is_active(row: Cursor, since: float) -> bool:
    at = row.active_at
    return at is not None and at > since - HOUR and hour_of(row.queue, at) >= hour_of(row.queue, since)
