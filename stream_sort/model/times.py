"""Times: seconds since the epoch, as every table can hold them."""

from __future__ import annotations

from stream_sort.model.policy import LONGEST


def is_time(value: object) -> bool:
    """Return True if this is a number of seconds that a table can hold; NaN and infinities are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LONGEST <= value <= LONGEST
