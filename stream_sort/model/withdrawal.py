"""A withdrawal: a message that was taken out of its slot before it was released, kept with the reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# No queue has a control character in its name, so what is kept under these keys is in no queue's way.
PARTITION = "\x1fwithdrawn\x1f"


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A message that an operator took out of its slot; never released, and kept until somebody deletes it.

    `number` counts the withdrawals of its queue, from 1; `at` is the time of this one, in seconds since the epoch.
    """

    queue: str
    number: int
    seq: int
    reason: str
    at: float
    message: dict[str, Any] = field(default_factory=dict)


def partition_of(queue: str) -> str:
    """Return the partition key under which the withdrawals of a queue are kept."""
    return PARTITION + queue


def is_kept_aside(partition: object) -> bool:
    """Return True for the partition key of withdrawals: what stands there is in no slot of any queue."""
    return isinstance(partition, str) and partition.startswith(PARTITION)
