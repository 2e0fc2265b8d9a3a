"""Holds Ctrl-C back for a moment: between what AWS has done and the note of it."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C came within it. A second Ctrl-C raises at once."""
    if current_thread() is not main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        # Python handles signals there only; and who ignores Ctrl-C is to ignore it on.
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            signal.default_int_handler(number, frame)
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
