"""How much of its caller's time a call may use, how much it keeps for its end, and how long it retries."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from stream_sort.ports.time_limit import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

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
    """Calls one by one, or some at once, of which each must fit into the time that is left; as long as the longest."""

    def __init__(self, longest: float = 0.0) -> None:
        self.longest = longest

    def take(self, budget: TimeBudget, call: Callable[[], Answer]) -> Answer | None:
        """Make a call; None if there is no time for one as long as the longest so far."""
        before = budget.left()
        if before <= 0 or before < self.longest:
            return None
        answer = call()
        if budget.is_limited:
            self.longest = max(self.longest, before - budget.left())
        return answer


class Hang:
    """How long the slowest call took that failed at its first try: another may take as long before it fails."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def note(self, seconds: float) -> None:
        """Keep how long a call took that failed."""
        self.seconds = max(self.seconds, seconds)

    def fits(self, left: float) -> bool:
        """Return True if a call may hang as long and still fail in time, or if none hung so far."""
        return not self.seconds or left >= self.seconds


@dataclass(frozen=True, slots=True)
class CallTime:
    """How long the calls to the stores may take that one call of a service makes.

    `deadline` is how many seconds all that fails in one step may be retried together.
    """

    budget: TimeBudget = field(default_factory=TimeBudget)
    deadline: float = math.inf
    monotonic: Callable[[], float] = time.monotonic
    hang: Hang = field(default_factory=Hang)

    def is_over(self) -> bool:
        """Return True once nothing is left but the reserve."""
        return self.budget.is_over

    def is_over_at_the_end(self) -> bool:
        """Return True once the reserve is used up, too."""
        return self.budget.left_at_the_end() < 0

    def part(self, share: float) -> CallTime:
        """Return the same with a share of the time that is left."""
        return replace(self, budget=self.budget.part(share))

    def once(self) -> AbstractContextManager[None]:
        """Let the calls made within be tried once, and not again: what fails must not delay the others."""
        return time_limit(lambda: 0.0)

    def patiently(self) -> AbstractContextManager[None]:
        """Let the calls made within be retried, all of them together for as long as the deadline, or the budget, is."""
        end = self.monotonic() + self.deadline
        return time_limit(lambda: min(end - self.monotonic(), self.budget.left() - self.hang.seconds))

    def at_the_end(self) -> AbstractContextManager[None]:
        """Let the calls made within use the reserve."""
        return time_limit(lambda: self.budget.left_at_the_end() - self.hang.seconds)

    def note_hang(self, before: float) -> None:
        """Keep how long a call took that failed at its first try; `before` is what the budget had left then."""
        if self.budget.is_limited:
            self.hang.note(before - self.budget.left())

    def suffices(self) -> bool:
        """Return True if a call that may hang as others did can begin."""
        return self.hang.fits(self.budget.left())

    def suffices_at_the_end(self) -> bool:
        """Return True if that can begin within the reserve."""
        return self.hang.fits(self.budget.left_at_the_end())
