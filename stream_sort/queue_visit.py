"""Service: what a sweep does for one queue: release what can be, give up the gaps that are due, note the one left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from stream_sort.core.gaps import Gap, GapEvent, GapEventKind, length, runs_of
from stream_sort.core.records import Tombstones
from stream_sort.gap_age import GapWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.advancer import Reach
    from stream_sort.core.outcomes import Advance
    from stream_sort.core.policy import GapPolicy
    from stream_sort.core.records import Cursor, Item
    from stream_sort.errors import StreamSortError
    from stream_sort.sorter import Sorter

TOMBSTONES_AT_ONCE = 100
# An advance of the usual length is not stopped for want of time: only a long backlog is left to the next sweep.
STEPS_AT_LEAST = 5
# How the reason of a tombstone begins that a policy put.
REASON = "gap policy: "
# Each walk gives up something, and is followed by an advance; what comes in meanwhile is left to the next sweep.
MAX_WALKS = 1_000


@dataclass(slots=True)
class Visited:
    """What a visit did and saw; `age` is for how many seconds the queue has waited, None if it does not.

    `error` stopped it; not `complete` is one whose turn, or time, was over.
    """

    advanced: list[Advance] = field(default_factory=list)
    events: list[GapEvent] = field(default_factory=list)
    age: float | None = None
    error: StreamSortError | None = None
    complete: bool = True

    @property
    def is_finished(self) -> bool:
        """Return True if there is nothing left to do."""
        return self.complete and self.error is None


class QueueVisit:
    """One visit to one queue. Stopped anywhere, it leaves a state from which the next one goes on.

    One that failed or was not complete may be run again: what it did before stays told, and is told once. What got no
    answer is told by nobody if it is not run again, or fails again: the slots tell it.
    """

    def __init__(self, sorter: Sorter, queue: str, now: float, max_gap: int) -> None:
        self._sorter = sorter
        self._items = sorter.stores.items
        self._cursors = sorter.stores.cursors
        self.queue = queue
        self._now = now
        self._max_gap = max_gap
        self._first: int | None = None
        # Gaps that were being filled when an earlier run failed: it is not known which of them are.
        self._tried: list[Gap] = []
        # A gap that was being noted, or forgotten (None), when an earlier run failed, and what is to be told if it is.
        self._noting: tuple[Gap | None, list[GapEvent]] | None = None
        self._is_short: Callable[[], bool] = lambda: False
        self.done = Visited()

    def run(self, is_short: Callable[[], bool]) -> None:
        """Do what is due; `is_short`, asked after each step, tells when there is no time left for more now."""
        self._is_short = is_short
        self.done.age, self.done.error, self.done.complete = None, None, True
        self._tell_tried()
        reach = self._advance()
        if self._noting is not None and self._noting[0] == reach.cursor.gap:
            self.done.events += self._noting[1]
        self._noting = None
        if self._first is None or not self.done.events:
            self._first = reach.cursor.position
        gave_up = False
        for _ in range(MAX_WALKS):
            cursor = reach.cursor
            if reach.beyond is None or not reach.complete:
                break
            policy = self._policy(cursor)
            walk = self._walk(cursor, policy)
            known = self._known(cursor, range(cursor.position + 1, reach.beyond), policy)
            if known is not None or not self._give_up(cursor, walk, policy):
                self._wait(cursor, policy, known or walk.left)
                return
            gave_up = True
            reach = self._advance()
            if is_short():
                break
        if reach.complete and reach.beyond is None:
            self._leave(reach.cursor, gave_up=gave_up)
        else:
            # There was no time to release or to measure it, or it never ends.
            self._stop_short(reach.cursor)

    def _walk(self, cursor: Cursor, policy: GapPolicy) -> GapWalk:
        return GapWalk(self._items, cursor, self._now, skip_after=policy.skip_after, max_gap=self._max_gap)

    def _known(self, cursor: Cursor, head: range, policy: GapPolicy) -> Gap | None:
        """Return the gap at the position if the row tells that nothing is to be done about it: it costs no walk."""
        gap = cursor.gap
        if gap is None or gap.seqs != head or not cursor.is_measured:
            return None
        return None if self._is_due(gap, policy) and length(head) <= self._max_gap else gap

    def _give_up(self, cursor: Cursor, walk: GapWalk, policy: GapPolicy) -> bool:
        """Put tombstones into the gaps that are due; False if none is."""
        gaps = walk.due()
        is_any = False
        while (first := next(gaps, None)) is not None:
            is_any = True
            batch = [first, *_up_to(gaps, TOMBSTONES_AT_ONCE - length(first.seqs))]
            self._fill(cursor, batch, f"{REASON}{policy}")
            if self._is_short():
                break
        return is_any

    def _fill(self, cursor: Cursor, gaps: list[Gap], reason: str) -> None:
        seqs = chain.from_iterable(gap.seqs for gap in gaps)
        filled: set[int] = set()
        known: list[Gap] = []
        try:
            while chunk := tuple(islice(seqs, TOMBSTONES_AT_ONCE)):
                known, self._tried = _split(gaps, chunk[0])
                tombstones = Tombstones(self.queue, chunk, reason, cursor.position)
                filled.update(self._items.skip(tombstones, self._sorter.clock()))
            known, self._tried = gaps, []
        finally:
            for gap in known:
                # What came in at the last moment is not given up.
                if not filled.isdisjoint(gap.seqs):
                    self._tell(GapEventKind.GIVEN_UP, gap)

    def _tell_tried(self) -> None:
        """Tell of what an earlier run filled before it failed; what is left of a gap is told when it is filled."""
        self.done.events += [event for gap in self._tried for event in self._given_up(gap)]
        self._tried = []

    def _given_up(self, gap: Gap) -> list[GapEvent]:
        """Return the seqs of a gap that a policy gave up, as their slots show."""
        return [self._event(GapEventKind.GIVEN_UP, replace(gap, seqs=seqs)) for seqs in runs_of(self._filled(gap))]

    def _filled(self, gap: Gap) -> Iterator[int]:
        return (slot.seq for slot in self._slots(gap.seqs) if (slot.skipped or "").startswith(REASON))

    def _slots(self, seqs: range) -> Iterator[Item]:
        after, more = seqs.start - 1, True
        while more and after < seqs.stop - 1:
            page = self._items.arrivals(self.queue, after, seqs.stop - 1 - after)
            for slot in page.items:
                if slot.seq >= seqs.stop:
                    return
                yield slot
                after = slot.seq
            more = page.more

    def _wait(self, cursor: Cursor, policy: GapPolicy, gap: Gap | None) -> None:
        """Count a queue that waits, and note its gap unless it is noted; without a message beyond it nobody waits."""
        before = cursor.gap
        if gap is None:
            if before is not None:
                self._forget(cursor)
            return
        self.done.age = self._age(gap)
        self._note(cursor, replace(gap, stray=self._stray_behind(gap, before)))
        if self._is_too_long(gap) and self._is_due(gap, policy):
            self._tell(GapEventKind.TOO_LONG, gap)

    def _note(self, cursor: Cursor, gap: Gap) -> None:
        """Note a gap unless it is noted, and tell what is new about it."""
        before = cursor.gap
        if gap == before:
            return
        is_other = before is None or not self._is_same(gap, before)
        events = self._closed(before, cursor) if is_other else []
        if before is None or (is_other and before.stray != gap.seqs.stop):
            events.append(self._event(GapEventKind.FOUND, gap))
        self._change_note(gap, events, lambda: self._cursors.note_gap(cursor, gap))

    def _forget(self, cursor: Cursor) -> None:
        """Forget the gap that is noted, and tell what became of it."""
        closed = self._closed(cursor.gap, cursor)
        self._change_note(None, closed, lambda: self._cursors.note_gap(cursor, None))

    def _change_note(self, gap: Gap | None, events: list[GapEvent], write: Callable[[], bool]) -> None:
        """Write what gap is noted, and tell the events if it is; if there is no answer, the next run does."""
        self._noting = gap, events
        if write():
            self.done.events += events
        self._noting = None

    def _is_too_long(self, gap: Gap) -> bool:
        return length(gap.seqs) > self._max_gap

    def _stray_behind(self, gap: Gap, before: Gap | None) -> int | None:
        """Return what stands behind a gap too long that was found before, if it lies beyond this gap still."""
        if before is None or before.withdrawals != gap.withdrawals or self._is_too_long(gap):
            return None
        return self._end_of_long(before) or before.stray

    def _end_of_long(self, gap: Gap | None) -> int | None:
        return gap.seqs.stop if gap is not None and self._is_too_long(gap) else None

    def _is_same(self, gap: Gap, noted: Gap) -> bool:
        """Return True if a gap is what is left of the noted one; a gap too long is known by its end."""
        if self._is_too_long(gap) or self._is_too_long(noted):
            return gap.seqs.stop == noted.seqs.stop
        return noted.holds(gap)

    def _leave(self, cursor: Cursor, *, gave_up: bool) -> None:
        """Nothing waits any more: take the mark away, or leave that to the next sweep if gaps were just given up."""
        if not gave_up:
            self._clear(cursor)
        elif cursor.gap is not None:
            self._forget(cursor)

    def _clear(self, cursor: Cursor) -> None:
        """Put the mark in doubt, look once more, and only then take it away.

        A writer that stored beyond a gap just now may have relied on the mark: the look shows its message. One that
        comes later sets the mark again. And whoever dies on the way leaves a mark that the next sweep finds.
        """
        if cursor.is_marked and not self._cursors.set_waiting(cursor, -cursor.next_mark(self._sorter.clock())):
            return
        if cursor.waiting_since is not None:
            reach = self._advance()
            if not reach.complete:
                self._stop_short(reach.cursor)
            if reach.beyond is None and not reach.cursor.is_marked:
                closed = self._closed(reach.cursor.gap, reach.cursor)
                self._change_note(None, closed, lambda: self._cursors.set_waiting(reach.cursor, None))

    def _stop_short(self, cursor: Cursor) -> None:
        """Leave the rest for later; the queue has waited as long as was noted, if it was."""
        noted, self.done.complete = cursor.gap, False
        is_there = noted is not None and noted.withdrawals == cursor.withdrawals and cursor.position + 1 in noted.seqs
        self.done.age = self._age(noted) if noted is not None and is_there else 0.0

    def _advance(self) -> Reach:
        steps = count()
        reach = self._sorter.reach(self.queue, is_over=lambda: next(steps) >= STEPS_AT_LEAST and self._is_short())
        if reach.advance.moved:
            self.done.advanced.append(reach.advance)
        return reach

    def _closed(self, before: Gap | None, cursor: Cursor) -> list[GapEvent]:
        """Return what became of a gap that an earlier sweep noted; nothing if it was still there when this visit began.

        It is gone if the queue moved over it, or if what waited beyond it was withdrawn. What a policy gave up of it is
        not closed: the slots show that, also where an earlier sweep filled them.
        """
        if before is None or self._first is None:
            return []
        end = before.seqs.stop
        given_up = (event.seqs.start < end for event in self.done.events if event.kind is GapEventKind.GIVEN_UP)
        is_withdrawn = before.withdrawals != cursor.withdrawals and not any(given_up)
        if not is_withdrawn and end > self._first + 1:
            return []
        may_be_filled = self._is_due(before, self._policy(cursor)) and not self._is_too_long(before)
        filled = set(self._filled(before)) if may_be_filled else set()
        closed = runs_of(seq for seq in before.seqs if seq not in filled) if filled else [before.seqs]
        return [self._event(GapEventKind.CLOSED, replace(before, seqs=seqs)) for seqs in closed]

    def _tell(self, kind: GapEventKind, gap: Gap) -> None:
        self.done.events.append(self._event(kind, gap))

    def _event(self, kind: GapEventKind, gap: Gap) -> GapEvent:
        return GapEvent(kind, self.queue, gap.seqs, self._age(gap))

    def _age(self, gap: Gap) -> float:
        return max(0.0, self._now - gap.since)

    def _policy(self, cursor: Cursor) -> GapPolicy:
        return cursor.policy or self._sorter.options.gap_policy

    def _is_due(self, gap: Gap, policy: GapPolicy) -> bool:
        return policy.skip_after is not None and self._now - gap.since >= policy.skip_after


def _split(gaps: list[Gap], seq: int) -> tuple[list[Gap], list[Gap]]:
    """Return what lies before a seq of gaps, and the rest of them."""
    before = [replace(gap, seqs=range(gap.seqs.start, min(gap.seqs.stop, seq))) for gap in gaps if gap.seqs.start < seq]
    rest = [replace(gap, seqs=range(max(gap.seqs.start, seq), gap.seqs.stop)) for gap in gaps if gap.seqs.stop > seq]
    return before, rest


def _up_to(gaps: Iterator[Gap], seqs: int) -> Iterator[Gap]:
    """Take gaps until they hold so many seqs."""
    while seqs > 0 and (gap := next(gaps, None)) is not None:
        seqs -= length(gap.seqs)
        yield gap
