"""Which queues did not answer their last writes, as this process saw it; a hint, which decides only how to write."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class HangingQueues:
    """Counts the writes in a row that a queue did not answer, of up to `limit` queues. Safe to share by threads."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def count(self, queue: str) -> int:
        """Return how many writes to a queue got no answer since the last one that did."""
        return self._counts.get(queue, 0)

    def note(self, queues: Iterable[str]) -> None:
        """Count a write to these queues that got no answer."""
        with self._lock:
            for queue in set(queues):
                self._counts[queue] = self._counts.pop(queue, 0) + 1
                if len(self._counts) > self._limit:
                    del self._counts[next(iter(self._counts))]

    def forget(self, queues: Iterable[str]) -> None:
        """Count anew for queues that answered."""
        with self._lock:
            for queue in queues:
                self._counts.pop(queue, None)
