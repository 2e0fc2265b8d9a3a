"""What is asked of DynamoDB, counted as it counts. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

WRITE_UNIT, READ_UNIT = 1_024, 4_096


@dataclass(frozen=True, slots=True)
class Work:
    """Requests, and the units that DynamoDB charges for them."""

    requests: float = 0.0
    write_units: float = 0.0
    read_units: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.requests + other.requests, self.write_units + other.write_units, self.read_units + other.read_units
        )

    def __mul__(self, times: float) -> Work:
        return Work(self.requests * times, self.write_units * times, self.read_units * times)


def write_units(size: float) -> int:
    """Return the units of one item that is written: one for each started KB."""
    return max(1, math.ceil(size / WRITE_UNIT))


def read_units(size: float) -> int:
    """Return the units of one consistent read: one for each started 4 KB, and one if it finds nothing."""
    return max(1, math.ceil(size / READ_UNIT))
