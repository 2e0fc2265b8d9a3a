"""Ports: what the services need besides tables: the time, and what wakes consumers or knows that they sleep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable


class Clock(Protocol):
    """The time, in seconds since the epoch; a parameter, so that tests can move it."""

    def __call__(self) -> float:
        """Return the time now."""


class Waker(Protocol):
    """What can make a consumer look at a queue."""

    def wake(self, queue: str, delay: float) -> None:
        """See to it that the queue is looked at, not before `delay` seconds have passed.

        A later sweep does the same, so a lost wake costs time only.
        """


class Lagging(Protocol):
    """What knows which queues have sleeping consumers.

    It may have an attribute `problem`: what kept the last look from being whole, a StreamSortError or None; one
    `damaged`: queues that it could not look at, with a StreamSortError each; and a method `were_nudged(queues)`, which
    is called after each look with those that were nudged, or cannot be for a trouble of their own: of the named ones,
    some may have failed, and some were left out for want of time. `ports.time_limit.seconds_left` says how long a look
    may take.
    """

    def lagging(self, now: float) -> Iterable[str]:
        """Name queues to nudge; naming one in vain costs a write, nothing else."""
