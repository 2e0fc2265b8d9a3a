"""Service: the gap that a sweep notes on a queue's row, and what is reported of gaps as they come and go."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from stream_sort.model.gaps import Gap, GapEvent, GapEventKind, length, rest_of, runs_of
from stream_sort.model.slots import expand
from stream_sort.release.gap_age import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.release.queues import Queues

# How the reason of a tombstone begins that a policy put.
REASON = "gap policy: "
# How many pages of a gap that is gone are read for what a policy gave up of it: one that a sweep may give up fits in.
MOST_PAGES = 10


class GapNotes:
    """The gaps of one queue during one visit; `events` is what there is to report, each thing once.

    A note that was not answered, and tombstones of which it is not known if they stand, are looked up by the next run.
    """

    def __init__(self, queues: Queues, queue: str, now: float, max_gap: int, events: list[GapEvent]) -> None:
        self._queues = queues
        self._queue = queue
        self._now = now
        self._max_gap = max_gap
        self._events = events
        # Gaps that were being filled when an earlier run failed: it is not known which of them are.
        self.tried: list[Gap] = []
        # A gap that was being noted, or forgotten (None), when an earlier run failed, and its events if it is.
        self._noting: tuple[Gap | None, list[GapEvent]] | None = None
        self.is_short: Callable[[], bool] = lambda: False

    def report_tried(self) -> None:
        """Report what an earlier run filled before it failed; what is left of a gap is reported when it is filled."""
        self._events += [event for gap in self.tried for event in self._given_up(gap)]
        self.tried = []

    def report_noting(self, there: Gap | None) -> None:
        """Report what an earlier run was noting when it failed, if it is what the row says now."""
        if self._noting is not None and self._noting[0] == there:
            self._events += self._noting[1]
        self._noting = None

    def report(self, kind: GapEventKind, gap: Gap) -> None:
        """Report what happened to a gap."""
        self._events.append(self._event(kind, gap))

    def is_too_long(self, gap: Gap) -> bool:
        """Return True if no sweep gives a gap up by itself."""
        return length(gap.seqs) > self._max_gap

    def age(self, gap: Gap) -> float:
        """Return for how many seconds a gap has held its queue up."""
        return max(0.0, self._now - gap.since)

    def note(self, cursor: Cursor, gap: Gap) -> bool:
        """Note a gap unless it is noted, and report what is new about it; False if the queue moved."""
        before = cursor.gap
        if gap == before:
            return True
        is_other = before is None or not self._is_same(gap, before)
        events = self._closed(before, cursor) if is_other else []
        if before is None or (is_other and before.stray != gap.seqs.stop):
            events.append(self._event(GapEventKind.FOUND, gap))
        return self._change_note(gap, events, lambda: self._queues.cursors.note_gap(cursor, gap))

    def forget(self, cursor: Cursor, write: Callable[[], bool] | None = None) -> bool:
        """Forget the gap that is noted, and report what became of it; False if the queue moved."""
        closed = self._closed(cursor.gap, cursor)
        return self._change_note(None, closed, write or (lambda: self._queues.cursors.note_gap(cursor, None)))

    def _change_note(self, gap: Gap | None, events: list[GapEvent], write: Callable[[], bool]) -> bool:
        """Write what gap is noted, and report the events if it is; if there is no answer, the next run does."""
        self._noting = gap, events
        is_written = write()
        if is_written:
            self._events += events
        self._noting = None
        return is_written

    def _is_same(self, gap: Gap, noted: Gap) -> bool:
        """Return True if a gap is what is left of the noted one; a gap too long is known by its end."""
        if self.is_too_long(gap) or self.is_too_long(noted):
            return gap.seqs.stop == noted.seqs.stop
        return noted.holds(gap)

    def _given_up(self, gap: Gap) -> list[GapEvent]:
        """Return the seqs of a gap that a policy gave up, as their slots show."""
        return [self._event(GapEventKind.GIVEN_UP, replace(gap, seqs=seqs)) for seqs in runs_of(self._filled(gap))]

    def _filled(self, gap: Gap, most_pages: float = math.inf) -> Iterator[int]:
        entries = self._entries(gap.seqs, most_pages)
        return (entry.seq for entry in entries if (entry.skipped or "").startswith(REASON))

    def _entries(self, seqs: range, most_pages: float) -> Iterator[Entry]:
        """Read what fills some seqs, so many pages at most; where that is not all of them, only while there is time."""
        after, more, pages = seqs.start - 1, True, count()
        while more and after < seqs.stop - 1:
            if next(pages) >= most_pages or (most_pages < math.inf and self.is_short()):
                return
            page = self._queues.items.arrivals(self._queue, after, min(PAGE, seqs.stop - 1 - after))
            yield from expand(page.slots, through=seqs.stop - 1)
            after = page.slots[-1].last if page.slots else after
            more = page.more

    def _closed(self, before: Gap | None, cursor: Cursor) -> list[GapEvent]:
        """Return what became of a gap that an earlier sweep noted; nothing if it is there, or all of it is reported.

        It is gone if the queue moved over it, or if what waited beyond it was withdrawn. What a policy gave up of it is
        not closed: the slots show that, also where an earlier sweep filled them and died. The note does not: the gap
        may be older than was seen when it was noted, and the policy of then may be another one now. Slots for which
        there is no time, or that are too many, are reported as closed: no sweep is to repeat a long look.
        """
        if before is None:
            return []
        if before.seqs.stop > cursor.position + 1 and before.withdrawals == cursor.withdrawals:
            return []
        given_up = [event.seqs for event in self._events if event.kind is GapEventKind.GIVEN_UP]
        reported = {seq for seqs in given_up for seq in seqs if seq in before.seqs}
        is_all_reported = len(reported) == length(before.seqs)
        filled = set() if is_all_reported or self._always_waited(cursor) else set(self._filled(before, MOST_PAGES))
        runs = {
            GapEventKind.GIVEN_UP: runs_of(sorted(filled - reported)),
            GapEventKind.CLOSED: rest_of(before.seqs, runs_of(sorted(filled | reported))),
        }
        return [self._event(kind, replace(before, seqs=seqs)) for kind, some in runs.items() for seqs in some]

    def _event(self, kind: GapEventKind, gap: Gap) -> GapEvent:
        return GapEvent(kind, self._queue, gap.seqs, self.age(gap))

    def _always_waited(self, cursor: Cursor) -> bool:
        """Return True for a queue that never had a policy of its own, if others wait: no sweep gives anything up."""
        return cursor.policy is None and self._queues.gap_policy.skip_after is None
