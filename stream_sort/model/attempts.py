"""Attempts at a message that failed: what is kept of them, whose fault they are, and when to try again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import PartlyDone, StoreMisconfigured, StoreUnavailable, TryLater, kind_of
from stream_sort.model.consumption import Parked

if TYPE_CHECKING:
    from stream_sort.model.consumption import Checkpoint

FIRST_DELAY = 2.0
# A message that fails for the first time is tried again in the same run, after a moment.
TRIES_IN_PLACE = 2
# SQS delays a message by at most 15 minutes.
LONGEST_DELAY = 900.0
MAX_ERROR = 1_000


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
