"""How long the calls to a store may take whose caller has little time.

A service sets the limit around its calls; a store that retries asks for it. It holds in the threads of `InFlight`, too.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _no_limit() -> float:
    return math.inf


_seconds: ContextVar[Callable[[], float]] = ContextVar("stream_sort_seconds", default=_no_limit)


@contextmanager
def time_limit(seconds: Callable[[], float]) -> Iterator[None]:
    """Let the calls made within take no longer than `seconds` says when each begins.

    A call is tried once whatever is left, and retried only while something is.
    """
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


def seconds_left() -> float:
    """Return how long a call that begins now may take; infinite if nobody set a limit."""
    return _seconds.get()()
