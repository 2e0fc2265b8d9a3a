"""Times and durations as people type them."""

from __future__ import annotations

import re
from datetime import datetime

from stream_sort.errors import InvalidInput, shown

DURATION = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)


def time_of(text: str) -> float:
    """Seconds since the epoch of an ISO-8601 time; it must name its time zone, or nobody knows which one is meant."""
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is not None:
            return told.timestamp()
    except (ValueError, OverflowError):
        problem = f"{shown(text)} is no time; write one as 2026-11-01T12:00Z or 2026-11-01T12:00+01:00"
        raise InvalidInput(problem) from None
    whole = told.isoformat(timespec="auto" if told.second or told.microsecond else "minutes")
    raise InvalidInput(f"{shown(text)} has no time zone; write it as {whole}Z for UTC, or with an offset as +01:00")


def seconds_of(text: str) -> float:
    """Seconds of a duration: 90s, 15m, 2h, 1d, or several of them, the longest first."""
    found = DURATION.fullmatch(text)
    if not text or found is None:
        raise InvalidInput(f"{shown(text)} is no duration; write one as 90s, 15m, 2h or 1d12h")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    whole = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    if whole <= 0:
        raise InvalidInput(f"{shown(text)} is no time at all; give a duration above 0")
    return whole
