"""How much of its caller's time a call may use, and how much it keeps for its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = TypeVar("Answer")

# What is kept for marking queues that are not released yet: a share of the whole, and never more than so many seconds.
RESERVED_SHARE = 0.3
LONGEST_RESERVE = 10.0
# What is kept of that for answering.
ANSWERING_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The time of one call: what is left of it for work, and of its reserve for the end. Infinite without `ask`."""

    ask: Callable[[], float] | None = None
    reserve: float = 0.0
    answering: float = 0.0

    @classmethod
    def of(cls, time_left: Callable[[], float] | None) -> TimeBudget:
        """Return the budget of a call that may ask how many seconds are left."""
        if time_left is None:
            return cls()
        reserve = min(LONGEST_RESERVE, RESERVED_SHARE * max(0.0, time_left()))
        return cls(time_left, reserve, ANSWERING_SHARE * reserve)

    @property
    def is_limited(self) -> bool:
        """Return True if there is an end to it."""
        return self.ask is not None

    @property
    def is_over(self) -> bool:
        """Return True once nothing is left but the reserve."""
        return self.left() <= 0

    def left(self) -> float:
        """Return the seconds left for work."""
        return math.inf if self.ask is None else self.ask() - self.reserve

    def left_at_the_end(self) -> float:
        """Return the seconds left for marks, of the reserve as well."""
        return math.inf if self.ask is None else self.ask() - self.answering

    def part(self, share: float) -> TimeBudget:
        """Return a budget that is over when this share of what is left now is used up."""
        if self.ask is None:
            return self
        return replace(self, reserve=self.reserve + (1 - share) * max(0.0, self.left()))


class Turns:
    """Calls one by one, or some at once, of which each must fit into the time that is left."""

    def __init__(self) -> None:
        self._longest = 0.0

    def take(self, budget: TimeBudget, call: Callable[[], Answer]) -> Answer | None:
        """Make a call; None if there is no time for one as long as the longest so far."""
        before = budget.left()
        if before <= 0 or before < self._longest:
            return None
        answer = call()
        if budget.is_limited:
            self._longest = max(self._longest, before - budget.left())
        return answer
