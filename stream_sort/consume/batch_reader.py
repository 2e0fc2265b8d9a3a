"""What is due to a consumer in one queue: the tables say it, nothing else; a wake only says where to look."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from stream_sort.consume.context import hole
from stream_sort.model.consumption import Outcome
from stream_sort.model.ordering import run_through
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.consume.session import Session
    from stream_sort.model.chunks import ChunkSize
    from stream_sort.model.consumption import Checkpoint
    from stream_sort.model.slots import Entry

# How many steps of an advance, each a read or a move of up to a thousand seqs, one look makes.
STEPS_A_LOOK = 20


class BatchReader:
    """Finds what is due to one session, and ends it where nothing is; `hint` is the position that a wake names."""

    def __init__(self, context: ConsumerContext, session: Session, chunk: ChunkSize, hint: int | None) -> None:
        self._context = context
        self._session = session
        self._chunk = chunk
        self._hint = hint

    def look(self) -> bool:
        """Read where the queue stands, unless that is known; return True if something is due."""
        if self._session.row is None:
            self._arrive()
        if self._session.is_over:
            return False
        if self._session.position > self._session.standing_row().seq:
            return True
        self._look_past()
        return False

    def _arrive(self) -> None:
        hint, session = self._hint, self._session
        standing = session.look(None if hint is None else hint + 1)
        if standing.cursor is None:
            session.end(Outcome.DONE)
            return
        if session.must_wait():
            return
        row = session.standing_row()
        if row.parked is not None:
            self._chunk.focus(row.seq, row.parked.seq)
        if session.position <= row.seq and session.position == hint:
            self._go_past(row, taken=bool(standing.taken))

    def _look_past(self) -> None:
        """Read again after the last commit: whoever lost a commit to us relies on this."""
        seen = self._session.position
        standing = self._session.look(seen + 1)
        if not self._session.must_wait() and self._session.position == seen:
            self._go_past(self._session.standing_row(), taken=bool(standing.taken))

    def _go_past(self, row: Checkpoint, *, taken: bool) -> None:
        """Advance if something stands behind the position: its writer may have died."""
        if taken:
            before, steps = self._session.position, count()
            # A piece of a long backlog at a time: the other queues have their turns, and the run its time.
            reach = self._context.queues.reach(row.queue, is_over=lambda: next(steps) >= STEPS_A_LOOK)
            self._session.see(reach.cursor)
            if self._session.position <= before:
                self._session.end(Outcome.DONE)
        elif row.parked is None:
            self._session.end(Outcome.DONE)
        else:
            # Nothing is due. A queue that was parked for a lost cursor is so no longer; then look again, as ever.
            self._session.commit(row.seq)

    def read(self, row: Checkpoint) -> Sequence[Entry]:
        """Return the next chunk, whole: a hole in a released range is never passed over. Empty if overtaken.

        It has messages that the consumer has had before a reset, or others, never both.
        """
        after, position, border = row.seq, self._session.position, row.border()
        if border is not None:
            position = min(position, border)
        slots = self._context.queues.read(row.queue, after, position, self._chunk.size).slots
        end = min(run_through(after, [slot.seqs for slot in slots]), position, after + self._chunk.size)
        if end == after:
            self._check_hole(row, range(after + 1, slots[0].first if slots else position + 1))
        return list(expand(slots, after, end))

    def _check_hole(self, row: Checkpoint, missing: range) -> None:
        """Raise what is wrong where items are missing, unless another run moved on since the checkpoint was read.

        Then they may have been delivered, and trimmed, meanwhile. While the checkpoint stands nobody may trim them.
        What was trimmed before a reset went back to it, the consumer has had: it begins behind that.
        """
        standing = self._context.checkpoints.standing(row.consumer, row.queue)
        there, cursor = standing.checkpoint, standing.cursor
        if there is None or not there.is_write_of(row):
            self._session.give_way(there)
        elif cursor is not None and missing.start <= cursor.start and row.has_had(missing.start):
            # A chunk ends where what it has had does: all that is missing is alike.
            self._session.commit(min(cursor.start, missing.stop - 1))
        else:
            raise hole(row.queue, missing, cursor)
