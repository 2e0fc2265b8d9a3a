"""Times and durations as people type them."""

from __future__ import annotations

from datetime import datetime

from stream_sort.errors import InvalidInput, shown
from stream_sort.model.durations import seconds_in, seconds_of


def time_of(text: str) -> float:
    """Seconds since the epoch of an ISO-8601 time; it must name its time zone, or nobody knows which one is meant."""
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is not None:
            return told.timestamp()
    except (ValueError, OverflowError):
        problem = f"{shown(text)} is no time; write one as 2026-11-01T12:00Z or 2026-11-01T12:00+01:00"
        if seconds_in(text):
            problem += f"; for so long ago: --by-duration {text}"
        raise InvalidInput(problem) from None
    whole = told.isoformat(timespec="auto" if told.second or told.microsecond else "minutes")
    raise InvalidInput(f"{shown(text)} has no time zone; write it as {whole}Z for UTC, or with an offset as +01:00")


def duration_of(text: str, option: str, *, least: float = 0.0) -> float:
    """Return the seconds of an option's value, such as 90s, 15m or 2h; InvalidInput if it is none, or too short."""
    try:
        seconds = seconds_of(text)
    except InvalidInput as error:
        raise InvalidInput(f"{option} {error}") from None
    if seconds < least:
        raise InvalidInput(f"{option} {shown(text)} is too short; give at least {least * 1_000:g}ms")
    return seconds


def amount_in(unit: float, text: str, option: str) -> float:
    """Return an option's value in a unit of its own: a plain number is in that, a duration is turned into it."""
    try:
        return float(text)
    except ValueError:
        return duration_of(text, option) / unit
