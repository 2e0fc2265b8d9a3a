"""Messages, and several processes on the same tables in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort import StreamSorter

if TYPE_CHECKING:
    from stream_sort.stores.memory.tables import MemoryTables


def message(seq: int, queue: str = "q", **fields: Any) -> dict[str, Any]:
    return {"queue": queue, "seq": seq, **fields}


def tables_of(sorter: StreamSorter) -> MemoryTables:
    return sorter.stores.cursors._tables  # type: ignore[attr-defined]


def beside(sorter: StreamSorter, **options: Any) -> StreamSorter:
    """Another process on the same tables."""
    other = StreamSorter.in_memory(**options)
    tables = tables_of(other)
    there = tables_of(sorter)
    tables.queues, tables.cursors, tables.controls = there.queues, there.cursors, there.controls
    tables.withdrawn = there.withdrawn
    return other


def forget_arrival(sorter: Any, seq: int, queue: str = "q") -> None:
    """Make a slot one that others wrote: it has no time of arrival."""
    slots = sorter.stores.items._tables.queue(queue).slots  # type: ignore[attr-defined]
    slots[seq] = replace(slots[seq], entries=(replace(slots[seq].at(seq), arrived_at=None),))
