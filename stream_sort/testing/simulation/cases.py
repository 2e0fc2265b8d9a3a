"""The small cases that are searched exhaustively: three writers, three messages, one queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stream_sort.testing.simulation.operations import Operation

QUEUE = "q"


@dataclass(frozen=True, slots=True)
class Case:
    """Operations that run at once, each by a process of its own, after `before` ran one by one.

    With `stale`, every process remembers the queue as it was after the first operation of `before`.
    """

    name: str
    operations: tuple[Operation, ...]
    before: tuple[Operation, ...] = ()
    stale: bool = False


def message(seq: int, body: str = "first") -> dict[str, Any]:
    """A message of the one queue there is."""
    return {"queue": QUEUE, "seq": seq, "body": body}


def put(seq: int, body: str = "first") -> Operation:
    """A put of one message."""
    return Operation("put", messages=(message(seq, body),))


# The smallest searches first.
CASES = (
    Case("a batch and a message", (Operation("put_many", messages=(message(0), message(2))), put(1))),
    Case("three messages beyond a gap", (put(1), put(2), put(3))),
    Case("a skip and its message", (Operation("skip", QUEUE, argument=(0,)), put(0), put(1))),
    Case("a duplicate", (put(0), put(0), put(1))),
    Case("a conflict", (put(0), put(0, "other"), put(1))),
    Case("three messages, stale memory", (put(2), put(3), put(4)), before=(put(0), put(1)), stale=True),
    Case("three messages, begun queue", (put(1), put(2), put(3)), before=(put(0),)),
    Case("three messages, fresh queue", (put(0), put(1), put(2))),
)
