"""Service: let a queue start at another seq than the usual one, before anything of it is released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import QueueExists
from stream_sort.model.message import MIN_SEQ
from stream_sort.model.records import Cursor
from stream_sort.release.position_cache import Hint

if TYPE_CHECKING:
    from stream_sort.release.position_cache import Hints
    from stream_sort.release.queues import Queues


@dataclass(frozen=True, slots=True)
class Opener:
    """Sets the start of queues."""

    queues: Queues
    hints: Hints

    def open(self, queue: str, first_seq: int) -> None:
        """Make `first_seq` the start of a queue; QueueExists once it has begun, or was opened at yet another seq."""
        row = self.queues.row(queue)
        while row is None or row.first_seq != first_seq:
            at = row or self.queues.unbegun(queue)
            if at.position >= at.first_seq or at.first_seq != self.queues.first_seq:
                raise QueueExists(queue, at.position, at.first_seq)
            row = self._moved(queue, row, first_seq)
        self.hints.remember(queue, Hint(row))

    def _moved(self, queue: str, row: Cursor | None, first_seq: int) -> Cursor | None:
        """Try once to move the start; return the row as it stands then."""
        cursors, at = self.queues.cursors, row or self.queues.unbegun(queue)
        if at.is_marked:
            # In doubt, so that whoever stores a message after our look sets it again: then the restart is refused.
            cursors.set_waiting(at, -at.next_mark(self.queues.clock()))
            return self.queues.row(queue)
        look = self.queues.items.look(queue, MIN_SEQ - 1, 1)
        if look.slots and look.slots[0].start < first_seq:
            self.queues.reach(queue)
            raise QueueExists(queue, at.position, at.first_seq, stored=look.slots[0].start)
        if row is None:
            return cursors.create(Cursor(queue, first_seq - 1, first_seq)).cursor
        move = cursors.restart(row, first_seq)
        return self.queues.row(queue) if move is None else move.cursor
