"""A clock that stands still until it is moved."""

from __future__ import annotations


class MovableClock:
    """Seconds since the epoch that only `move` changes; give it to a sorter as `clock=`."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
