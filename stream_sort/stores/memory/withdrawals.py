"""WithdrawalStore in a dict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.model.message import clone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.stores.memory.tables import MemoryTables


class MemoryWithdrawalStore:
    """WithdrawalStore in a dict."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def withdraw(self, cursor: Cursor, wanted: Withdrawal) -> Withdrawal | None:
        """See WithdrawalStore."""
        tables, queue = self._tables, wanted.queue
        with tables.lock:
            row, slot = tables.cursors.get(queue), tables.queue(queue).slots.get(wanted.seq)
            kept = tables.withdrawn.get(queue, {})
            if row is None or slot is None or slot.at(wanted.seq).is_tombstone or wanted.number in kept:
                return None
            if row.withdrawals != cursor.withdrawals or not self._is_beyond_a_gap(row, wanted.seq):
                return None
            done = replace(wanted, message=clone(slot.at(wanted.seq).document))
            tables.queues[queue].empty(wanted.seq)
            tables.cursors[queue] = replace(row, withdrawals=wanted.number)
            tables.withdrawn[queue] = kept | {wanted.number: done}
            return replace(done, message=clone(done.message))

    def page(self, queue: str, after: int, limit: int) -> Sequence[Withdrawal]:
        """See WithdrawalStore."""
        with self._tables.lock:
            kept = self._tables.withdrawn.get(queue, {})
            numbers = sorted(number for number in kept if number > after)[:limit]
            return [replace(kept[number], message=clone(kept[number].message)) for number in numbers]

    def last(self, queue: str) -> int:
        """See WithdrawalStore."""
        with self._tables.lock:
            return max(self._tables.withdrawn.get(queue, {}), default=0)

    def _is_beyond_a_gap(self, row: Cursor, seq: int) -> bool:
        """Return True if the slot before `seq` is neither filled nor released."""
        return row.position < seq - 1 and seq - 1 not in self._tables.queue(row.queue).slots
