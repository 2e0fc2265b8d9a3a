"""The counts that the demo shows; filled by whoever knows, read by the view."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(slots=True)
class Count:
    """What became of one queue's messages so far."""

    length: int
    sent: int = 0
    arrived: int = 0
    released: int = 0
    delivered: int = 0

    @property
    def waiting(self) -> int:
        """How many messages are stored beyond a gap."""
        return max(0, self.arrived - self.released)


class Board:
    """The counts of all queues. Safe to share by threads."""

    def __init__(self, lengths: dict[str, int]) -> None:
        self.counts = {queue: Count(length) for queue, length in lengths.items()}
        self._lock = threading.Lock()

    def note_sent(self, queue: str, messages: int) -> None:
        """Add what was sent."""
        with self._lock:
            self.counts[queue].sent += messages

    def note_stored(self, queue: str, arrived: int, released: int) -> None:
        """Set what the tables show."""
        with self._lock:
            count = self.counts[queue]
            count.released = max(released, count.released)
            count.arrived = max(arrived, count.arrived, count.released)

    def note_delivered(self, queue: str, messages: int) -> None:
        """Set how many different messages came out."""
        with self._lock:
            count = self.counts[queue]
            count.delivered = messages
            # What came out was released before, whether or not somebody has looked since.
            count.released = max(messages, count.released)
            count.arrived = max(count.arrived, count.released)

    def total(self, what: str) -> int:
        """Return a count over all queues."""
        return sum(getattr(count, what) for count in self.counts.values())
