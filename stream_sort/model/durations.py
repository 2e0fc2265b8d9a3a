"""Times and durations in seconds; durations also as people write them: 30s, 5m, 1h, 7d, 1d12h. Pure."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from stream_sort.errors import InvalidInput, shown

# A time since the epoch, or a duration, that every table can hold.
LONGEST = 10_000_000_000
MILLISECOND, SECOND, MINUTE, HOUR, DAY = 0.001, 1.0, 60.0, 3_600.0, 86_400.0
UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
}
PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)", re.ASCII | re.IGNORECASE)


def seconds_of(text: str) -> float:
    """Return the seconds of a duration, the longest unit first; InvalidInput if it is none."""
    found = seconds_in(text)
    if found is None:
        raise InvalidInput(
            f"{shown(text)} is no duration; write one as 30s, 5m, 1h, 7d or 1d12h, or as a number of seconds"
        )
    return found


def seconds_in(text: str) -> float | None:
    """Return the seconds of a duration; None if the text is none."""
    given = text.strip()
    parts = PART.findall(given)
    if not parts or PART.sub("", given):
        return None
    units = [UNITS.get(unit.lower()) if unit else None for _, unit in parts]
    if units == [None] and not parts[0][1]:
        units = [SECOND]
    known = [unit for unit in units if unit is not None]
    # Each unit once, the longest first: 1h30m, and not 30m1h.
    if len(known) < len(units) or known != sorted(set(known), reverse=True):
        return None
    seconds = math.fsum(float(number) * unit for (number, _), unit in zip(parts, known, strict=True))
    return seconds if math.isfinite(seconds) else None


def duration_text(seconds: float) -> str:
    """Return a duration as people write it, such as 1d12h; with all its digits, so that it reads back as it is."""
    if not 0 < seconds == seconds // SECOND:
        return f"{Decimal(repr(float(seconds))):f}".removesuffix(".0") + "s"
    told, left = "", int(seconds)
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s")):
        count, left = divmod(left, int(unit))
        told += f"{count}{name}" if count else ""
    return told


def is_time(value: object) -> bool:
    """Return True if this is a number of seconds that a table can hold; NaN and infinities are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LONGEST <= value <= LONGEST
