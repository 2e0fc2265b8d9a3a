"""Released messages as they come: remembers how far each queue was shown, and reads on from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import Trimmed
from stream_sort.insight.rows import cursor_rows
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.insight.sources import Sources
    from stream_sort.model.records import Cursor


@dataclass(slots=True)
class Follower:
    """Follows some queues, or all; `begin` returns after which seq, given a row and whether this is the first look.

    `read` yields the messages of a queue in (after, through]. `report_trim` hears of a queue that was trimmed past what
    was shown, and through which seq.
    """

    sources: Sources
    read: Callable[[str, int, int], Iterator[dict[str, Any]]]
    queues: tuple[str, ...]
    begin: Callable[[Cursor, bool], int]
    report_trim: Callable[[str, int], None]
    shown: dict[str, int] = field(default_factory=dict)
    is_first_look: bool = True

    def look(self) -> Iterator[dict[str, Any]]:
        """Yield what was released since the last look, each queue in order."""
        for row in self._rows():
            if row.queue not in self.shown:
                self.shown[row.queue] = max(row.start, self.begin(row, self.is_first_look))
            yield from self._read(row)
        self.is_first_look = False

    def _rows(self) -> Iterable[Cursor]:
        """Read the rows of the queues that have begun; CursorLost if one that was asked for by name had a row."""
        if not self.queues:
            return cursor_rows(self.sources)
        found = (find_row(self.sources.items, self.sources.cursors, queue) for queue in self.queues)
        return [row for row in found if row is not None]

    def _read(self, row: Cursor) -> Iterator[dict[str, Any]]:
        queue = row.queue
        while self.shown[queue] < row.position:
            try:
                for message in self.read(queue, self.shown[queue], row.position):
                    yield message
                    self.shown[queue] = message[self.sources.keys.seq]
                # Tombstones at the end are no messages.
                self.shown[queue] = row.position
            except Trimmed as trimmed:
                self.report_trim(queue, trimmed.floor)
                self.shown[queue] = trimmed.floor
