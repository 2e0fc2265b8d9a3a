"""The crash guard: a queue parked before its message is tried, so that a message that kills its process is counted.

Nothing can be noted by a process that is dead. So it is noted beforehand, but only where a run seems to have died.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.model.attempts import TRIES_IN_PLACE, delay_before, shortened
from stream_sort.model.consumption import Parked
from stream_sort.model.records import CLOCKS_DIFFER

if TYPE_CHECKING:
    from stream_sort.model.consumption import Checkpoint

# What is kept of a try that has begun, and nobody can say more; and of one whose process is certainly dead.
UNDER_WAY = "TryUnderWay: this message is being tried, or its process ended, or ran out of time, without a word"
ENDED = "ProcessEnded: the process ended, or ran out of time, while it handled this message"
LAST_ERROR = "; the last error was "
# Lambda's longest run, in seconds; who has no limit is thought to need no more for one batch.
LONGEST_RUN = 900.0


@dataclass(frozen=True, slots=True)
class Shift:
    """The time that a run has, in seconds, and when it is over; None for a run without a limit."""

    seconds: float = LONGEST_RUN
    ends_at: float | None = None

    def is_over_at(self, now: float) -> float:
        """Return when a run that is alive now is certainly over, by any machine's clock: who gives up relies on it."""
        return CLOCKS_DIFFER + (now + self.seconds if self.ends_at is None else max(now, self.ends_at))


def is_crash_guard(parked: Parked | None) -> bool:
    """Return True if a queue was parked beforehand: if its time has come, the run that did so has died."""
    # An earlier version noted a try that began as one that ended.
    return parked is not None and parked.error.startswith((UNDER_WAY, ENDED))


def is_in_hand(parked: Parked, now: float) -> bool:
    """Return True if a run that parked the queue beforehand may still be at work on the message."""
    return is_crash_guard(parked) and parked.next_try is not None and parked.next_try > now


def is_trouble(parked: Parked, now: float) -> bool:
    """Return False if a message may well be in hand for the first time: then its queue is parked in name only."""
    return parked.attempts > TRIES_IN_PLACE or not is_in_hand(parked, now)


def guarded(row: Checkpoint, seq: int, attempts: int, shift: Shift, now: float) -> Parked:
    """Return the queue parked at a message that is about to be tried; others wait until this run is certainly over."""
    before = row.parked if row.parked is not None and row.parked.seq == seq else None
    since, next_try = now if before is None else before.since, max(shift.is_over_at(now), now + delay_before(attempts))
    error = under_way("" if before is None else last_error(before.error))
    return Parked(row.queue, seq, error, attempts, since, next_try)


def under_way(last: str) -> str:
    """Return what is kept as the error of a message that is about to be tried again."""
    return shortened(f"{UNDER_WAY}{LAST_ERROR}{last}" if last else UNDER_WAY)


def last_error(text: str) -> str:
    """Return the last error that is known from what is kept; empty if it is only that a try began."""
    return text.partition(LAST_ERROR)[2] if text.startswith((UNDER_WAY, ENDED)) else text


def ended(parked: Parked) -> Parked:
    """Return the crash guard of a run that is certainly over as the error it is."""
    last = last_error(parked.error)
    return replace(parked, error=shortened(f"{ENDED}{LAST_ERROR}{last}" if last else ENDED))


def is_overdue(row: Checkpoint, came_at: float, shift: Shift, now: float) -> bool:
    """Return True if a message has been due for longer than a run lasts: somebody may have died of it."""
    next_try = row.parked.next_try if row.parked is not None else None
    return now - max(came_at, row.committed_at or 0.0, next_try or 0.0) >= shift.seconds
