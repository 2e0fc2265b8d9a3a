"""What the deliveries of one consumer share: its terms, the stores, the handler, the clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import CursorLost, MissingItems, StreamSortError, Trimmed

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.consume.handler import Handler
    from stream_sort.model.records import Cursor
    from stream_sort.ports import Checkpoints, Clock, DeadLetters, Waker
    from stream_sort.release.queues import Queues


@dataclass(frozen=True, slots=True)
class DeliveryTerms:
    """How a consumer delivers."""

    name: str
    batch_size: int = 100
    max_attempts: int = 5
    dead_letters: bool = False
    start: str = "earliest"


@dataclass(frozen=True, slots=True)
class ConsumerContext:
    """What every delivery of a consumer works with; `new_run` names a run as no other one is named."""

    terms: DeliveryTerms
    queues: Queues
    checkpoints: Checkpoints
    dead_letters: DeadLetters
    handler: Handler
    waker: Waker
    clock: Clock
    new_run: Callable[[], str]


def hole(queue: str, missing: range, cursor: Cursor | None) -> StreamSortError:
    """Name what is wrong where items are missing: a retired consumer may come back to a queue that others trimmed.

    Without the cursor row nobody knows what was trimmed: then that is what is wrong.
    """
    if cursor is None:
        return CursorLost(queue, known_position=missing.start - 1)
    if cursor.floor is not None and missing.start <= cursor.floor:
        return Trimmed(queue, cursor.floor, unread=missing.start)
    return MissingItems(queue, [missing])


class Nudger:
    """A Waker that touches the cursor row. What is to be woken later is left to the sweep, which knows when."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def wake(self, queue: str, delay: float) -> None:
        """See Waker."""
        if delay <= 0:
            self._queues.nudge(queue)
