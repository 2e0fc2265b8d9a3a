"""Service: set the checkpoints of one consumer elsewhere, back or forth, never under the hands of one at work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from stream_sort.errors import ConsumerActive, InvalidInput, QueueNotFound, SettingsError, shown
from stream_sort.model.consumption import EARLIEST, LATEST, Checkpoint, Reset, check_start, first_checkpoint
from stream_sort.model.durations import is_time
from stream_sort.model.message import check_seq
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.model.retries import text_of
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.consumption import Subscription
    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore

# Who committed so short a time ago, in seconds, is at work.
ACTIVE = 300.0
# The runs of resets have names of their own: a reset is no sign that the consumer is at work.
RUN_PREFIX = "reset:"
PAGE = 1_000
# So many pages are read one after the other, at most; then it is safe to stop too early.
MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Finds checkpoints by time. The answer is never too far on; it may be too far back.

    Messages arrive out of order, so arrival times do not rise with the seqs: a gap may have been filled long after what
    lies behind it came. But each slot also keeps the position that its writer saw. Whatever was released by then had
    arrived before.
    """

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


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Where to: "earliest", "latest", the seq to come next, so many messages on (or back, below 0), or a time."""

    to: str | None = None
    by: int | None = None
    time: float | None = None

    @classmethod
    def of(cls, to: str | int | None, by: int | None, time: float | None = None) -> ResetTarget:
        """Return a usable target: one of the three."""
        if [to, by, time].count(None) != 2:  # noqa: PLR2004  # all but one
            raise InvalidInput(
                "a reset goes to 'earliest', 'latest' or a seq, by a number of messages, to a time or by a duration: "
                "give one of them"
            )
        if time is not None:
            return cls(time=time)
        if by is not None:
            return cls(by=check_seq(by, "by"))
        try:
            return cls(to=check_start(to))
        except SettingsError:
            problem = f"a reset to {shown(to)} cannot be; it must be 'earliest', 'latest' or a seq"
            raise InvalidInput(problem) from None

    def checkpoint(self, old: int, cursor: Cursor, arrivals: Arrivals) -> int:
        """Return the checkpoint to set; never before what there is to read, nor beyond what is released."""
        if self.by is not None:
            wanted = old + self.by
        elif self.time is not None:
            wanted = arrivals.checkpoint(cursor, self.time)
        elif self.to == EARLIEST:
            wanted = cursor.start
        elif self.to == LATEST:
            wanted = cursor.position
        else:
            wanted = int(self.to or 0) - 1
        return min(max(wanted, cursor.start), cursor.position)


@dataclass(frozen=True, slots=True)
class Resetter:
    """Resets the checkpoints of a consumer. Each is set on condition that it still is what was read."""

    context: ConsumerContext

    def plan(
        self, consumer: Subscription, target: ResetTarget, queues: Iterable[str] | None
    ) -> Iterator[tuple[Reset, Checkpoint | None]]:
        """Return what there is to change, with the rows as they stand, in all queues that have begun or those named."""
        for rows in self._named(queues) if queues is not None else self._pages():
            begun = [row for row in rows if row.position >= row.first_seq]
            names = [row.queue for row in begun]
            there = self.context.checkpoints.of_queues(consumer.name, names).whole() if names else {}
            for row in begun:
                planned = self._planned(consumer, target, row, there.get(row.queue))
                if planned.new != planned.old:
                    yield planned, there.get(row.queue)

    def check_idle(self, planned: list[Reset]) -> None:
        """Raise ConsumerActive if the consumer is at work in one of the queues."""
        active = [one.queue for one in planned if one.active]
        if active:
            raise ConsumerActive(self.context.terms.name, active[0], others=len(active) - 1, seconds=ACTIVE)

    def apply(self, planned: Reset, there: Checkpoint | None) -> Reset:
        """Set one checkpoint, and wake the consumer; whatever fails is this queue's outcome.

        The cursor row is nudged first: so a sweep compares a queue that was idle, should nobody be woken later on.
        """
        try:
            if planned.new < planned.position:
                self.context.queues.nudge(planned.queue)
            done = self._apply(planned, there)
        except Exception as error:  # noqa: BLE001  # a bug of ours included: it stops no other queue
            return replace(planned, outcome="failed", error=text_of(error))
        if done.outcome != "reset" or done.new >= done.position:
            return done
        try:
            self.context.waker.wake(done.queue, 0.0)
        except Exception as error:  # noqa: BLE001  # whatever a waker of the user's raises
            return replace(done, error=text_of(error))
        return done

    def _apply(self, planned: Reset, there: Checkpoint | None) -> Reset:
        """Set one checkpoint. What is parked is so no longer, and is tried anew when its turn comes."""
        new = self._set(planned, there)
        if new is None:
            return replace(planned, outcome="overtaken")
        at = new.seq if new.seq >= planned.old else self._above_the_floor(planned, new)
        return replace(planned, new=at, outcome="reset")

    def _set(self, planned: Reset, there: Checkpoint | None) -> Checkpoint | None:
        context = self.context
        run, now = RUN_PREFIX + context.new_run(), context.clock()
        if there is None:
            new = Checkpoint(context.terms.name, planned.queue, planned.new, run=run, committed_at=now)
        else:
            new = there.reset(planned.new, run, now)
        done = context.checkpoints.create(new) if there is None else context.checkpoints.commit(there, new)
        return new if done.put(new) else None

    def _above_the_floor(self, planned: Reset, new: Checkpoint) -> int:
        """Begin behind a trim that came first. One that sets its floor after this look sees the checkpoint.

        Whoever writes in between may still stand below it, parked there; or is past it, and began behind it, too.
        """
        cursor = self.context.queues.cursors.get(planned.queue)
        if cursor is None or cursor.start <= new.seq:
            return new.seq
        at = replace(planned, new=cursor.start)
        there: Checkpoint | None = new
        while there is not None and there.seq < at.new and self._set(at, there) is None:
            there = self.context.checkpoints.standing(there.consumer, there.queue).checkpoint
        return at.new

    def _planned(self, consumer: Subscription, target: ResetTarget, row: Cursor, there: Checkpoint | None) -> Reset:
        old = first_checkpoint(consumer.start, row) if there is None else there.seq
        active = not consumer.ready or _is_active(there, self.context.clock())
        new = target.checkpoint(old, row, Arrivals(self.context.queues.items))
        return Reset(row.queue, old, new, row.position, active)

    def _named(self, queues: Iterable[str]) -> Iterator[list[Cursor]]:
        for queue in dict.fromkeys(queues):
            row = self.context.queues.row(queue)
            if row is None:
                raise QueueNotFound(queue)
            yield [row]

    def _pages(self) -> Iterator[list[Cursor]]:
        cursors = self.context.queues.cursors
        page = cursors.rows()
        yield list(page.whole())
        while page.next is not None:
            page = cursors.rows(page.next)
            yield list(page.whole())


def _is_active(there: Checkpoint | None, now: float) -> bool:
    """Return True if somebody is at work on a queue; nobody is on one that is not tried again by itself."""
    if there is None or there.committed_at is None or there.run.startswith(RUN_PREFIX):
        return False
    if there.parked is not None and there.parked.next_try is None:
        return False
    return now - there.committed_at < ACTIVE


def time_of(to_time: object, by_duration: object, now: float) -> float | None:
    """Return a time in seconds since the epoch, given as it is or as so long ago; None if neither is given."""
    if to_time is not None and by_duration is not None:
        raise InvalidInput("a reset goes to a time or by a duration: give one of them")
    if by_duration is not None:
        seconds = by_duration.total_seconds() if isinstance(by_duration, timedelta) else by_duration
        if not is_time(seconds) or seconds <= 0:  # type: ignore[operator]  # a number by now
            raise InvalidInput(f"by_duration is so many seconds ago, above 0, or a timedelta; not {shown(by_duration)}")
        return now - float(seconds)  # type: ignore[arg-type]  # as above
    if to_time is None:
        return None
    if isinstance(to_time, datetime):
        if to_time.tzinfo is None:
            raise InvalidInput(f"to_time is {shown(to_time)}, which has no time zone; give one, such as timezone.utc")
        to_time = to_time.timestamp()
    if isinstance(to_time, int | float) and to_time > now:
        problem = f"to_time {shown(to_time)} lies ahead; it is in seconds since the epoch. For all that is to come: "
        raise InvalidInput(problem + "reset to 'latest'")
    if not is_time(to_time):
        raise InvalidInput(f"to_time is a time in seconds since the epoch or a datetime, not {shown(to_time)}")
    return float(to_time)  # type: ignore[arg-type]  # a number by now


def _is_before(entry: Entry, time: float) -> bool:
    return entry.arrived_at is not None and entry.arrived_at < time
