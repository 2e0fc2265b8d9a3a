"""Which ints and floats a DynamoDB number holds as they are."""

from __future__ import annotations

import math

LARGEST_INT: int = 10**38 - 1
SMALLEST_NUMBER, LARGEST_NUMBER = 1e-130, 1e126


def int_fits_number(value: int) -> bool:
    """Return True if a number at rest, of 38 digits, holds this int exactly."""
    return abs(value) <= LARGEST_INT


def float_fits_number(value: float) -> bool:
    """Return True if a number at rest, which has no minus zero, holds this float exactly."""
    if value == 0:
        return math.copysign(1, value) > 0
    return SMALLEST_NUMBER <= abs(value) < LARGEST_NUMBER


def float_is_noted(value: float) -> bool:
    """Return True if the path to a float is noted beside the message: it looks like an int, or does not fit."""
    return value.is_integer() or not float_fits_number(value)
