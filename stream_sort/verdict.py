"""What a handler's answer to a batch means: how far it got, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stream_sort.core.batch import Batch
from stream_sort.errors import HandlerProblem, PartlyDone

Handler = Callable[[Batch], Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything up to `done` is done; `error` kept the rest from it, None if the handler just stopped there."""

    done: int
    error: Exception | None = None


def verdict_of(handler: Handler, batch: Batch) -> Verdict:
    """Call the handler. None, or anything that is no int, means that all is done; an int is the last seq done."""
    try:
        answer = handler(batch)
    except PartlyDone as error:
        return _partly(batch, error.last_done, error)
    except Exception as error:  # noqa: BLE001  # the user's code may raise anything
        return Verdict(batch.after, error)
    if not isinstance(answer, int) or isinstance(answer, bool):
        return Verdict(batch.through)
    return _partly(batch, answer, None)


def _partly(batch: Batch, last_done: object, error: PartlyDone | None) -> Verdict:
    first, last = batch.seqs[0], batch.seqs[-1]
    if not isinstance(last_done, int) or isinstance(last_done, bool) or not batch.after <= last_done <= batch.through:
        problem = f"the handler says it did everything up to {last_done!r}, but was given seqs {first} to {last}"
        return Verdict(batch.after, HandlerProblem(problem))
    if last_done >= last:
        return Verdict(batch.through)
    if last_done < first:
        nothing = HandlerProblem(f"the handler says it did nothing of seqs {first} to {last}")
        return Verdict(batch.after, error or nothing)
    return Verdict(last_done, error)
