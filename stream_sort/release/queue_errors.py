"""Errors that single queues meet in a call on many: as values, so that no queue costs another its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import (
    OtherKeys,
    SettingsError,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
    TableNotFound,
    named_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Slot = tuple[str, int]

Answer = TypeVar("Answer")

# No message of a call escapes these, so they end it; but not before what is stored by then was released or marked.
HOPELESS = (StoreMisconfigured, SettingsError)
# Of these, a table that is not there or is none of ours: nothing is stored in it, so there is nothing to release.
WRONG_TABLE = (TableNotFound, OtherKeys)
# In how many parts in a row a queue may fail before it is left. In the first one a slot of another queue may be the
# cause, as both were in one request that got no answer.
TRIES_A_QUEUE = 2


def tried(queue: str, call: Callable[[], Answer]) -> Answer | StreamSortError:
    """Return what a call for one queue answers, or its error; a bug of ours is an InternalError of that queue."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001  # whatever it is, it stops no other queue
        return named_error(queue, error)


def hopeless_of(answers: Iterable[object]) -> StreamSortError | None:
    """Return the first error among these that no message of a call escapes, None if there is none."""
    return next((answer for answer in answers if isinstance(answer, HOPELESS)), None)


def raise_hopeless(answers: Iterable[object]) -> None:
    """Raise the first error among these that no message of a call escapes, if there is one."""
    error = hopeless_of(answers)
    if error is not None:
        raise error


class FailingQueues:
    """The queues of which no slot was stored in the last parts that held some, with the error of each part."""

    def __init__(self) -> None:
        self._errors: dict[str, list[StoreUnavailable]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._errors)

    def left_out(self, slots: Iterable[Slot]) -> dict[Slot, StoreUnavailable]:
        """Return the slots that are not to be tried as well, with the error of their queue."""
        errors = {queue: all_[-1] for queue, all_ in self._errors.items() if len(all_) >= TRIES_A_QUEUE}
        return {slot: errors[slot[0]] for slot in slots if slot[0] in errors}

    def note(self, answers: Mapping[Slot, object]) -> None:
        """Note how the slots of a part fared."""
        answering = {queue for (queue, _), answer in answers.items() if not isinstance(answer, StoreUnavailable)}
        failed = {slot[0]: answer for slot, answer in answers.items() if isinstance(answer, StoreUnavailable)}
        for queue, error in failed.items():
            if queue not in answering:
                self._errors.setdefault(queue, []).append(error)
        for queue in answering:
            self._errors.pop(queue, None)
