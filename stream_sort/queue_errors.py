"""Errors that single queues meet in a call on many: as values, so that no queue costs another its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import (
    OtherKeys,
    SettingsError,
    StoreMisconfigured,
    StreamSortError,
    TableNotFound,
    named_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Answer = TypeVar("Answer")

# No message of a call escapes these, so they end it; but not before what is stored by then was released or marked.
HOPELESS = (StoreMisconfigured, SettingsError)
# Of these, a table that is not there or is none of ours: nothing is stored in it, so there is nothing to release.
WRONG_TABLE = (TableNotFound, OtherKeys)


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
