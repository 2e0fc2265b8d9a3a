"""What to do about a gap that stays: wait for ever, or skip it after a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from stream_sort.errors import InvalidInput, shown
from stream_sort.model.durations import LONGEST, seconds_in

# Longer gaps are not skipped by a policy: a seq that is a timestamp by mistake would cost a tombstone for each tick.
MAX_GAP = 10_000
# More at once by hand are a slip of the finger, or lie before a time in place of a seq: each is a write.
MOST_SKIPS = 1_000_000
_SKIP_AFTER = re.compile(r"skip after (.+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GapPolicy:
    """`skip_after` is in seconds since the oldest message beyond a gap arrived; None waits for ever."""

    skip_after: float | None = None

    WAIT: ClassVar[GapPolicy]

    def __post_init__(self) -> None:
        after = self.skip_after
        if after is None:
            return
        if isinstance(after, bool) or not isinstance(after, int | float) or not 0 <= after <= LONGEST:
            raise InvalidInput(f"skip_after is a number of seconds, 0 to {LONGEST:,}, not {shown(after)}")
        object.__setattr__(self, "skip_after", float(after))

    @classmethod
    def of(cls, policy: object, skip_after: float | None = None) -> GapPolicy:
        """Return the policy that is given as such, as its text, or by its seconds."""
        if (policy is None) is (skip_after is None):
            raise InvalidInput("give set_policy either a policy or skip_after")
        if policy is None:
            return cls(skip_after)
        if isinstance(policy, str):
            return cls.parse(policy)
        if not isinstance(policy, cls):
            raise InvalidInput(f"a policy is a GapPolicy or text, not {type(policy).__name__}")
        return policy

    @classmethod
    def parse(cls, text: str) -> GapPolicy:
        """Read `wait` or `skip after 30 seconds`, as `str()` of a policy writes them; or `skip after 1h`, 7d, 1d12h."""
        if text.strip().lower() == "wait":
            return cls.WAIT
        match = _SKIP_AFTER.fullmatch(text.strip())
        after = seconds_in(match[1]) if match else None
        if after is None:
            raise InvalidInput(
                f"gap policy {shown(text)}: must be 'wait' or 'skip after N seconds', 'skip after 1h', 'skip after 7d'"
            )
        return cls(after)

    def __str__(self) -> str:
        if self.skip_after is None:
            return "wait"
        # All its digits and no exponent, so that it reads back as it is.
        seconds = f"{Decimal(repr(self.skip_after)):f}"
        return f"skip after {seconds.removesuffix('.0')} seconds"


GapPolicy.WAIT = GapPolicy()
