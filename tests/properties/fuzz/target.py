"""What is fuzzed: examples, and a check that raises where an example does what it must not."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from hypothesis.strategies import SearchStrategy

# Of a machine that has other work too: most examples take a millisecond.
PATIENCE = 30.0


class Hung(BaseException):
    """An example that did not come to an end; not an Exception, so that nobody takes it for one of a handler."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parser with examples of what it may be given: JSON-like values and bytes, so that each can be kept in a file.

    `check` may raise errors of ours, which is what a parser does with bad input; whatever else it raises is a fault.
    """

    name: str
    examples: SearchStrategy[Any]
    check: Callable[[Any], None]
    surroundings: Callable[[], AbstractContextManager[object]] = nullcontext

    def try_example(self, example: Any) -> None:
        """Check one example; raises what is wrong."""
        with _at_most(PATIENCE):
            try:
                self.check(example)
            except StreamSortError:
                return

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Where examples are tried: with what they need, and without what they print."""
        with ExitStack() as stack:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8", errors="replace"))
            stack.enter_context(redirect_stdout(nowhere))
            stack.enter_context(redirect_stderr(nowhere))
            stack.enter_context(self.surroundings())
            yield


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise Hung(f"no end after {seconds:.0f} s")

    handler = signal.signal(signal.SIGALRM, give_up)
    # Who runs the tests may have a timer of his own: it goes on afterwards.
    left, pause = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, left, pause)
