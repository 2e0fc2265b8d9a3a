"""What this process remembers of each queue, to save reads.

Never trusted: every decision is made by a conditional write or a consistent read, which would expose a hint
that is old or wrong.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.model.records import Cursor


@dataclass(frozen=True, slots=True)
class Hint:
    """The cursor row as last seen (None: there was none), and the lowest seq known to wait beyond a gap."""

    cursor: Cursor | None
    beyond: int | None = None


class Hints:
    """The last hint of up to `limit` queues; the oldest are forgotten first. Safe to share by threads."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._hints: dict[str, Hint] = {}
        self._failing: dict[str, None] = {}
        self._lock = threading.Lock()

    def recall(self, queue: str) -> Hint | None:
        """Return the hint of a queue, if there is one."""
        return self._hints.get(queue)

    def remember(self, queue: str, hint: Hint) -> None:
        """Keep a hint, as the youngest; a new one means that the queue answers."""
        with self._lock:
            if self._hints.pop(queue, None) is not hint:
                self._failing.pop(queue, None)
            self._hints[queue] = hint
            if len(self._hints) > self._limit:
                del self._hints[next(iter(self._hints))]

    def note_failing(self, queue: str) -> None:
        """Remember that a queue could not be read or written to; until something new is known of it, it goes last."""
        with self._lock:
            self._failing[queue] = None
            if len(self._failing) > self._limit:
                del self._failing[next(iter(self._failing))]

    def is_failing(self, queue: str) -> bool:
        """Return True for a queue that failed when it was last tried."""
        return queue in self._failing

    def failing_last(self, queues: Iterable[str]) -> list[str]:
        """Return the queues as they came, but those last that failed when they were last tried."""
        return sorted(queues, key=self.is_failing)

    def forget(self, queue: str) -> None:
        """Drop the hint of a queue."""
        with self._lock:
            self._hints.pop(queue, None)
