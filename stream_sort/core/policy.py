"""What to do about a gap that stays: wait for ever, or skip it after a time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar

from stream_sort.errors import InvalidInput

_SKIP_AFTER = re.compile(r"skip after (\d+(?:\.\d+)?)\s*(?:s|sec|second|seconds)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GapPolicy:
    """`skip_after` is in seconds since the queue began to wait; None waits for ever."""

    skip_after: float | None = None

    WAIT: ClassVar[GapPolicy]

    def __post_init__(self) -> None:
        after = self.skip_after
        if after is None:
            return
        if isinstance(after, bool) or not isinstance(after, int | float) or not math.isfinite(after) or after < 0:
            raise InvalidInput(f"skip_after is a number of seconds, 0 or more, not {after!r}")

    @classmethod
    def parse(cls, text: str) -> GapPolicy:
        """Read `wait` or `skip after 30 seconds`, as `str()` of a policy writes them."""
        if text.strip().lower() == "wait":
            return cls.WAIT
        match = _SKIP_AFTER.fullmatch(text.strip())
        if not match:
            raise InvalidInput(f"gap policy {text!r:.80}: must be 'wait' or 'skip after N seconds'")
        return cls(float(match[1]))

    def __str__(self) -> str:
        return "wait" if self.skip_after is None else f"skip after {self.skip_after:g} seconds"


GapPolicy.WAIT = GapPolicy()
