"""The outcome of each message of one put_many, as a caller or a log gets it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from stream_sort.errors import (
    CursorLost,
    InternalError,
    InvalidInput,
    RowDamaged,
    SequenceConflict,
    StoreError,
    StoreUnavailable,
    StreamSortError,
    Trimmed,
)
from stream_sort.model.outcomes import PutResult, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.model.message import KeyNames
    from stream_sort.sorter import Sorter

Outcome = Status | StreamSortError
LONGEST_CLAIM = 100
# Errors that somebody must put right first, and that no other queue meets.
OF_ONE_QUEUE = (CursorLost, RowDamaged, InternalError)
# So is this answer of a table that has a local index: the queue is full.
QUEUE_IS_FULL = "ItemCollectionSizeLimitExceededException"


class MessagePlace(TypedDict):
    """Where a message belongs: all that a log or an answer says of it."""

    queue: str
    seq: int


class Receipts:
    """The outcome of each message, by its index."""

    def __init__(self, messages: list[Any], result: PutResult, keys: KeyNames) -> None:
        self.result = result
        self._messages = messages
        self._keys = keys
        self._outcomes = result.outcomes
        self._stalled = dict(result.stalled)

    def __len__(self) -> int:
        return len(self._messages)

    def outcome(self, index: int) -> Outcome:
        """Return the status of a message, or the error that kept it from being stored."""
        return self._outcomes[index]

    def failure(self, index: int) -> StreamSortError | None:
        """Return why a message must be put again: it is not stored, or it is but its queue could not be advanced."""
        outcome = self._outcomes[index]
        if isinstance(outcome, StreamSortError):
            return outcome
        return self._stalled.get(self._messages[index][self._keys.queue])

    @property
    def failures(self) -> list[StreamSortError]:
        """The failures of all messages that have one."""
        found = map(self.failure, range(len(self)))
        return [error for error in found if error is not None]

    def again(self) -> StoreError | None:
        """Return the error that makes a caller repeat the call, now or later; None if that would help no message.

        To put a message again that is stored is safe: it is a duplicate.
        """
        hopeful = [error for error in self.failures if not is_own_fault(error)]
        if not hopeful:
            return None
        first = next((error for error in hopeful if error.retryable), hopeful[0])
        refused = [one for one in self._outcomes if isinstance(one, StreamSortError)]
        for_good = sum(map(is_own_fault, refused))
        missing = len(refused) - for_good
        counts = f"{len(self) - len(refused)} of {len(self)} messages are stored, {missing} are not"
        counts += f", and {for_good} are refused for good" if for_good else ""
        counts += f"; {len(self._stalled)} queues could not be advanced" if self._stalled else ""
        kind, when = (StoreUnavailable, "") if first.retryable else (StoreError, " once somebody has put this right")
        return kind(
            f"{counts}; the same call can be made again{when}: what is stored is then a duplicate. "
            f"The first error: {first}"
        )

    def places(self, messages: Iterable[dict[str, Any]]) -> list[MessagePlace]:
        """Say where messages belong."""
        return [{"queue": message[self._keys.queue], "seq": message[self._keys.seq]} for message in messages]

    def refused(self) -> list[dict[str, Any]]:
        """Name each message that is not stored: its index, the place it claims, and why; for a log."""
        failed = [(index, one) for index, one in enumerate(self._outcomes) if isinstance(one, StreamSortError)]
        return [{"message": index} | self._claim(self._messages[index]) | error_facts(error) for index, error in failed]

    def _claim(self, message: Any) -> dict[str, str | int]:
        """Return the queue and seq that a message gives, right or wrong, as far as they are short."""
        given = message if isinstance(message, dict) else {}
        claims = {"queue": given.get(self._keys.queue), "seq": given.get(self._keys.seq)}
        return {
            name: value[:LONGEST_CLAIM] if isinstance(value, str) else value
            for name, value in claims.items()
            if isinstance(value, str | int)
        }

    def answer(self) -> dict[str, Any]:
        """Return all of it as JSON, with no payload; `message` is the index of a refused one in the call."""
        rejected = enumerate(self._outcomes)
        return {
            "accepted": self.result.accepted,
            "duplicates": self.places(self.result.duplicates),
            "conflicts": self.places(self.result.conflicts),
            "late": self.places(self.result.late),
            "rejected": [
                {"message": index} | error_facts(error)
                for index, error in rejected
                if isinstance(error, StreamSortError)
            ],
            "stalled": [{"queue": queue} | error_facts(error) for queue, error in self.result.stalled],
            "unreleased": list(self.result.unreleased),
            "advances": [
                {"queue": one.queue, "old": one.old, "new": one.new, "released": one.released}
                for one in self.result.advances
            ],
        }


def put(sorter: Sorter, messages: list[Any], time_left: Callable[[], float] | None = None) -> Receipts:
    """Store messages with one put_many, in the seconds that are left.

    Where conflicts are to be raised, each conflicting message is refused with its own error.
    """
    keys = sorter.options.keys
    try:
        result = sorter.put_many(messages, time_left=time_left)
    except SequenceConflict as conflict:
        if conflict.result is None:
            raise
        result = _refusing_conflicts(conflict.result, messages, keys)
    return Receipts(messages, result, keys)


def _refusing_conflicts(result: PutResult, messages: list[Any], keys: KeyNames) -> PutResult:
    """Return the same result with an error for each conflicting message."""
    refusing = replace(result, conflicts=[], rejected=[*result.rejected], outcomes=[*result.outcomes])
    for index, (message, outcome) in enumerate(zip(messages, result.outcomes, strict=True)):
        if outcome is Status.CONFLICT:
            refusing.outcomes[index] = error = SequenceConflict(message[keys.queue], message[keys.seq])
            refusing.rejected.append((message, error))
    return refusing


def error_facts(error: StreamSortError) -> dict[str, Any]:
    """Return an error as a caller or a log gets it."""
    return {"error": type(error).__name__, "reason": str(error), "retryable": error.retryable}


def is_own_fault(error: StreamSortError) -> bool:
    """Return True if the message itself is to blame: then no retry, however late, will store it.

    Any other error may be over one day, even one that needs somebody to act first, such as a lost cursor.
    """
    return isinstance(error, InvalidInput | SequenceConflict | Trimmed)


def is_of_one_queue(error: StreamSortError) -> bool:
    """Return True where no retry helps until somebody puts one queue right; no other queue meets the error."""
    return isinstance(error, OF_ONE_QUEUE) or getattr(error, "code", "") == QUEUE_IS_FULL
