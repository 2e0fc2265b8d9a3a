"""Ctrl-C in a job: that it was heard is said at once, as Spark takes its time to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STOPPING = "stream-sort: stopping; what has begun ends first, which takes a few seconds\n"


@contextmanager
def interrupts_told() -> Iterator[None]:
    """Say that the job stops as soon as Ctrl-C is pressed, and raise KeyboardInterrupt as ever."""

    def stop(number: int, frame: Any) -> None:
        _tell()
        signal.default_int_handler(number, frame)

    with _on_interrupt(stop):
        yield


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait for the end: a Java machine that is interrupted while it starts would never end by itself."""
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        _tell()
        came.append(number)

    with _on_interrupt(note):
        yield
    if came:
        raise KeyboardInterrupt


@contextmanager
def _on_interrupt(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """As it was before at the end, whatever Spark made of it. Who ignores Ctrl-C, as in the background, goes on to."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN if before is signal.SIG_IGN else handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _tell() -> None:
    """Past Python's buffers: what was interrupted may be at work on them."""
    text = STOPPING.encode()
    with suppress(OSError, ValueError):
        number = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
        os.write(number, b"\n" + text if os.isatty(number) else text)
