"""Service: visit the queues of one sweep side by side, in the time it has.

What failed, or has more to do than one turn holds, goes on only after all others had their turn: so neither a failing
queue nor one with a long backlog delays another.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import CursorLost, InvalidInput, StoreUnavailable, named_error
from stream_sort.ports.time_limit import time_limit
from stream_sort.release.time_budget import CallTime, TimeBudget
from stream_sort.upkeep.waiting_rows import RowAges, since_marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    from stream_sort.release.queues import Queues
    from stream_sort.upkeep.queue_visit import QueueVisit

Job = TypeVar("Job")

# How many queues are taken from a listing at once.
AT_ONCE = 100
# The shares of its time that a sweep keeps: when it has visited queues, when it has counted the others, and for telling
# what it did when consumers are woken.
FOR_WAKING, FOR_COUNTING, FOR_TELLING = 0.5, 0.35, 0.1
# How many steps a queue may make in one turn, moves of its cursor or some tombstones each; most need one.
STEPS_A_TURN = 10
# What comes in as fast as it is released is left to the next sweep.
MOST_TURNS = 10_000


@dataclass(frozen=True, slots=True)
class Allowance:
    """The seconds a sweep has in all, and whom to ask how many are left; it has all the time where nobody is to ask."""

    ask: Callable[[], float] | None
    whole: float

    def is_short(self, share: float) -> bool:
        """Return True if less than a share of the whole is left."""
        return self.ask is not None and self.ask() < share * self.whole

    def but(self, share: float) -> float:
        """Return the seconds left before only a share of the whole is."""
        return math.inf if self.ask is None else self.ask() - share * self.whole

    def keeping(self, share: float) -> AbstractContextManager[None]:
        """Let the calls made within be retried only until a share of the whole is left."""
        return time_limit(lambda: self.but(share))

    def calls(self, share: float, deadline: float) -> CallTime:
        """Return the time of calls that leave a share of the whole."""
        return CallTime(TimeBudget(self.ask, share * self.whole), deadline)


class Visits:
    """The visits of one sweep; `marked` says that its queues were listed as waiting."""

    def __init__(self, queues: Queues, time: Allowance, now: float, *, marked: bool) -> None:
        self._queues = queues
        self._in_flight = queues.in_flight
        self._cursors = queues.cursors
        self._time = time
        self._calls = time.calls(FOR_WAKING, queues.deadline)
        self._now = now
        self._marked = marked
        self._left: list[QueueVisit] = []

    def once(self) -> AbstractContextManager[None]:
        """Let the calls made within be tried once: what fails must not delay others."""
        return self._calls.once()

    def make(self, visits: list[QueueVisit]) -> list[QueueVisit]:
        """Make visits; return those that there was time for. Those that are not finished are kept for `again`."""
        with self._calls.once():
            were_made = self._in_flight.map(self.attempt, visits)
        made = [visit for visit, was_made in zip(visits, were_made, strict=True) if was_made]
        self._left += [visit for visit in made if not visit.done.is_finished]
        return made

    def again(self) -> list[QueueVisit]:
        """Return the visits that were not finished, after another try, or more turns, while there is time."""
        pending = [visit for visit in self._left if isinstance(visit.done.error, StoreUnavailable | None)]
        for _ in range(MOST_TURNS):
            if not pending or self._time.is_short(FOR_WAKING):
                break
            # What fails now is not tried again; what gets on has the deadline anew.
            with self._calls.patiently():
                for batch in batches(pending):
                    self._in_flight.map(self.attempt, batch)
            pending = [visit for visit in pending if visit.done.error is None and not visit.done.complete]
        failed = [visit for visit in self._left if visit.done.error is not None]
        if not self._marked:
            with self._calls.once():
                self._in_flight.map(self._mark, failed)
        self._measure(failed)
        return self._left

    def attempt(self, visit: QueueVisit) -> bool:
        """Let a visit have a turn; False if there is no time for it."""
        if self._time.is_short(FOR_WAKING):
            return False
        try:
            visit.run(lambda: self._time.is_short(FOR_WAKING), STEPS_A_TURN)
        except Exception as error:  # noqa: BLE001  # I7: also a bug of ours is the trouble of its own queue only
            visit.done.error = named_error(visit.queue, error)
        return True

    def _mark(self, visit: QueueVisit) -> None:
        """Mark a queue that failed, so that each of the next sweeps looks at it, not only one of all queues."""
        if not self._time.is_short(FOR_COUNTING):
            with suppress(Exception):
                self._queues.reach(visit.queue, is_over=lambda: True)

    def _measure(self, visits: list[QueueVisit]) -> None:
        """Note for how long queues have waited that could not be looked at, unless that shows that they do not."""
        unknown = {
            visit.queue: visit
            for visit in visits
            if visit.done.age is None and not isinstance(visit.done.error, CursorLost | InvalidInput)
        }
        rows = RowAges(self._cursors, self._now, lambda: self._time.is_short(FOR_COUNTING), self._marked)
        # All rows at once, and not one by one: rows that do not answer would use up the time for waking consumers.
        with self._calls.once():
            for queue, age in rows.of(list(unknown), since_marked).items():
                unknown[queue].done.age = age


def batches(jobs: Iterable[Job], at_once: int = AT_ONCE) -> Iterator[list[Job]]:
    """Take jobs in parts, lazily; those that came before an error, too."""
    batch: list[Job] = []
    try:
        for job in jobs:
            batch.append(job)
            if len(batch) == at_once:
                yield batch
                batch = []
    except Exception:
        yield batch
        raise
    if batch:
        yield batch
