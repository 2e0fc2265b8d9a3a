"""ArchiveMarks in a dict."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from stream_sort.ports.archive import Archived

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MemoryArchiveMarks:
    """ArchiveMarks in a dict; `others` are those of other archives, by their addresses."""

    def __init__(self, others: Mapping[str, MemoryArchiveMarks] | None = None) -> None:
        self._others = others or {}
        self._marks: dict[str, Archived] = {}
        self._lock = threading.Lock()

    def watermark(self, queue: str) -> int | None:
        """See ArchiveMarks."""
        there = self._marks.get(queue)
        return None if there is None else there.watermark

    def archived(self, queues: Sequence[str]) -> dict[str, Archived]:
        """See ArchiveMarks."""
        with self._lock:
            return {queue: self._marks[queue] for queue in queues if queue in self._marks}

    def elsewhere(self, queue: str) -> dict[str, Archived]:
        """See ArchiveMarks."""
        found = {address: other.archived([queue]) for address, other in self._others.items()}
        return {address: marks[queue] for address, marks in found.items() if marks}

    def set_watermark(self, queue: str, old: int | None, new: int, *, began: int | None = None) -> bool:
        """See ArchiveMarks."""
        with self._lock:
            if self.watermark(queue) == old and (old is None or new > old):
                self._marks[queue] = Archived(new, began)
            return self.watermark(queue) == new
