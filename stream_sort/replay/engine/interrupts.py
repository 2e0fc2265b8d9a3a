"""Ctrl-C in a job: that it was heard is said at once, and the job ends where that breaks nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

STOPPING = "stream-sort: stopping; what has begun ends first, which takes a few seconds\n"
LOOK_AGAIN = 0.05
# Pressed once more before that, Ctrl-C would only break off what tidies up.
PATIENCE = 5.0
# A call to Java that breaks off leaves no connection to stop Spark by, and half an import leaves half a module.
JAVA, IMPORT = {"py4j", "pyspark"}, "<frozen importlib"


@contextmanager
def interrupts_told() -> Iterator[None]:
    """Say that the job stops as soon as Ctrl-C is pressed, and raise KeyboardInterrupt where that breaks nothing.

    Whatever else a job ends with that is told to stop is a consequence.
    """
    interrupts = _Interrupts()
    with _on_signal(signal.SIGALRM, interrupts.look), _on_signal(signal.SIGINT, interrupts.press):
        try:
            yield
        except Exception:
            if not interrupts.came:
                raise
        finally:
            interrupts.end()
    if interrupts.came:
        raise KeyboardInterrupt


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait for the end: a Java machine that is interrupted while it starts would never end by itself."""
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        _tell()
        came.append(number)

    with _on_signal(signal.SIGINT, note):
        yield
    if came:
        raise KeyboardInterrupt


class _Interrupts:
    """What was pressed and when it was obeyed; a timer looks again after what came at a bad moment."""

    def __init__(self) -> None:
        self.came = False
        self._obeyed: float | None = None

    def press(self, number: int, frame: FrameType | None) -> None:
        _tell()
        self.came = True
        self.look(number, frame)

    def look(self, _: int, frame: FrameType | None) -> None:
        if self._obeyed is not None and time.monotonic() - self._obeyed < PATIENCE:
            return
        if _is_bad_moment(frame):
            signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN)
            return
        self._obeyed = time.monotonic()
        raise KeyboardInterrupt

    def end(self) -> None:
        if self.came:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _is_bad_moment(frame: FrameType | None) -> bool:
    """Return True if what is interrupted was called by something that must not break off."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in JAVA or frame.f_code.co_filename.startswith(IMPORT):
            return True
        frame = frame.f_back
    return False


@contextmanager
def _on_signal(number: int, handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle a signal so until the end, whatever Spark makes of it. Whoever ignores Ctrl-C goes on to ignore it."""
    before = signal.getsignal(number)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    signal.signal(number, signal.SIG_IGN if before is signal.SIG_IGN else handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def _tell() -> None:
    """Write past Python's buffers: what was interrupted may be at work on them."""
    text = STOPPING.encode()
    with suppress(OSError, ValueError):
        number = sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
        os.write(number, b"\n" + text if os.isatty(number) else text)
