"""What a handler's answer to a batch means: how far it got, and what went wrong."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from stream_sort.errors import HandlerProblem, PartlyDone, SettingsError, shown
from stream_sort.model.batch import Batch, Effect, taken_from

Handler = Callable[[Batch], Any]


@dataclass(frozen=True, slots=True)
class HandlerAnswer:
    """Everything up to `done` is done; `error` kept the rest from it, None if the handler just stopped there.

    `effects` are those of the transaction, if anything was done.
    """

    done: int
    error: Exception | None = None
    effects: tuple[Effect, ...] = ()


def check_handler(handler: object) -> Handler:
    """Return a handler if it can be called with a batch, and then has done something; else raise SettingsError."""
    called = handler if inspect.isroutine(handler) else getattr(handler, "__call__", None)  # noqa: B004  # its method
    if not callable(handler):
        raise SettingsError(f"handler is {shown(handler)}; it must be a function that takes a batch")
    if inspect.iscoroutinefunction(called) or inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise SettingsError(f"handler {shown(handler)} is a coroutine or a generator: to call it does nothing yet")
    if not _takes_one(handler):
        raise SettingsError(f"handler {shown(handler)} cannot be called with a batch alone; it must take one batch")
    return cast("Handler", handler)


def _takes_one(handler: Callable[..., Any]) -> bool:
    """Return True if it can be called with one argument, as far as anybody can tell."""
    try:
        signature = inspect.signature(handler)
    except (ValueError, TypeError):
        return True
    try:
        signature.bind(object())
    except TypeError:
        return False
    return True


def no_handler(batch: Batch) -> None:
    """Take the place of a handler that was not given."""
    raise SettingsError(f"no handler was given for the messages of queue {batch.queue!r}")


def call_handler(handler: Handler, batch: Batch) -> HandlerAnswer:
    """Call the handler. None means that all is done, an int is the last seq done; anything else is a failure.

    The handler gets a batch of its own: whatever it does to that, the one given here is as it was. What it answers or
    raises is of a stranger's class: if reading it raises, that is a failure of the handler, too.
    """
    try:
        return _with_effects(_called(handler, batch), batch)
    except HandlerProblem as error:
        return HandlerAnswer(batch.after, error)
    except Exception as error:  # noqa: BLE001  # the user's code may raise anything
        problem = f"what the handler answered or raised cannot be read: {shown(error)}"
        return HandlerAnswer(batch.after, HandlerProblem(problem))


def _with_effects(answer: HandlerAnswer, batch: Batch) -> HandlerAnswer:
    """Add the effects of what is done; raises if the class of the error, or an effect, cannot be read."""
    # Whoever handles the error asks for its class, and must not be the first one to do so.
    isinstance(answer.error, HandlerProblem)
    if answer.done == batch.after:
        return answer
    return replace(answer, effects=taken_from(batch.transaction))


def _called(handler: Handler, batch: Batch) -> HandlerAnswer:
    try:
        answer = handler(replace(batch))
    except PartlyDone as error:
        return _partly(batch, getattr(error, "last_done", None), error)
    except SystemExit as error:
        return HandlerAnswer(
            batch.after, HandlerProblem(f"the handler ended the process: SystemExit({shown(error.code)})")
        )
    except Exception as error:  # noqa: BLE001  # the user's code may raise anything
        return HandlerAnswer(batch.after, error)
    except BaseException as error:
        if not _is_cancelled(error):
            raise
        return HandlerAnswer(batch.after, HandlerProblem(f"the handler was cancelled: {shown(error)}"))
    return _answered(batch, answer)


def _is_cancelled(error: BaseException) -> bool:
    """Return True if a task was cancelled. Who raises that has loaded asyncio; nobody else has to."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and isinstance(error, asyncio.CancelledError)


def _answered(batch: Batch, answer: object) -> HandlerAnswer:
    if inspect.isawaitable(answer) or inspect.isgenerator(answer) or inspect.isasyncgen(answer):
        _close(answer)
        return HandlerAnswer(
            batch.after, HandlerProblem("the handler answered with a coroutine or a generator: nothing ran")
        )
    if answer is None:
        return HandlerAnswer(batch.through)
    if not _is_int(answer):
        problem = (
            f"the handler returned {shown(answer)}, which says nothing: a handler returns None, when all is done, "
            "or the last seq it did, as an int"
        )
        return HandlerAnswer(batch.after, HandlerProblem(problem))
    return _partly(batch, answer, None)


def _close(answer: Any) -> None:
    """Nobody will ever wait for it; say so to Python, too."""
    if inspect.iscoroutine(answer):
        answer.close()


def _partly(batch: Batch, last_done: object, error: PartlyDone | None) -> HandlerAnswer:
    first, last = batch.seqs[0], batch.seqs[-1]
    # A plain int: what is compared, and kept, is no stranger's.
    done = int.__int__(cast("int", last_done)) if _is_int(last_done) else None
    if done is None or not batch.after <= done <= batch.through:
        problem = f"the handler says it did everything up to {shown(last_done)}, but was given seqs {first} to {last}"
        return HandlerAnswer(batch.after, HandlerProblem(problem))
    if done >= last:
        return HandlerAnswer(batch.through)
    if done < first:
        nothing = HandlerProblem(f"the handler says it did nothing of seqs {first} to {last}")
        return HandlerAnswer(batch.after, error or nothing)
    return HandlerAnswer(done, error)


def _is_int(answer: object) -> bool:
    return issubclass(type(answer), int) and not isinstance(answer, bool)
