"""Service: what a sweep does for one queue: release what can be, give up the gaps that are due, note the one left."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from stream_sort.model.gaps import Gap, GapEvent, GapEventKind, length, runs_of
from stream_sort.model.records import Tombstones
from stream_sort.release.gap_age import GapWalk, measured_on
from stream_sort.upkeep.gap_notes import REASON, GapNotes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.errors import StreamSortError
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.outcomes import Advance
    from stream_sort.model.records import Cursor
    from stream_sort.release.advancer import Reach
    from stream_sort.release.queues import Queues

# Five full calls of the store.
TOMBSTONES_AT_ONCE = 125
# So many seqs, or a few more, are filled before the next gaps are looked for. None is released before the lowest one
# stands: so they are filled to the end however short the time, unless they are a great many.
BATCH = 500
# An advance of the usual length is not stopped for want of time: only a long backlog is left to the next sweep.
STEPS_AT_LEAST = 5
# Each walk gives up something, or finds the queue changed, and is followed by an advance; what comes in meanwhile is
# left to the next sweep.
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

    One that failed or was not complete may be run again: what it did before is reported once. What a visit that died,
    or ran out of time, gave up of the gap that was noted is reported by the visit of the next sweep, as the slots show
    it: twice rather than not at all.
    """

    def __init__(self, queues: Queues, queue: str, now: float, max_gap: int) -> None:
        self._queues = queues
        self._items = queues.items
        self._cursors = queues.cursors
        self.queue = queue
        self._now = now
        self._max_gap = max_gap
        self._is_short: Callable[[], bool] = lambda: False
        self._steps_left = math.inf
        self.done = Visited()
        self._notes = GapNotes(queues, queue, now, max_gap, self.done.events)

    def run(self, is_short: Callable[[], bool], steps: float = math.inf) -> None:
        """Do what is due, in about so many steps; `is_short` tells when there is no time left for more.

        A step is a move of the cursor, or some tombstones. Those that were begun together are put together: they
        release nothing before the lowest of them stands.
        """
        self._is_short = self._notes.is_short = is_short
        self._steps_left = steps
        self.done.age, self.done.error, self.done.complete = None, None, True
        self._notes.report_tried()
        reach = self._advance()
        self._notes.report_noting(reach.cursor.gap)
        gave_up = False
        for _ in range(MAX_WALKS):
            if not reach.complete:
                break
            if self._see_to(reach, gave_up=gave_up):
                return
            gave_up = True
            reach = self._advance()
            if reach.beyond is not None and self._is_over():
                break
        # There was no time to release or to measure it, or it never ends.
        self._stop_short(reach.cursor)

    def _see_to(self, reach: Reach, *, gave_up: bool) -> bool:
        """Do what is due where a queue stands; False if it is to be looked at again.

        That is after gaps were given up, until the note is gone of those that were: the next sweep would report them.
        """
        self.done.age = None
        cursor = reach.cursor
        if reach.beyond is None:
            return self._leave(cursor, gave_up=gave_up) or self._is_short()
        policy = self._policy(cursor)
        known = self._known(cursor, range(cursor.position + 1, reach.beyond))
        if known is not None and (self._notes.is_too_long(known) or not self._is_due(known, policy)):
            left: Gap | None = known
        else:
            walk = self._walk(replace(cursor, gap=known or cursor.gap), policy)
            if self._give_up(cursor, walk, policy):
                return False
            left = walk.left
            if left is None and not walk.is_whole:
                # Nothing but tombstones so far, and there is no time to look further.
                self._stop_short(cursor)
                return True
        return self._wait(cursor, policy, left) or not gave_up or self._is_short()

    def _walk(self, cursor: Cursor, policy: GapPolicy) -> GapWalk:
        return GapWalk(self._items, cursor, self._now, skip_after=policy.skip_after, max_gap=self._max_gap)

    def _known(self, cursor: Cursor, head: range) -> Gap | None:
        """Return the gap at the position as the row tells it, which costs no walk; None if it does not.

        Where more lies beyond than was looked at when it was noted, one page more is looked at now.
        """
        gap = cursor.gap
        if gap is None or gap.seqs != head or not cursor.is_measured:
            return None
        return measured_on(self._items, cursor, gap, self._now, self._max_gap)

    def _give_up(self, cursor: Cursor, walk: GapWalk, policy: GapPolicy) -> bool:
        """Put tombstones into the gaps that are due; False if none is."""
        walk.is_over = self._is_short
        due = walk.due()
        is_any = False
        while gaps := _batch(due):
            is_any = True
            if not self._fill(cursor, gaps, f"{REASON}{policy}") or self._is_over():
                break
        return is_any

    def _fill(self, cursor: Cursor, gaps: list[Gap], reason: str) -> bool:
        """Put tombstones into gaps that are due, from the highest seq down; False if it stopped before the end.

        The first one goes alone: it stands before the message that makes all of them due, which cannot be withdrawn
        from then on. So if nothing was withdrawn until then, that message waits beyond every seq that is filled next.
        """
        seqs = chain.from_iterable(reversed(gap.seqs) for gap in reversed(gaps))
        are_many = sum(length(gap.seqs) for gap in gaps) > 2 * BATCH
        filled: set[int] = set()
        chunk = tuple(islice(seqs, 1))
        try:
            while chunk:
                self._notes.tried = _within(gaps, chunk)
                tombstones = Tombstones(self.queue, chunk, reason, cursor.position)
                filled.update(self._items.skip(tombstones, self._queues.clock()))
                self._notes.tried = []
                self._steps_left -= 1
                chunk = tuple(islice(seqs, TOMBSTONES_AT_ONCE))
                if chunk and not (filled and self._is_unchanged(cursor)):
                    return False
                if are_many and self._is_short():
                    return False
        finally:
            for gap in gaps:
                # What came in at the last moment is not given up.
                for given_up in runs_of(seq for seq in gap.seqs if seq in filled):
                    self._notes.report(GapEventKind.GIVEN_UP, replace(gap, seqs=given_up))
        return True

    def _is_unchanged(self, cursor: Cursor) -> bool:
        """Return True if nothing was withdrawn since a row was read."""
        row = self._cursors.get(self.queue)
        return row is not None and row.withdrawals == cursor.withdrawals

    def _wait(self, cursor: Cursor, policy: GapPolicy, gap: Gap | None) -> bool:
        """Count a queue that waits, and note its gap unless it is noted; without a message beyond it nobody waits.

        False if it could not be noted, because the queue moved.
        """
        before = cursor.gap
        if gap is None:
            return before is None or self._notes.forget(cursor)
        self.done.age = self._notes.age(gap)
        is_noted = self._notes.note(cursor, replace(gap, stray=self._stray_behind(gap, before)))
        if self._notes.is_too_long(gap) and self._is_due(gap, policy):
            self._notes.report(GapEventKind.TOO_LONG, gap)
        return is_noted

    def _stray_behind(self, gap: Gap, before: Gap | None) -> int | None:
        """Return what stands behind a gap too long that was found before, if it lies beyond this gap still."""
        if before is None or before.withdrawals != gap.withdrawals or self._notes.is_too_long(gap):
            return None
        return self._end_of_long(before) or before.stray

    def _end_of_long(self, gap: Gap | None) -> int | None:
        return gap.seqs.stop if gap is not None and self._notes.is_too_long(gap) else None

    def _leave(self, cursor: Cursor, *, gave_up: bool) -> bool:
        """Nothing waits any more: take the mark away, or leave that to the next sweep if gaps were just given up.

        False if the note of one of these could not be taken away, because the queue moved.
        """
        if not gave_up:
            self._clear(cursor)
            return True
        return cursor.gap is None or self._notes.forget(cursor)

    def _clear(self, cursor: Cursor) -> None:
        """Put the mark in doubt, look once more, and only then take it away.

        A writer that stored beyond a gap just now may have relied on the mark: the look shows its message. One that
        comes later sets the mark again. And whoever dies on the way leaves a mark that the next sweep finds.
        """
        if cursor.is_marked and not self._cursors.set_waiting(cursor, -cursor.next_mark(self._queues.clock())):
            return
        if cursor.waiting_since is not None:
            reach = self._advance()
            if not reach.complete:
                self._stop_short(reach.cursor)
            if reach.beyond is None and not reach.cursor.is_marked:
                self._notes.forget(reach.cursor, lambda: self._cursors.set_waiting(reach.cursor, None))

    def _stop_short(self, cursor: Cursor) -> None:
        """Leave the rest for later; the queue has waited as long as was noted, if it was."""
        noted, self.done.complete = cursor.gap, False
        is_there = noted is not None and noted.withdrawals == cursor.withdrawals and cursor.position + 1 in noted.seqs
        self.done.age = self._notes.age(noted) if noted is not None and is_there else 0.0

    def _advance(self) -> Reach:
        steps = count()

        def is_over() -> bool:
            self._steps_left -= 1
            return next(steps) >= STEPS_AT_LEAST and self._is_over()

        reach = self._queues.reach(self.queue, is_over=is_over)
        if reach.advance.moved:
            self.done.advanced.append(reach.advance)
        return reach

    def _is_over(self) -> bool:
        """Return True if it is the turn of others, or there is no time left."""
        return self._steps_left <= 0 or self._is_short()

    def _policy(self, cursor: Cursor) -> GapPolicy:
        return self._queues.policy(cursor)

    def _is_due(self, gap: Gap, policy: GapPolicy) -> bool:
        return policy.skip_after is not None and self._now - gap.since >= policy.skip_after


def _batch(due: Iterator[list[Gap]]) -> list[Gap]:
    """Take gaps until they hold enough seqs for a batch; none if there are no more."""
    gaps: list[Gap] = []
    seqs = 0
    while seqs < BATCH and (together := next(due, None)) is not None:
        gaps += together
        seqs += sum(length(gap.seqs) for gap in together)
    return gaps


def _within(gaps: list[Gap], seqs: tuple[int, ...]) -> list[Gap]:
    """Return the parts of gaps that lie between the first and the last of some seqs, which descend."""
    parts = [(gap, range(max(gap.seqs.start, seqs[-1]), min(gap.seqs.stop, seqs[0] + 1))) for gap in gaps]
    return [replace(gap, seqs=part) for gap, part in parts if part]
