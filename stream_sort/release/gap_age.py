"""How old gaps are and which of them are due: one walk over what is stored beyond a position. Changes nothing.

A gap is as old as the oldest message stored beyond it, by that message's own arrival time. So a later gap is never
older than an earlier one, and one message that is old enough makes every gap before it due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.model.gap_policy import MAX_GAP
from stream_sort.model.gaps import Gap, length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry, Slot
    from stream_sort.ports import ItemStore

PAGE = 1_000
# A walk ends after so many messages that make no gap due, and the next sweep goes on from there. Until one has seen all
# of them, the gap may seem younger than it is: then it is skipped late.
SEARCH = 1_000
# How long a sweep may last, in seconds: what is further ahead of its beginning is a clock that is wrong.
UNDER_WAY = 900.0


@dataclass(slots=True)
class _OpenGap:
    """A gap that is not known to be due, and the oldest message between it and the next gap."""

    seqs: range
    oldest: float = math.inf


class GapWalk:
    """One walk from a queue's position on. Run `due` to its end, then ask for `left`; `is_whole` says if it saw all.

    What lies beyond a gap longer than `max_gap`, which no policy skips, counts for that gap and not for those before:
    a seq that is a timestamp by mistake must not make every gap of its queue old. Tombstones count for none: nobody
    waits for them. A message that has no arrival time, or one far ahead of `now`, arrived `now`; one that is a little
    ahead came while this sweep was under way. A gap that an earlier sweep noted, or a part of it, is at least as old
    as noted: the message that made it old is still beyond it, unless one was withdrawn since. So a message without a
    time ages from the first sweep that saw it.
    """

    def __init__(
        self,
        items: ItemStore,
        cursor: Cursor,
        now: float,
        *,
        skip_after: float | None = None,
        max_gap: int = MAX_GAP,
    ) -> None:
        self._items = items
        self._cursor = cursor
        self._now = now
        self._skip_after = math.inf if skip_after is None else skip_after
        self._max_gap = max_gap
        self.is_whole = True
        self.is_over: Callable[[], bool] | None = None
        self._open: list[_OpenGap] = []
        self._end = cursor.position
        self._searched = 0
        # The gap too long to be skipped before which no message waits.
        self._blocked: range | None = None

    @property
    def left(self) -> Gap | None:
        """Return the lowest gap that is not due, or cannot be skipped, and its age; None if no message waits.

        If nothing but tombstones lies between it and a gap too long, the two are one: what waits lies beyond both.
        """
        since = min((gap.oldest for gap in self._open), default=math.inf)
        if since == math.inf:
            return None
        first = self._open[0].seqs
        seqs = first if self._blocked is None else range(first.start, self._blocked.stop)
        gap = self._measured(seqs, min(since, self._noted_since(seqs)))
        return gap if self.is_whole else replace(gap, through=self._end)

    def due(self) -> Iterator[list[Gap]]:
        """Yield the gaps that are due, the lowest first: together those that one message makes due.

        That message is in the run behind the last gap of its list. Holds no more than one page and the gaps in it.
        """
        for slot in self._slots():
            if self._searched >= SEARCH and slot.first > self._measured_through():
                if not (noted := self._due_as_noted()):
                    self.is_whole = False
                    return
                yield noted
            if not self._pass(slot.seqs):
                self.is_whole = False
                break
            for entry in slot.entries:
                if not entry.is_tombstone:
                    yield from self._take(entry)
        if noted := self._due_as_noted():
            yield noted

    def _slots(self) -> Iterator[Slot]:
        """Go through what is stored beyond the position, a page at a time, while there is time."""
        more, after = True, self._cursor.position
        while more:
            page = self._items.arrivals(self._cursor.queue, after, PAGE)
            for slot in page.slots:
                after = slot.last
                yield slot
            more = page.more
            if more and self.is_over is not None and self.is_over():
                self.is_whole = False
                return

    def _pass(self, seqs: range) -> bool:
        """Note the gap before a slot that fills these seqs; False if the walk ends there."""
        gap = range(self._end + 1, seqs.start)
        is_long = length(gap) > self._max_gap
        if is_long and self._blocked is None and any(one.oldest < math.inf for one in self._open):
            return False
        self._end = seqs.stop - 1
        if not gap or self._blocked is not None:
            return True
        if is_long:
            # No message waits before it, so what lies beyond it is what the queue holds up.
            self._blocked = gap
        if not self._open or self._blocked is None:
            self._open.append(_OpenGap(gap))
        return True

    def _take(self, message: Entry) -> Iterator[list[Gap]]:
        self._searched += 1
        if not self._open:
            return
        arrived = _arrival(message, self._now)
        last = self._open[-1]
        last.oldest = min(last.oldest, arrived)
        if self._blocked is None and self._is_due(arrived):
            yield self._give(len(self._open))

    def _due_as_noted(self) -> list[Gap]:
        """Return the lowest gaps if an earlier sweep saw what makes them due, and this walk does not."""
        if self._blocked is not None or all(gap.oldest == math.inf for gap in self._open):
            return []
        since = self._noted_since(self._open[0].seqs)
        return (
            self._give(sum(self._noted_since(gap.seqs) == since for gap in self._open)) if self._is_due(since) else []
        )

    def _give(self, count: int) -> list[Gap]:
        """Take the lowest open gaps away, each with the oldest message that was seen beyond it."""
        due, self._open = self._open[:count], self._open[count:]
        self._searched = 0
        since = min((gap.oldest for gap in self._open), default=math.inf)
        gaps = []
        for gap in reversed(due):
            since = min(since, gap.oldest)
            gaps.append(self._measured(gap.seqs, min(since, self._noted_since(gap.seqs))))
        return gaps[::-1]

    def _measured(self, seqs: range, since: float) -> Gap:
        return Gap(seqs, since, self._cursor.withdrawals)

    def _is_due(self, since: float) -> bool:
        return self._now - since >= self._skip_after

    def _noted_since(self, seqs: range) -> float:
        """Return since when a message waits beyond a gap, as an earlier sweep noted it; infinity if none did.

        The age of a gap too long is that of what lies beyond it, and says nothing about a gap within it.
        """
        noted = self._noted()
        if noted is None:
            return math.inf
        is_part = noted.seqs.start <= seqs.start and seqs.stop <= noted.seqs.stop
        if seqs == noted.seqs or (is_part and length(noted.seqs) <= self._max_gap):
            return noted.since
        return math.inf

    def _measured_through(self) -> float:
        """Return how far earlier sweeps looked from this position on: what they saw is found again.

        Also if only a part of the noted gap is left, once that is due: the message that makes it due is looked for, so
        that the slot before that one is filled first.
        """
        noted, head = self._noted(), self._cursor.position + 1
        if noted is None or not (noted.seqs.start == head or self._is_due(self._noted_since(range(head, head + 1)))):
            return -math.inf
        return math.inf if noted.through is None else noted.through

    def _noted(self) -> Gap | None:
        noted = self._cursor.gap
        return None if noted is None or noted.withdrawals != self._cursor.withdrawals else noted


def measured_on(items: ItemStore, cursor: Cursor, gap: Gap, now: float, max_gap: int = MAX_GAP) -> Gap:
    """Go on by one page with the measurement of the gap at which a queue stands, from where it ended."""
    if gap.through is None:
        return gap
    since, end = gap.since, gap.through
    page = items.arrivals(cursor.queue, end, PAGE)
    for slot in page.slots:
        if slot.first - end - 1 > max_gap >= length(gap.seqs):
            # What lies beyond counts for that gap, and not for this one, until somebody splits it: look again.
            return replace(gap, since=since, through=end)
        end = slot.last
        since = min([since, *(_arrival(entry, now) for entry in slot.entries if not entry.is_tombstone)])
    return replace(gap, since=since, through=end if page.more else None)


def _arrival(message: Entry, now: float) -> float:
    arrived = message.arrived_at
    return now if arrived is None or arrived > now + UNDER_WAY else arrived


def head_gap(items: ItemStore, cursor: Cursor, now: float) -> Gap | None:
    """Return the gap at which a queue waits, and since when; None if no message waits beyond one."""
    walk = GapWalk(items, cursor, now)
    for _ in walk.due():
        pass
    return walk.left
