"""Service: find how far a queue had come at a time, by the arrival times of what is stored.

Messages arrive out of order, so arrival times do not rise with the seqs: a gap may have been filled long after what
lies behind it came. But each slot also keeps the position that its writer saw. Whatever was released by then had
arrived before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore

PAGE = 1_000
# So many pages are read one after the other, at most; then it is safe to stop too early.
MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Finds checkpoints by time. The answer is never too far on; it may be too far back."""

    items: ItemStore

    def checkpoint(self, cursor: Cursor, time: float) -> int:
        """Return a checkpoint behind which every message lies that arrived at or after a time.

        No read for a queue that did not move since. Otherwise two small reads for each halving of the queue, 40 for a
        million messages, and a few pages: those from the last message that proves what came before it, which must be
        older by as much as clocks may differ. What has no arrival time, because others wrote it, counts as arrived
        later.
        """
        if cursor.moved_at is not None and cursor.moved_at < time - CLOCKS_DIFFER:
            return cursor.position
        return self._walk(cursor, self._proved(cursor, time - CLOCKS_DIFFER), time)

    def _proved(self, cursor: Cursor, time: float) -> int:
        """Return the furthest seq that is proved to have arrived before a time, with all before it."""
        low, high, proved = cursor.start, cursor.position, cursor.start
        while low < high:
            middle = (low + high + 1) // 2
            found = self.items.page(cursor.queue, middle - 1, high, 1).slots
            if found and _is_before(found[0].entries[0], time):
                seen = self.items.look(cursor.queue, found[0].first - 1, 1).seen
                proved, low = max((proved, *seen)), found[0].first
            else:
                high = middle - 1
        return min(proved, cursor.position)

    def _walk(self, cursor: Cursor, after: int, time: float) -> int:
        """Go on from a seq to the first message that arrived at or after a time, as far as a few pages reach."""
        for _ in range(MOST_PAGES):
            found = self.items.page(cursor.queue, after, cursor.position, PAGE).slots
            for entry in expand(found):
                if entry.seq != after + 1 or not _is_before(entry, time):
                    return after
                after = entry.seq
            if not found or after >= cursor.position:
                break
        return after


def _is_before(entry: Entry, time: float) -> bool:
    return entry.arrived_at is not None and entry.arrived_at < time
