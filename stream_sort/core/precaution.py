"""A precaution: a queue parked before its message is tried, so that a message that kills its process is counted.

Nothing can be noted by a process that is dead. So it is noted beforehand, but only where a run seems to have died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.core.consumption import Parked, delay_before

if TYPE_CHECKING:
    from stream_sort.core.consumption import Checkpoint

ENDED = "ProcessEnded: the process ended, or ran out of time, while it handled this message"
# Lambda's longest run, in seconds; who has no limit is thought to need no more for one batch.
LONGEST_RUN = 900.0
# How far the clocks of two machines may be apart.
SKEW = 5.0


@dataclass(frozen=True, slots=True)
class Shift:
    """The time that a run has, in seconds, and when it is over; None for a run without a limit."""

    seconds: float = LONGEST_RUN
    ends_at: float | None = None

    def is_over_at(self, now: float) -> float:
        """When a run that is alive now is certainly over."""
        return SKEW + (now + self.seconds if self.ends_at is None else max(now, self.ends_at))


def is_precaution(parked: Parked | None) -> bool:
    """Whether a queue was parked beforehand: if its time has come, the run that did so has died."""
    return parked is not None and parked.error == ENDED


def precaution(row: Checkpoint, seq: int, attempts: int, shift: Shift, now: float) -> Parked:
    """The queue parked at a message that is about to be tried; others wait until this run is certainly over."""
    since = row.parked.since if row.parked is not None and row.parked.seq == seq else now
    return Parked(row.queue, seq, ENDED, attempts, since, max(shift.is_over_at(now), now + delay_before(attempts)))


def is_overdue(row: Checkpoint, came_at: float, shift: Shift, now: float) -> bool:
    """Whether a message has been due for longer than a run lasts and nobody got on: somebody may have died of it."""
    next_try = row.parked.next_try if row.parked is not None else None
    return now - max(came_at, row.committed_at or 0.0, next_try or 0.0) >= shift.seconds
