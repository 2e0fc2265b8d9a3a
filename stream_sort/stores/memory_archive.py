"""ArchiveMarks in a dict."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class MemoryArchiveMarks:
    """ArchiveMarks in a dict."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self._lock = threading.Lock()

    def watermark(self, queue: str) -> int | None:
        """See ArchiveMarks."""
        return self._marks.get(queue)

    def watermarks(self, queues: Sequence[str]) -> dict[str, int]:
        """See ArchiveMarks."""
        with self._lock:
            return {queue: self._marks[queue] for queue in queues if queue in self._marks}

    def set_watermark(self, queue: str, old: int | None, new: int) -> bool:
        """See ArchiveMarks."""
        with self._lock:
            there = self._marks.get(queue)
            if there == old and (old is None or new > old):
                self._marks[queue] = new
            return self._marks.get(queue) == new
