"""Service: finds consumers that sleep although something is due, and measures how far behind they are."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.core.consumption import first_checkpoint
from stream_sort.core.precaution import is_precaution

if TYPE_CHECKING:
    from stream_sort.core.consumption import Checkpoint, Parked, Subscription
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore, CursorStore

# How long a released message may wait before somebody is thought to sleep.
PATIENCE = 30.0
# A queue that moved within the hour is looked at every time; of all others one in 60, so each at least once an hour.
FRESH = 3600.0
SHARES = 60
ROWS_A_LOOK = 5_000


@dataclass(slots=True)
class Watched:
    """What a look found, by consumer: the longest lag in messages, and how many queues stay parked."""

    lag: Counter[str] = field(default_factory=Counter)
    parked: Counter[str] = field(default_factory=Counter)


class Watcher:
    """Tells a sweep which queues to nudge, and remembers what it saw.

    One look goes through a limited number of queues, and the next one goes on from there: cheap, and none is left out.
    """

    def __init__(self, control: ControlStore, cursors: CursorStore, rows_a_look: int = ROWS_A_LOOK) -> None:
        self._control = control
        self._cursors = cursors
        self._rows_a_look = rows_a_look
        self.watched = Watched()

    def lagging(self, now: float) -> list[str]:
        """See Lagging."""
        self.watched = Watched()
        consumers = self._control.consumers()
        queues: dict[str, None] = {}
        for consumer in consumers:
            queues.update(dict.fromkeys(self._due(consumer.name, now)))
        if consumers:
            queues.update(dict.fromkeys(self._sleeping(consumers, now)))
        return list(queues)

    def _due(self, consumer: str, now: float) -> list[str]:
        """Parked queues whose next try is due; those that may yet get on by themselves are not counted."""
        due = []
        page = self._control.parked(consumer)
        while True:
            self.watched.parked[consumer] += sum(_is_stuck(one, now) for one in page.parked)
            due += [one.queue for one in page.parked if one.next_try is not None and one.next_try <= now]
            if page.next is None:
                return due
            page = self._control.parked(consumer, None, page.next)

    def _sleeping(self, consumers: list[Subscription], now: float) -> list[str]:
        asleep: list[str] = []
        start, seen = self._control.bookmark(), 0
        before = start
        while seen < self._rows_a_look:
            page = self._cursors.rows(start)
            rows = [row for row in page.rows if _is_due_for_a_look(row, now)]
            for consumer in consumers:
                asleep += self._compare(consumer, rows, now)
            seen, start = seen + len(page.rows), page.next
            if start is None:
                break
        if start != before:
            self._control.set_bookmark(start)
        return asleep

    def _compare(self, consumer: Subscription, rows: list[Cursor], now: float) -> list[str]:
        checkpoints = self._control.checkpoints(consumer.name, [row.queue for row in rows]) if rows else {}
        asleep = []
        for row in rows:
            there = checkpoints.get(row.queue)
            lag = row.position - (there.seq if there else first_checkpoint(consumer.start, row))
            if lag > 0:
                self.watched.lag[consumer.name] = max(lag, self.watched.lag[consumer.name])
                asleep += [row.queue] if _sleeps(row, there, now) else []
        return asleep


def _is_stuck(parked: Parked, now: float) -> bool:
    """Whether a retry has failed, or none will come; not while the first is still due, or its run may be alive.

    What is no message's fault uses up no attempt: it counts once it has lasted for a while.
    """
    if parked.next_try is None or parked.attempts > 1 or parked.damaged:
        return True
    return parked.next_try <= now if is_precaution(parked) else now - parked.since >= PATIENCE


def _is_due_for_a_look(row: Cursor, now: float) -> bool:
    moved = row.moved_at or 0.0
    return now - moved < FRESH or (zlib.crc32(row.queue.encode()) + int(now // 60)) % SHARES == 0


def _sleeps(row: Cursor, there: Checkpoint | None, now: float) -> bool:
    """Whether nothing happened for a while; a parked queue has its own time."""
    if there is not None and there.parked is not None:
        return False
    latest = max(row.moved_at or 0.0, (there.committed_at or 0.0) if there else 0.0)
    return now - latest >= PATIENCE
