"""In which hour a queue was last active, and which share of an index it is listed under. Pure."""

from __future__ import annotations

import zlib

HOUR = 3600
# One key of an index takes about 1,000 writes a second. A listing asks for every share, so there are few.
SHARES = 4


def hour_of(queue: str, at: float) -> int:
    """Return the number of the queue's own hour in which a time lies.

    Hours begin at another second in every queue: an index by hour is written evenly, with no burst at the full hour.
    """
    return int((at + _hash(queue) % HOUR) // HOUR)


def earliest_hour(at: float) -> int:
    """Return an hour that is later than the hour of a time in no queue."""
    return int(at // HOUR)


def share_of(queue: str) -> int:
    """Return the share of an index that a queue is listed under, 0 to SHARES - 1."""
    return _hash(queue) // HOUR % SHARES


def _hash(queue: str) -> int:
    return zlib.crc32(queue.encode("utf-8", "surrogatepass"))
