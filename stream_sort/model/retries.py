"""Attempts at a message: what is kept of those that failed, whose fault they are, and when to try again.

A process that is dead notes nothing. So the crash guard notes a try beforehand, by parking its queue, but only where a
run seems to have died: a message that kills its process is counted then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.errors import PartlyDone, StoreMisconfigured, StoreUnavailable, TryLater, kind_of
from stream_sort.model.consumption import Parked
from stream_sort.model.records import CLOCKS_DIFFER

if TYPE_CHECKING:
    from stream_sort.model.consumption import Checkpoint

FIRST_DELAY = 2.0
# A message that fails for the first time is tried again in the same run, after a moment.
TRIES_IN_PLACE = 2
# SQS delays a message by at most 15 minutes.
LONGEST_DELAY = 900.0
MAX_ERROR = 1_000
# What is kept of a try that has begun, and nobody can say more; and of one whose process is certainly dead.
UNDER_WAY = "TryUnderWay: this message is being tried, or its process ended, or ran out of time, without a word"
ENDED = "ProcessEnded: the process ended, or ran out of time, while it handled this message"
LAST_ERROR = "; the last error was "
# Lambda's longest run, in seconds; who has no limit is thought to need no more for one batch.
LONGEST_RUN = 900.0


def delay_before(attempt: int) -> float:
    """Return the seconds to wait after so many failed attempts: they double up to a cap."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(max(attempt, 1) - 1, 20))


def attempts_before(row: Checkpoint, seq: int) -> int:
    """Count how often a message failed before; a queue that is damaged keeps the count, and adds nothing to it."""
    return row.parked.attempts if row.parked is not None and row.parked.seq == seq else 0


def parked_by(row: Checkpoint, seq: int, error: Exception, attempts: int, now: float) -> Parked:
    """Return the queue parked at a message that failed, to be tried again after a while."""
    return Parked(row.queue, seq, text_of(error), attempts, _since(row, seq, now), now + delay_before(attempts))


def parked_in_outage(row: Checkpoint, seq: int, error: Exception, attempts: int, now: float) -> Parked:
    """Return the queue parked although no message is at fault, to be tried again after as long as it has waited."""
    since = _since(row, seq, now)
    delay = min(LONGEST_DELAY, max(FIRST_DELAY, now - since))
    return Parked(row.queue, seq, text_of(error), attempts, since, now + delay)


def is_blameless(error: Exception) -> bool:
    """Return True if an error is the fault of no message: what a handler needs is out of order."""
    fault = _cause_of(error) if isinstance(error, PartlyDone) else error
    # By its type: what a cause says of its class may raise.
    return issubclass(type(fault), TryLater | StoreUnavailable | StoreMisconfigured)


def _cause_of(error: BaseException) -> BaseException | None:
    """Return the cause of an error; None if it cannot be read."""
    try:
        return error.__cause__
    except Exception:  # noqa: BLE001  # whatever a property of a stranger's class does
        return None


def _since(row: Checkpoint, seq: int, now: float) -> float:
    return row.parked.since if row.parked is not None and row.parked.seq == seq else now


def text_of(error: BaseException) -> str:
    """Return an error as it is kept: its kind and message, never long, and text that every table takes."""
    cause = _cause_of(error)
    text = _named(error) + (f" ({_named(cause)})" if cause is not None else "")
    return shortened(text.encode("utf-8", "replace").decode())


def shortened(text: str) -> str:
    """Return a text as it is, or as much of it as is kept of an error."""
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "…"


def _named(error: BaseException) -> str:
    kind = kind_of(error)
    try:
        return f"{kind}: {error}"
    except Exception as broken:  # noqa: BLE001  # whatever a stranger's __str__ does
        return f"{kind}: <{kind_of(broken)}>"


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
    """Return True if a message has been due for longer than a run lasts: somebody may have died of it.

    The times are those of other machines, whose clocks may be behind.
    """
    next_try = row.parked.next_try if row.parked is not None else None
    return now - max(came_at, row.committed_at or 0.0, next_try or 0.0) >= shift.seconds
