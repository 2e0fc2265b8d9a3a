"""Service: wakes consumers through the cursor table's stream, where no retry queue is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream_sort.release.queues import Queues


class Nudger:
    """A Waker that touches the cursor row. What is to be woken later is left to the sweep, which knows when."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues

    def wake(self, queue: str, delay: float) -> None:
        """See Waker."""
        if delay <= 0:
            self._queues.nudge(queue)
