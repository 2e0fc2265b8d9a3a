"""The same guarantees in a dict: for the README, unit tests and the simulator. Nothing survives the process."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stream_sort.errors import TableNotFound
from stream_sort.model.message import clone
from stream_sort.model.records import Cleared, Cursor, Item, Look, Page
from stream_sort.model.table_names import check_table_name
from stream_sort.ports import Stores
from stream_sort.stores.memory.control import MemoryControl, MemoryControlStore
from stream_sort.stores.memory.cursors import MemoryCursorStore, MemoryHeadReader
from stream_sort.stores.memory.withdrawals import MemoryWithdrawalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.model.message import Message
    from stream_sort.model.records import Arrival, Tombstones
    from stream_sort.model.withdrawal import Withdrawal


@dataclass(slots=True)
class MemoryQueue:
    """The slots of one queue, their seqs in order, and the position that the writer of each had seen."""

    slots: dict[int, Item] = field(default_factory=dict)
    seqs: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def empty(self, seq: int) -> None:
        """Remove what a slot holds."""
        del self.slots[seq]
        del self.seqs[bisect_left(self.seqs, seq)]
        self.seen.pop(seq, None)


@dataclass(slots=True)
class MemoryTables:
    """All tables. One lock makes every call atomic, as a conditional write is."""

    queues: dict[str, MemoryQueue] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    controls: dict[str, MemoryControl] = field(default_factory=dict)
    withdrawn: dict[str, dict[int, Withdrawal]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def stores(self) -> Stores:
        """Return the ports onto these tables."""
        return Stores(
            MemoryItemStore(self),
            MemoryCursorStore(self),
            MemoryHeadReader(self),
            self.control,
            lambda: None,
            MemoryWithdrawalStore(self),
            check_control=self.check_control,
        )

    def control(self, table: str) -> MemoryControlStore:
        """Return the port onto a control table; it is there from then on."""
        check_table_name(table)
        with self.lock:
            return MemoryControlStore(self, self.controls.setdefault(table, MemoryControl()))

    def check_control(self, table: str) -> None:
        """TableNotFound for a control table that nobody ever used: a name that is not quite right has no consumers."""
        with self.lock:
            if check_table_name(table) not in self.controls:
                raise TableNotFound(f"no table {table!r} in memory; no consumer was made with it", table=table)

    def queue(self, name: str) -> MemoryQueue:
        """Return the slots of a queue, empty if it holds nothing."""
        return self.queues.get(name) or MemoryQueue()


class MemoryItemStore:
    """ItemStore in a dict."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def put(self, arrival: Arrival, now: float) -> Item | None:
        """See ItemStore."""
        message = arrival.message
        with self._tables.lock:
            there = self._tables.queue(message.queue).slots.get(message.seq)
            if there is not None:
                return _copy(there)
            self._fill(Item(message.queue, message.seq, clone(message.document), arrived_at=now), arrival.seen)
            return None

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Item | StreamSortError | None]:
        """See ItemStore."""
        return [self.put(arrival, now) for arrival in arrivals]

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """See ItemStore."""
        queue = tombstones.queue
        with self._tables.lock:
            empty = tuple(seq for seq in tombstones.seqs if seq not in self._tables.queue(queue).slots)
            for seq in empty:
                self._fill(Item(queue, seq, arrived_at=now, skipped=tombstones.reason), tombstones.seen)
            return empty

    def keep_late(self, message: Message, now: float) -> Item | None:  # noqa: ARG002  # the port's signature
        """See ItemStore."""
        with self._tables.lock:
            slots = self._tables.queue(message.queue).slots
            if message.seq not in slots:
                return None
            if slots[message.seq].is_tombstone and slots[message.seq].late is None:
                slots[message.seq] = replace(slots[message.seq], late=clone(message.document))
            return _copy(slots[message.seq])

    def look(self, queue: str, after: int, limit: int) -> Look:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            start = bisect_right(held.seqs, after)
            seqs = tuple(held.seqs[start : start + limit])
            more = start + limit < len(held.seqs)
            return Look(seqs, more, tuple(held.seen[seq] for seq in seqs if seq in held.seen))

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            start, stop = bisect_right(held.seqs, after), bisect_right(held.seqs, through)
            chosen = held.seqs[start : min(stop, start + limit)]
            return Page(tuple(_copy(held.slots[seq]) for seq in chosen), start + limit < stop)

    def arrivals(self, queue: str, after: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            start = bisect_right(held.seqs, after)
            slots = [held.slots[seq] for seq in held.seqs[start : start + limit]]
            found = (Item(queue, one.seq, arrived_at=one.arrived_at, skipped=one.skipped) for one in slots)
            return Page(tuple(found), start + limit < len(held.seqs))

    def arrivals_below(self, queue: str, before: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            stop = bisect_left(held.seqs, before)
            start = max(0, stop - limit)
            slots = [held.slots[seq] for seq in reversed(held.seqs[start:stop])]
            found = (
                Item(queue, one.seq, arrived_at=one.arrived_at, skipped=one.skipped, seen=held.seen.get(one.seq))
                for one in slots
            )
            return Page(tuple(found), start > 0)

    def taken(self, slots: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """See ItemStore."""
        with self._tables.lock:
            return {(queue, seq) for queue, seq in slots if seq in self._tables.queue(queue).slots}

    def highest(self, queue: str) -> int | None:
        """See ItemStore."""
        with self._tables.lock:
            seqs = self._tables.queue(queue).seqs
            return seqs[-1] if seqs else None

    def tombstones(self, queue: str, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            searched = [held.slots[seq] for seq in held.seqs[: -limit - 1 : -1]]
            found = tuple(_copy(item) for item in searched if item.is_tombstone)
            return Page(found, len(held.seqs) > limit)

    def delete(self, queue: str, after: int, through: int, limit: int) -> int:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            start, stop = bisect_right(held.seqs, after), bisect_right(held.seqs, through)
            chosen = held.seqs[start : min(stop, start + limit)]
            for seq in chosen:
                held.empty(seq)
            return len(chosen)

    def take_back(self, queue: str, seq: int) -> bool:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            if held.seen.get(seq, seq - 1) < seq:
                return False
            held.empty(seq)
            return True

    def clear(self, queue: str, after: int, through: int, limit: int) -> Cleared:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            start, stop = bisect_right(held.seqs, after), bisect_right(held.seqs, through)
            chosen = held.seqs[start : min(stop, start + limit)]
            kept = tuple(seq for seq in chosen if held.slots[seq].late is not None)
            for seq in set(chosen).difference(kept):
                held.empty(seq)
            return Cleared(len(chosen) - len(kept), kept, chosen[-1] if start + limit < stop else through)

    def _fill(self, item: Item, seen: int | None) -> None:
        held = self._tables.queues.setdefault(item.queue, MemoryQueue())
        held.slots[item.seq] = item
        insort(held.seqs, item.seq)
        if seen is not None:
            held.seen[item.seq] = seen


def _copy(item: Item) -> Item:
    return replace(item, document=clone(item.document), late=clone(item.late))
