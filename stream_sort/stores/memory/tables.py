"""The same guarantees in a dict: for the README, unit tests and the simulator. Nothing survives the process."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stream_sort.errors import TableNotFound
from stream_sort.model.message import clone
from stream_sort.model.records import Cleared, Cursor, Look, Page, TakenSlots
from stream_sort.model.slots import Entry, Slot, expand
from stream_sort.model.table_names import check_table_name
from stream_sort.ports import Home
from stream_sort.stores.memory.control import MemoryControl
from stream_sort.stores.memory.cursors import MemoryCursorStore, MemoryHeadReader
from stream_sort.stores.memory.withdrawals import MemoryWithdrawalStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.model.message import Message
    from stream_sort.model.records import Arrival, Tombstones
    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.ports import ControlStores


@dataclass(slots=True)
class MemoryQueue:
    """The slots of one queue by their first seqs, these in order, and the position that the writer of each had seen."""

    slots: dict[int, Slot] = field(default_factory=dict)
    firsts: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)

    def entries(self) -> dict[int, Entry]:
        """Return what stands at each seq."""
        return {entry.seq: entry for entry in expand(self.slots.values())}

    def fill(self, slot: Slot, seen: int | None = None) -> None:
        """Add a slot that is not there."""
        self.slots[slot.first] = slot
        insort(self.firsts, slot.first)
        if seen is not None:
            self.seen[slot.first] = seen

    def empty(self, first: int) -> None:
        """Remove a slot."""
        del self.slots[first]
        del self.firsts[bisect_left(self.firsts, first)]
        self.seen.pop(first, None)

    def after(self, after: int, limit: int) -> tuple[list[Slot], bool]:
        """Return the lowest slots that begin after a seq, and whether more do."""
        start = bisect_right(self.firsts, after)
        return [self.slots[first] for first in self.firsts[start : start + limit]], start + limit < len(self.firsts)

    def within(self, after: int, through: int, limit: int) -> tuple[list[Slot], bool]:
        """Return the lowest slots that begin in `(after, through]`, and whether more do."""
        start, stop = bisect_right(self.firsts, after), bisect_right(self.firsts, through)
        return [self.slots[first] for first in self.firsts[start : min(stop, start + limit)]], start + limit < stop

    def holding(self, seq: int) -> Slot | None:
        """Return the slot that fills a seq."""
        below = bisect_right(self.firsts, seq)
        slot = self.slots[self.firsts[below - 1]] if below else None
        return slot if slot is not None and seq <= slot.last else None


@dataclass(slots=True)
class MemoryTables:
    """All tables. One lock makes every call atomic, as a conditional write is."""

    queues: dict[str, MemoryQueue] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    controls: dict[str, MemoryControl] = field(default_factory=dict)
    withdrawn: dict[str, dict[int, Withdrawal]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def home(self) -> Home:
        """Return the ports onto these tables."""
        return Home(
            MemoryItemStore(self),
            MemoryCursorStore(self),
            MemoryHeadReader(self),
            self.control,
            lambda: None,
            MemoryWithdrawalStore(self),
            check_control=self.check_control,
        )

    def control(self, table: str) -> ControlStores:
        """Return the ports onto a control table; it is there from then on."""
        check_table_name(table)
        with self.lock:
            return self.controls.setdefault(table, MemoryControl()).ports(self)

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

    def put(self, arrival: Arrival, now: float) -> Entry | None:
        """See ItemStore."""
        message = arrival.message
        with self._tables.lock:
            there = self._tables.queue(message.queue).slots.get(message.seq)
            if there is not None:
                return _copy(there.at(message.seq))
            self._fill(message.queue, Entry(message.seq, clone(message.document), arrived_at=now), arrival.seen)
            return None

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Entry | StreamSortError | None]:
        """See ItemStore."""
        return [self.put(arrival, now) for arrival in arrivals]

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """See ItemStore."""
        queue = tombstones.queue
        with self._tables.lock:
            empty = tuple(seq for seq in tombstones.seqs if seq not in self._tables.queue(queue).slots)
            for seq in empty:
                self._fill(queue, Entry(seq, arrived_at=now, skipped=tombstones.reason), tombstones.seen)
            return empty

    def keep_late(self, message: Message, now: float) -> Entry | None:  # noqa: ARG002  # the port's signature
        """See ItemStore."""
        with self._tables.lock:
            slots, seq = self._tables.queue(message.queue).slots, message.seq
            if seq not in slots:
                return None
            there = slots[seq].at(seq)
            if there.is_tombstone and there.late is None:
                there = replace(there, late=clone(message.document))
                slots[seq] = Slot(message.queue, (there,))
            return _copy(there)

    def look(self, queue: str, after: int, limit: int) -> Look:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            slots, more = held.after(after, limit)
            seen = tuple(held.seen[slot.first] for slot in slots if slot.first in held.seen)
            return Look(tuple(slot.seqs for slot in slots), more, seen)

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            slots, more = self._tables.queue(queue).within(after, through, limit)
            return Page(tuple(map(_copied, slots)), more)

    def holding(self, queue: str, seq: int) -> Slot | None:
        """See ItemStore."""
        with self._tables.lock:
            slot = self._tables.queue(queue).holding(seq)
            return None if slot is None else _copied(slot)

    def arrivals(self, queue: str, after: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            slots, more = self._tables.queue(queue).after(after, limit)
            return Page(tuple(map(_bare, slots)), more)

    def arrivals_below(self, queue: str, before: int, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            stop = bisect_left(held.firsts, before)
            start = max(0, stop - limit)
            slots = (held.slots[first] for first in reversed(held.firsts[start:stop]))
            return Page(tuple(replace(_bare(slot), seen=held.seen.get(slot.first)) for slot in slots), start > 0)

    def taken(self, slots: Sequence[tuple[str, int]]) -> TakenSlots:
        """See ItemStore."""
        with self._tables.lock:
            return TakenSlots({(queue, seq) for queue, seq in slots if seq in self._tables.queue(queue).slots})

    def highest(self, queue: str) -> int | None:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            return held.slots[held.firsts[-1]].last if held.firsts else None

    def tombstones(self, queue: str, limit: int) -> Page:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            searched = [held.slots[first] for first in held.firsts[: -limit - 1 : -1]]
            found = tuple(_copied(slot) for slot in searched if all(entry.is_tombstone for entry in slot.entries))
            return Page(found, len(held.firsts) > limit)

    def delete(self, queue: str, after: int, through: int, limit: int) -> int:
        """See ItemStore."""
        with self._tables.lock:
            held = self._tables.queue(queue)
            chosen = [slot for slot in held.within(after, through, limit)[0] if slot.last <= through]
            for slot in chosen:
                held.empty(slot.first)
            return sum(len(slot.entries) for slot in chosen)

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
            slots, more = held.within(after, through, limit)
            chosen = [slot for slot in slots if slot.last <= through]
            kept = tuple(entry.seq for entry in expand(chosen) if entry.late is not None)
            gone = [slot for slot in chosen if slot.first not in kept]
            for slot in gone:
                held.empty(slot.first)
            end = chosen[-1].last if more else through
            return Cleared(sum(len(slot.entries) for slot in gone), kept, end)

    def _fill(self, queue: str, entry: Entry, seen: int | None) -> None:
        self._tables.queues.setdefault(queue, MemoryQueue()).fill(Slot(queue, (entry,)), seen)


def _copy(entry: Entry) -> Entry:
    return replace(entry, document=clone(entry.document), late=clone(entry.late))


def _copied(slot: Slot) -> Slot:
    return Slot(slot.queue, tuple(map(_copy, slot.entries)))


def _bare(slot: Slot) -> Slot:
    """Return the slot without its documents."""
    return Slot(slot.queue, tuple(replace(entry, document={}, late=None) for entry in slot.entries))
