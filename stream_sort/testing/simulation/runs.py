"""One run of an operation, from one call to the next: suspended in between, or run again from its start each time.

Both reach the same calls with the same answers. To suspend takes greenlet, and a little more than half the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.testing.simulation.calls import Unanswered

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError:  # pragma: no cover  # depends on what is installed
    greenlet = None

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.testing.simulation.calls import Call, Recorder


@dataclass(frozen=True, slots=True)
class Ended:
    """What an operation returned at its end."""

    value: Any


class Run(Protocol):
    """An operation under way."""

    def go_on(self) -> Call | Ended:
        """Run to the first call that has no answer in the history yet, or to the end."""


def start(work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> Run:
    """Begin a run of `work`; each recorder answers from the history of the one run."""
    return ReplayedRun(work, recorder) if greenlet is None else SuspendedRun(work, recorder)


class ReplayedRun:
    """Runs from the start to each next call."""

    def __init__(self, work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> None:
        self._work = work
        self._recorder = recorder

    def go_on(self) -> Call | Ended:
        """See Run."""
        try:
            return Ended(self._work(self._recorder()))
        except Unanswered as stopped:
            return stopped.call


class SuspendedRun:
    """Stands still at each call. When it is dropped, its operation unwinds, and reaches no call any more."""

    def __init__(self, work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> None:
        own = recorder()
        own.wait = _Wait()
        self._greenlet = greenlet(lambda: Ended(work(own)))

    def go_on(self) -> Call | Ended:
        """See Run."""
        reached: Call | Ended = self._greenlet.switch()
        return reached


class _Wait:
    """Gives a call to the scheduler, and comes back when the history holds its answer."""

    def __init__(self) -> None:
        self._dropped = False

    def __call__(self, call: Call) -> None:
        if self._dropped:
            raise GreenletExit
        try:
            getcurrent().parent.switch(call)
        except GreenletExit:
            self._dropped = True
            raise
