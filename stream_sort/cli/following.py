"""Released messages as they come: remembers how far each queue was shown, and reads on from there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.cli.output import tell
from stream_sort.cli.overview import cursor_rows
from stream_sort.errors import Trimmed
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.model.records import Cursor
    from stream_sort.sorter import Sorter


@dataclass(slots=True)
class Follower:
    """Follows some queues, or all; `begin` says after which seq, given a row and whether this is the first look."""

    sorter: Sorter
    queues: tuple[str, ...]
    begin: Callable[[Cursor, bool], int]
    shown: dict[str, int] = field(default_factory=dict)
    is_first_look: bool = True

    def look(self) -> Iterator[dict[str, Any]]:
        """What was released since the last look, each queue in order."""
        for row in self._rows():
            if row.queue not in self.shown:
                self.shown[row.queue] = max(row.start, self.begin(row, self.is_first_look))
            yield from self._read(row)
        self.is_first_look = False

    def _rows(self) -> Iterable[Cursor]:
        """Those of the queues that have begun; CursorLost if one that was asked for by name had a row."""
        if not self.queues:
            return cursor_rows(self.sorter)
        stores = self.sorter.stores
        found = (find_row(stores.items, stores.cursors, queue) for queue in self.queues)
        return [row for row in found if row is not None]

    def _read(self, row: Cursor) -> Iterator[dict[str, Any]]:
        queue = row.queue
        while self.shown[queue] < row.position:
            try:
                for message in self.sorter.read(queue, self.shown[queue], row.position):
                    yield message
                    self.shown[queue] = message[self.sorter.options.keys.seq]
                # Tombstones at the end are no messages.
                self.shown[queue] = row.position
            except Trimmed as trimmed:
                tell(f"{queue}: seqs up to {trimmed.floor} are trimmed and not shown")
                self.shown[queue] = trimmed.floor
