"""What a handler's answer to a batch means: how far it got, and what went wrong."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from stream_sort.core.batch import Batch
from stream_sort.errors import HandlerProblem, PartlyDone, SettingsError, shown

Handler = Callable[[Batch], Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything up to `done` is done; `error` kept the rest from it, None if the handler just stopped there."""

    done: int
    error: Exception | None = None


def check_handler(handler: object) -> Handler:
    """A function that can be called with a batch, and then has done something."""
    called = handler if inspect.isroutine(handler) else getattr(handler, "__call__", None)  # noqa: B004  # its method
    if not callable(handler):
        raise SettingsError(f"handler is {shown(handler)}; it must be a function that takes a batch")
    if inspect.iscoroutinefunction(called) or inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise SettingsError(f"handler {shown(handler)} is a coroutine or a generator: to call it does nothing yet")
    return cast("Handler", handler)


def no_handler(batch: Batch) -> None:
    """Stands where no handler was given."""
    raise SettingsError(f"no handler was given for the messages of queue {batch.queue!r}")


def verdict_of(handler: Handler, batch: Batch) -> Verdict:
    """Call the handler. None means that all is done, an int is the last seq done; anything else is a failure."""
    try:
        answer = handler(batch)
    except PartlyDone as error:
        return _partly(batch, error.last_done, error)
    except SystemExit as error:
        return Verdict(batch.after, HandlerProblem(f"the handler ended the process: SystemExit({error.code!r})"))
    except Exception as error:  # noqa: BLE001  # the user's code may raise anything
        return Verdict(batch.after, error)
    return _answered(batch, answer)


def _answered(batch: Batch, answer: object) -> Verdict:
    if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        _close(answer)
        return Verdict(batch.after, HandlerProblem("the handler answered with a coroutine or a generator: nothing ran"))
    if answer is None:
        return Verdict(batch.through)
    if not isinstance(answer, int) or isinstance(answer, bool):
        problem = (
            f"the handler returned {shown(answer)}, which says nothing: a handler returns None, when all is done, "
            "or the last seq it did, as an int"
        )
        return Verdict(batch.after, HandlerProblem(problem))
    return _partly(batch, answer, None)


def _close(answer: Any) -> None:
    """Nobody will ever wait for it; say so to Python, too."""
    if inspect.iscoroutine(answer):
        answer.close()


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
