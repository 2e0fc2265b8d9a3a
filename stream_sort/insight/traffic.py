"""How many messages arrived and were released, and how many seqs were skipped, over a period.

Read newest first in every queue that may have been active, in so many reads at most. Messages arrive out of order, so a
page of older seqs may hold a newer arrival. But each slot keeps the position that its writer saw: all up to there had
arrived before it. So a walk from the highest seq down knows when to end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from stream_sort.insight.history import History, TimedSeq
from stream_sort.model.message import MAX_SEQ
from stream_sort.model.records import CLOCKS_DIFFER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore
    from stream_sort.ports.in_flight import InFlight

BINS = 48
HOUR, DAY = 3_600.0, 86_400.0
SPANS = (
    *(HOUR / count for count in (12, 4, 2)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 3, 7, 14, 30, 90, 365)),
)
# A period shows at least so much of what was read; a few old messages do not make it one of months.
SHARE = 0.9
# Most queues took few messages since any time; the others are worth a page of the full size.
FIRST_PAGE, PAGE = 100, 1_000


class QueueWalk:
    """One queue on the way from its highest seq down; whatever is not read yet arrived before `unread_before`.

    A row that moved long ago, and is not marked as waiting, says so by itself.
    """

    def __init__(self, row: Cursor, begin: float, end: float) -> None:
        self.row = row
        self.unread_before = end if row.waiting_since is not None else row.moved_at or -math.inf
        self.pages = 0
        self._begin, self._end = begin, end
        self._below = MAX_SEQ + 1
        self._at_the_bottom = False
        self._slots: list[TimedSeq] = []
        self._untimed = 0
        # What each slot proves that was read above it: (-seen, when it arrived).
        self._proofs: list[tuple[int, float]] = []

    @property
    def is_complete(self) -> bool:
        """Return True if nothing that is not read can have arrived in the period; clocks differ a little."""
        return self.unread_before + CLOCKS_DIFFER < self._begin

    @property
    def goes_on(self) -> bool:
        """Return True if another page can tell more."""
        return not self.is_complete and not self._at_the_bottom

    @property
    def is_trimmed(self) -> bool:
        """Return True if messages of the period may have been deleted."""
        return self._at_the_bottom and not self.is_complete

    @property
    def shows_what_waits(self) -> bool:
        """Return True if everything beyond the position is read."""
        return self._at_the_bottom or (self.pages > 0 and self._below <= self.row.position + 1)

    @property
    def history(self) -> History:
        """Return what was read, as far as it had arrived when the period ended."""
        return History(self.row.queue, self.row.position, tuple(reversed(self._slots)), self._untimed)

    def read(self, items: ItemStore) -> None:
        """Read one page more."""
        page = items.arrivals_below(self.row.queue, self._below, PAGE if self.pages else FIRST_PAGE)
        self.pages += 1
        for slot in page.slots:
            for entry in reversed(slot.entries):
                self._take(entry, slot.seen)
            self._below = slot.first
        self._at_the_bottom = not page.more
        if self._at_the_bottom and self.row.floor is None:
            self.unread_before = -math.inf
            return
        highest_unread = self.row.start if self._at_the_bottom else self._below - 1
        while self._proofs and -self._proofs[0][0] >= highest_unread:
            self.unread_before = min(self.unread_before, heappop(self._proofs)[1])

    def _take(self, entry: Entry, seen: int | None) -> None:
        at, is_released = entry.arrived_at, entry.seq <= self.row.position
        if at is None or not 0 <= at <= self._end + CLOCKS_DIFFER:
            self._untimed += 1
            return
        if seen is not None:
            heappush(self._proofs, (-seen, at))
        # What is released was there when the period ended, by whatever clock; the rest may have come since.
        if is_released or at <= self._end:
            self._slots.append(TimedSeq(entry.seq, min(at, self._end), entry.is_tombstone))


def walk_queues(
    items: ItemStore, rows: Iterable[Cursor], period: tuple[float, float], reads: int, in_flight: InFlight
) -> list[QueueWalk]:
    """Walk every queue that may have been active in a period, in turns: no long queue uses up the reads of the others.

    Where reads run out, those are left whose unread messages are the oldest.
    """
    begin, end = period
    walks = [QueueWalk(row, begin, end) for row in rows]
    walks = [walk for walk in walks if not walk.is_complete]
    left = reads
    while left > 0 and (under_way := [walk for walk in walks if walk.goes_on]):
        turn = sorted(under_way, key=lambda walk: -walk.unread_before)[:left]
        in_flight.map(lambda walk: walk.read(items), turn)
        left -= len(turn)
    return walks


@dataclass(frozen=True, slots=True)
class TrafficCounts:
    """Counts of a period in `BINS` equal parts; from `complete_since` on nothing is left out, before it they are least.

    `active` queues may have had messages in it; `cut_short` of them were not read to its beginning. Of `trimmed` ones,
    messages of the period may have been deleted.
    """

    begin: float
    end: float
    arrived: tuple[int, ...]
    released: tuple[int, ...]
    skipped: tuple[int, ...]
    complete_since: float
    active: int
    cut_short: int
    trimmed: int

    @classmethod
    def of(cls, walks: Sequence[QueueWalk], begin: float, end: float) -> TrafficCounts:
        """Count what walks over all active queues have read."""
        arrived, released, skipped = [0] * BINS, [0] * BINS, [0] * BINS
        for walk in walks:
            history = walk.history
            _add(arrived, (slot.at for slot in history.slots if not slot.skipped), begin, end)
            _add(released, (slot.at for slot in history.released if not slot.skipped), begin, end)
            _add(skipped, (slot.at for slot in history.slots if slot.skipped), begin, end)
        unread = [walk.unread_before + CLOCKS_DIFFER for walk in walks if not walk.is_complete]
        return cls(
            begin,
            end,
            tuple(arrived),
            tuple(released),
            tuple(skipped),
            min(end, max(unread, default=begin)),
            len(walks),
            sum(walk.goes_on for walk in walks),
            sum(walk.is_trimmed for walk in walks),
        )

    @property
    def is_complete(self) -> bool:
        """Return True if every message of the period is counted."""
        return self.complete_since <= self.begin

    @property
    def step(self) -> float:
        """Return the seconds of a part."""
        return (self.end - self.begin) / BINS

    @property
    def totals(self) -> tuple[int, int, int]:
        """Return how many messages arrived and were released, and seqs were skipped, in the whole period."""
        return sum(self.arrived), sum(self.released), sum(self.skipped)


def period_of(ages: Sequence[float], idle: float) -> float:
    """Choose how many seconds back to look: the shortest span with most of what was read.

    `ages` are those of some messages, `idle` says for how long no queue moved. Where the last hour has some, it is an
    hour at most: to count a longer one is for those who ask for it.
    """
    most = sorted(ages)[int((len(ages) - 1) * SHARE)] if ages else HOUR
    wanted = min(most, max(HOUR, 2 * idle))
    return next((span for span in SPANS if span >= wanted), wanted)


def _add(counts: list[int], times: Iterable[float], begin: float, end: float) -> None:
    span = end - begin
    for at in times:
        if at >= begin:
            counts[min(BINS - 1, int((at - begin) / span * BINS))] += 1
