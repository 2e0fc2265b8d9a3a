"""How old gaps are and which of them are due: one walk over what is stored beyond a position. Changes nothing.

A gap is as old as the oldest message stored beyond it, by that message's own arrival time. So a later gap is never
older than an earlier one, and one message that is old enough makes every gap before it due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.core.gaps import Gap, length
from stream_sort.core.policy import MAX_GAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.core.records import Cursor, Item
    from stream_sort.ports import ItemStore

PAGE = 1_000
# A walk ends after so many messages that make no gap due. An older message beyond them was mostly seen by an earlier
# sweep, before these came, and the age that was noted then holds. If not, the gap seems younger: it is skipped late.
SEARCH = 1_000
# How long a sweep may last, in seconds: what is further ahead of its beginning is a clock that is wrong.
UNDER_WAY = 900.0


@dataclass(slots=True)
class _OpenGap:
    """A gap that is not known to be due, and the oldest message between it and the next gap."""

    seqs: range
    oldest: float = math.inf


class GapWalk:
    """One walk from a queue's position on. Run `due` to its end, then ask for `left`.

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
        return self._measured(seqs, min(since, self._noted_since(seqs)))

    def due(self) -> Iterator[list[Gap]]:
        """Yield the gaps that are due, the lowest first: together those that one message makes due.

        That message is in the run behind the last gap of its list. Holds no more than one page and the gaps in it.
        """
        for item in self._slots():
            if not self._pass(item.seq):
                break
            if item.is_tombstone:
                continue
            yield from self._take(item)
            if self._searched >= SEARCH:
                if not (noted := self._due_as_noted()):
                    return
                yield noted
        if noted := self._due_as_noted():
            yield noted

    def _slots(self) -> Iterator[Item]:
        more, after = True, self._cursor.position
        while more:
            page = self._items.arrivals(self._cursor.queue, after, PAGE)
            more = page.more
            for item in page.items:
                after = item.seq
                yield item

    def _pass(self, seq: int) -> bool:
        """Note the gap before a slot; False if the walk ends there."""
        gap = range(self._end + 1, seq)
        self._end = seq
        if not gap or self._blocked is not None:
            return True
        if length(gap) > self._max_gap:
            if any(one.oldest < math.inf for one in self._open):
                return False
            # No message waits before it, so what lies beyond it is what the queue holds up.
            self._blocked = gap
        if not self._open or self._blocked is None:
            self._open.append(_OpenGap(gap))
        return True

    def _take(self, item: Item) -> Iterator[list[Gap]]:
        self._searched += 1
        if not self._open:
            return
        arrived = item.arrived_at
        if arrived is None or arrived > self._now + UNDER_WAY:
            arrived = self._now
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
        noted = self._cursor.gap
        if noted is None or noted.withdrawals != self._cursor.withdrawals:
            return math.inf
        is_part = noted.seqs.start <= seqs.start and seqs.stop <= noted.seqs.stop
        if seqs == noted.seqs or (is_part and length(noted.seqs) <= self._max_gap):
            return noted.since
        return math.inf


def head_gap(items: ItemStore, cursor: Cursor, now: float) -> Gap | None:
    """Return the gap at which a queue waits, and since when; None if no message waits beyond one."""
    walk = GapWalk(items, cursor, now)
    for _ in walk.due():
        pass
    return walk.left
