"""Watch the file of the user's handler, and swap it in whenever it changes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, LocalStackFailed, StreamSortError
from stream_sort.local.handlers import HandlerFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.local.stack import LocalStack

POLL = 0.5


def watch_handler(
    find: Callable[[], LocalStack | None], report: Callable[[str], None], pause: Callable[[float], None] = time.sleep
) -> None:
    """Swap it in at each change, until the stack is down or dead, which is a LocalStackFailed; `find` gives the stack.

    A file that cannot work is reported, and the previous handler stays; so is that it was undone.
    """
    seen = tried = ""
    while True:
        stack = find()
        # One that does not answer in time is busy, and not gone.
        if stack is None or stack.death is not None:
            raise LocalStackFailed("the local stack is no longer up: there is nothing to swap a handler into")
        before, seen = seen, _content(stack)
        # An editor may be in the middle of writing it: what is there twice is whole.
        if seen == before and seen != tried:
            if seen != stack.record.digest:
                tried = seen if _swap(stack, report) else tried
            elif tried:
                _report(report, f"{stack.record.handler} runs again")
                tried = seen
        pause(POLL)


def watched_file(stack: LocalStack) -> HandlerFile:
    """Return the file to watch; InvalidInput if the stack has none, or it cannot be read."""
    if stack.record.handler is None:
        raise InvalidInput("there is no handler to watch; name one: --handler FILE:FUNCTION")
    return HandlerFile.parse(stack.record.handler)


def _content(stack: LocalStack) -> str:
    """Return a text that is another one when the file is."""
    name, _, function = (stack.record.handler or "").rpartition(":")
    try:
        return HandlerFile(Path(name), function).digest
    except InvalidInput as error:
        return str(error)


def _swap(stack: LocalStack, report: Callable[[str], None]) -> bool:
    """Return False if it is worth another try with the same file."""
    began = time.monotonic()
    try:
        stack.swap_handler()
        told = f"{stack.record.handler} is swapped in ({time.monotonic() - began:.1f} s)"
    except StreamSortError as error:
        told = f"the previous handler stays: {error}"
        if isinstance(error, LocalStackFailed):
            _report(report, f"{told}; trying again")
            return False
    _report(report, told)
    return True


def _report(report: Callable[[str], None], text: str) -> None:
    report(f"{time.strftime('%H:%M:%S')} {text}")
