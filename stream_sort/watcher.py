"""Service: finds consumers that sleep although something is due, and measures how far behind they are."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from stream_sort.activity_reader import ROWS_A_LOOK, ActivityReader
from stream_sort.core.activity import HOUR
from stream_sort.core.consumption import TRIES_IN_PLACE, first_checkpoint
from stream_sort.core.precaution import is_precaution
from stream_sort.core.watch import MOST_LAGS, Lag, Watch
from stream_sort.errors import StreamSortError, named_error

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from stream_sort.activity_reader import Rows
    from stream_sort.core.consumption import Checkpoint, Parked, Subscription
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore, CursorStore

# How long a released message may wait before somebody is thought to sleep.
PATIENCE = 30.0
# What was active so shortly before a look is looked at again in the next one: clocks differ, the index may lag behind
# the rows, and a move that is tried again keeps its time.
OVERLAP = 180.0
# How far the very first look goes back, and one for a consumer that is new.
FIRST_LOOK = 2.0 * HOUR
# How many queues one look compares at most; what is left is older than all that was compared, and the next one's first.
MOST_COMPARED = 50_000
# How often it is noted that nothing happened.
NOTED_EVERY = 600.0


@dataclass(slots=True)
class Watched:
    """What a look found, by consumer: the longest lag in messages, and how many queues stay parked.

    `forgotten` is how many lagging queues there are beyond those that are remembered until the next look, `left` how
    many queues were left to it. `failed` is what went wrong, by consumer; without `whole`, some lag is not known.
    """

    lag: Counter[str] = field(default_factory=Counter)
    parked: Counter[str] = field(default_factory=Counter)
    forgotten: int = 0
    left: int = 0
    failed: list[tuple[str, StreamSortError]] = field(default_factory=list)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One look at all consumers: what was known before, the rows in hand, and those that were active since."""

    now: float
    before: Watch
    rows: Rows
    recent: list[str]

    def chosen(self, consumer: str, parked: Iterable[str]) -> list[Cursor]:
        """The rows to compare for one consumer; all that are in hand for one that is new."""
        found = self.rows.found
        if consumer not in self.before.consumers:
            return list(islice(found.values(), MOST_COMPARED))
        lagged = (lag.queue for lag in self.before.lags if lag.consumer == consumer)
        names = dict.fromkeys((*self.recent, *self.rows.in_turn, *lagged, *parked))
        return [found[name] for name in names if name in found]

    def was_nudged(self, lag: Lag, row: Cursor) -> bool:
        """Return True for a queue that may be one of those that could not be remembered, if its row shows a nudge."""
        is_known = lag.nudged_at is not None or not self.before.full
        return not is_known and row.nudged_at is not None and 0 <= self.now - row.nudged_at < HOUR


class Watcher:
    """Tells a sweep which queues to nudge, and remembers what it saw.

    A look compares every queue that was active since the last one, every queue that lagged then, whether it moved or
    not, and some of all others. So each lag is known from its first look on until it is gone, and its maximum is true.
    """

    def __init__(self, control: ControlStore, cursors: CursorStore, rows_a_look: int = ROWS_A_LOOK) -> None:
        self._control = control
        self._reader = ActivityReader(cursors, rows_a_look)
        self.watched = Watched()

    @property
    def problem(self) -> StreamSortError | None:
        """See Lagging."""
        return self.watched.failed[0][1] if self.watched.failed else None

    def lagging(self, now: float) -> list[str]:
        """See Lagging."""
        self.watched = Watched()
        consumers = self._control.consumers()
        if not consumers:
            self.watched.whole = True
            return []
        before = Watch.parse(self._control.bookmark())
        parked = {one.name: self._parked(one.name, now) for one in consumers}
        look, after = self._look(before, consumers, _some(parked), now)
        nudged: dict[str, None] = {}
        lags: list[Lag] = []
        for one in consumers:
            found, due = self._compare(look, one, parked[one.name])
            lags += found
            nudged.update(dict.fromkeys((*due, *_overdue(look, parked[one.name]))))
        after = after.remembering(lags)
        self.watched.forgotten, self.watched.whole = after.forgotten, not self.watched.failed
        # What could not be compared now is compared next time.
        self._keep(look, after if self.watched.whole else replace(after, since=before.since))
        return list(nudged)

    def _look(
        self, before: Watch, consumers: list[Subscription], parked: Collection[str], now: float
    ) -> tuple[Look, Watch]:
        """Read what there is to compare; and what will be known if all of it is."""
        names = tuple(sorted(one.name for one in consumers))
        is_known = set(names) <= set(before.consumers)
        if not is_known:
            # Somebody is new, also to queues that are idle: they are all passed anew.
            before = replace(before, began=None)
        since = now - FIRST_LOOK if before.since is None else min(before.since, now - OVERLAP)
        named = {*parked, *(lag.queue for lag in before.lags)}
        rows = self._reader.read(before, named, since if is_known else min(since, now - FIRST_LOOK), now)
        times = ((row.active_at, row.queue) for row in rows.found.values())
        active = sorted((at, queue) for at, queue in times if at is not None and at >= since)
        recent = active[:MOST_COMPARED]
        self.watched.left = len(active) - len(recent)
        done = recent[-1][0] if self.watched.left else now - OVERLAP
        look = Look(now, before, rows, [queue for _, queue in recent])
        return look, replace(rows.watch, since=done, consumers=names)

    def _parked(self, consumer: str, now: float) -> dict[str, Parked]:
        """Parked queues; those that may yet get on by themselves are not counted."""
        parked: dict[str, Parked] = {}
        page = self._control.parked(consumer)
        while True:
            self.watched.parked[consumer] += sum(_is_stuck(one, now) for one in page.parked)
            parked.update((one.queue, one) for one in page.parked)
            if page.next is None:
                return parked
            page = self._control.parked(consumer, None, page.next)

    def _compare(self, look: Look, consumer: Subscription, parked: Collection[str]) -> tuple[list[Lag], list[str]]:
        """Compare one consumer's checkpoints with the rows: its lags, and the queues to nudge.

        Whatever fails for it stops no other consumer's look.
        """
        old = {lag.queue: lag for lag in look.before.lags if lag.consumer == consumer.name}
        try:
            rows = look.chosen(consumer.name, islice(parked, MOST_LAGS))
            checkpoints = self._control.checkpoints(consumer.name, [row.queue for row in rows]) if rows else {}
        except Exception as error:  # noqa: BLE001  # a bug of ours included: the others are woken all the same
            self.watched.failed.append((consumer.name, named_error("(all)", error)))
            return list(old.values()), []
        found: list[Lag] = []
        due: list[str] = []
        for row in rows:
            there = checkpoints.get(row.queue)
            checkpoint = there.seq if there else first_checkpoint(consumer.start, row)
            lag = row.position - checkpoint
            if lag <= 0 and (there is None or there.parked is None):
                continue
            self.watched.lag[consumer.name] = max(lag, self.watched.lag[consumer.name])
            one = old.get(row.queue, Lag(consumer.name, row.queue, checkpoint, lag)).seen(checkpoint, lag)
            since = _due_since(row, there, look.now)
            if since is not None and one.may_nudge(look.now, since) and not look.was_nudged(one, row):
                one = one.nudged(look.now, since)
                due.append(row.queue)
            found.append(one)
        return found, due

    def _keep(self, look: Look, after: Watch) -> None:
        """Keep what the next look has to know, if there is anything new. Should that fail, it begins where we did."""
        before = look.before
        is_old = before.since is None or not 0 <= (after.since or 0.0) - before.since < NOTED_EVERY
        if not (is_old or look.recent or replace(after, since=before.since).kept() != before.kept()):
            return
        try:
            self._control.set_bookmark(after.kept())
        except StreamSortError as error:
            self.watched.failed.append(("(all)", error))


def _overdue(look: Look, parked: dict[str, Parked]) -> list[str]:
    """Parked queues beyond those that are compared: nudged when their time has come, and then once an hour."""
    since = look.before.since or 0.0
    return [
        one.queue
        for one in islice(parked.values(), MOST_LAGS, None)
        if one.next_try is not None
        and one.next_try <= look.now
        and (one.next_try > since or (zlib.crc32(one.queue.encode()) + int(look.now // 60)) % 60 == 0)
    ]


def _some(parked: dict[str, dict[str, Parked]]) -> set[str]:
    """The first parked queues of each consumer, those that are tried next."""
    return {queue for queues in parked.values() for queue in islice(queues, MOST_LAGS)}


def _is_stuck(parked: Parked, now: float) -> bool:
    """Whether a retry has failed, or none will come; not while the first is still due, or its run may be alive.

    What is no message's fault uses up no attempt: it counts once it has lasted for a while.
    """
    if parked.next_try is None or parked.attempts > TRIES_IN_PLACE or parked.damaged:
        return True
    return parked.next_try <= now if is_precaution(parked) else now - parked.since >= PATIENCE


def _due_since(row: Cursor, there: Checkpoint | None, now: float) -> float | None:
    """Return since when a consumer should have gone on, None if it may yet: 0 if it sleeps, a parked queue's own time.

    It sleeps if nothing happened for a while.
    """
    if there is not None and there.parked is not None:
        next_try = there.parked.next_try
        return next_try if next_try is not None and next_try <= now else None
    latest = max(row.moved_at or 0.0, (there.committed_at or 0.0) if there else 0.0)
    return 0.0 if now - latest >= PATIENCE else None
