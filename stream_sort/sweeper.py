"""Service: what to do when nobody else did. Applies gap policies, frees stuck queues, nudges sleepers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.core.message import check_seq
from stream_sort.core.policy import MAX_GAP
from stream_sort.core.times import is_time
from stream_sort.errors import InvalidInput, StreamSortError, shown
from stream_sort.gap_age import gap_began
from stream_sort.sorter import Sorter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.advancer import Reach
    from stream_sort.core.outcomes import Advance
    from stream_sort.core.records import Cursor, QueuePage
    from stream_sort.ports import Lagging

# Marks may lie a moment ahead: clocks differ, and no two marks of a queue are the same.
AHEAD = 1.0
# How many queues are looked at before the time is.
AT_ONCE = 50
# The shares of its time that a sweep keeps: for waking consumers, and then for telling what it did.
FOR_WAKING, FOR_TELLING = 0.5, 0.1
STRIDE = 7_919


@dataclass(frozen=True, slots=True)
class SkippedGap:
    """A gap that was given up by its queue's policy."""

    queue: str
    seqs: range


@dataclass(slots=True)
class Sweep:
    """What a sweep did. `too_long` are gaps that are due but longer than a sweep may fill by itself.

    `gap_ages` tells for how many seconds each waiting queue has been held up. Not `complete` is a sweep whose time was
    over; each begins at another queue, so all have their turn.
    """

    looked_at: int = 0
    advanced: list[Advance] = field(default_factory=list)
    skipped: list[SkippedGap] = field(default_factory=list)
    nudged: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    too_long: list[SkippedGap] = field(default_factory=list)
    failed: list[tuple[str, StreamSortError]] = field(default_factory=list)
    gap_ages: dict[str, float] = field(default_factory=dict)
    complete: bool = True

    @property
    def oldest_gap(self) -> float:
        """The age in seconds of the gap that holds a queue up longest; 0 if none does."""
        return max(self.gap_ages.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class Allowance:
    """The seconds a sweep has in all, and whom to ask how many are left; it has all the time where nobody is to ask."""

    ask: Callable[[], float] | None
    whole: float

    def is_short(self, share: float, done: Sweep) -> bool:
        """Whether less than a share of the whole is left; then the sweep is not complete."""
        if self.ask is None or self.ask() >= share * self.whole:
            return False
        done.complete = False
        return True


class Sweeper:
    """Looks after the queues of a sorter. Any number may run at once; a failing queue stops no other one."""

    def __init__(self, sorter: Sorter, *, lagging: Lagging | None = None, max_gap: int = MAX_GAP) -> None:
        _check(sorter, lagging)
        if check_seq(max_gap, "max_gap") < 0:
            raise InvalidInput(f"max_gap is {max_gap}; it must be at least 0")
        self._sorter = sorter
        self._cursors = sorter.stores.cursors
        self._lagging = lagging
        self._max_gap = max_gap

    def sweep(
        self,
        *,
        now: float | None = None,
        queues: Iterable[str] | None = None,
        time_left: Callable[[], float] | None = None,
    ) -> Sweep:
        """Look at every queue that is marked as waiting (or at `queues`) and do what is due.

        The mark is a hint: each queue is read again before anything is done about it. `time_left` is asked for seconds;
        half of them are for the queues that wait, the rest but a tenth of all for waking consumers.
        """
        done = Sweep()
        at = self._sorter.clock() if now is None else now
        if not is_time(at):
            raise InvalidInput(f"now is a time in seconds since the epoch, not {shown(at)}")
        if isinstance(queues, str | bytes) or not isinstance(queues, Iterable | None):
            raise InvalidInput(f"queues is an iterable of queue names, not {shown(queues)}")
        time = Allowance(time_left, time_left() if time_left else 0.0)
        chosen = _names(lambda start: self._cursors.waiting(at + AHEAD, start)) if queues is None else queues
        for batch in _batches(_turned(list(chosen), at) if time_left else chosen):
            if time.is_short(FOR_WAKING, done):
                break
            self._sorter.in_flight.map(lambda queue: self._attempt(queue, at, done), batch)
            done.looked_at += len(batch)
        # After the gaps: should the control table fail, their policies were applied all the same.
        for batch in _batches(_turned(list(self._lagging.lagging(at)), at) if self._lagging else ()):
            if time.is_short(FOR_TELLING, done):
                break
            self._sorter.in_flight.map(lambda queue: self._nudge(queue, done), batch)
        return done

    def sweep_all(self, *, now: float | None = None, time_left: Callable[[], float] | None = None) -> Sweep:
        """The same over every queue with a cursor row: also frees one whose last writer died unmarked."""
        return self.sweep(now=now, queues=_names(self._cursors.queues), time_left=time_left)

    def _attempt(self, queue: str, now: float, done: Sweep) -> None:
        try:
            self._tend(queue, now, done)
        except StreamSortError as error:
            done.failed.append((queue, error))

    def _tend(self, queue: str, now: float, done: Sweep) -> None:
        reach = self._advance(queue, done)
        if reach.beyond is None:
            self._clear(reach.cursor, done)
            return
        cursor = reach.cursor
        policy = cursor.policy or self._sorter.options.gap_policy
        since = gap_began(self._sorter.stores.items, cursor, now)
        if since is not None and cursor.waiting_since is not None:
            # No sweep hears of a mark that lies ahead; and none goes back, or it might be one that there was before.
            since = max(cursor.waiting_since, min(since, now))
        if policy.skip_after is None or since is None or now - since < policy.skip_after:
            done.waiting.append(queue)
            done.gap_ages[queue] = max(0.0, now - since) if since is not None else 0.0
            if since is not None and since != cursor.waiting_since:
                self._cursors.set_waiting(cursor, since)
            return
        self._skip(SkippedGap(queue, range(cursor.position + 1, reach.beyond)), str(policy), done)

    def _skip(self, gap: SkippedGap, policy: str, done: Sweep) -> None:
        if len(gap.seqs) > self._max_gap:
            done.too_long.append(gap)
            return
        skip = self._sorter.skip(gap.queue, gap.seqs, reason=f"gap policy: {policy}")
        if skip.skipped:
            done.skipped.append(gap)
        if skip.moved:
            done.advanced.append(skip)

    def _clear(self, cursor: Cursor, done: Sweep) -> None:
        """Put the mark in doubt, look once more, and only then take it away.

        A writer that stored beyond a gap just now may have relied on the mark: the look shows its message. One that
        comes later sets the mark again. And whoever dies on the way leaves a mark that the next sweep finds.
        """
        if cursor.is_marked and not self._cursors.set_waiting(cursor, -cursor.next_mark(self._sorter.clock())):
            return
        if cursor.waiting_since is not None:
            reach = self._advance(cursor.queue, done)
            if reach.beyond is None and not reach.cursor.is_marked:
                self._cursors.set_waiting(reach.cursor, None)

    def _advance(self, queue: str, done: Sweep) -> Reach:
        reach = self._sorter.reach(queue)
        if reach.advance.moved:
            done.advanced.append(reach.advance)
        return reach

    def _nudge(self, queue: str, done: Sweep) -> None:
        try:
            self._sorter.nudge(queue)
        except StreamSortError as error:
            done.failed.append((queue, error))
        else:
            done.nudged.append(queue)


def _names(pages: Callable[[Any], QueuePage]) -> Iterator[str]:
    """The queues of a listing, page after page."""
    page = pages(None)
    yield from page.queues
    while page.next is not None:
        page = pages(page.next)
        yield from page.queues


def _turned(queues: list[str], now: float) -> list[str]:
    """The same queues from another one on, every second another."""
    start = int(now) * STRIDE % len(queues) if queues else 0
    return queues[start:] + queues[:start]


def _batches(queues: Iterable[str]) -> Iterator[list[str]]:
    line = iter(queues)
    while batch := list(islice(line, AT_ONCE)):
        yield batch


def _check(sorter: object, lagging: object) -> None:
    if not isinstance(sorter, Sorter):
        raise InvalidInput(f"a sweeper looks after a sorter, not {shown(sorter)}")
    if lagging is not None and not callable(getattr(lagging, "lagging", None)):
        raise InvalidInput(f"lagging has a method lagging(now), and {shown(lagging)} has none")
