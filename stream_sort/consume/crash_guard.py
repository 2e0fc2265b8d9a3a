"""Parks a queue before its message is tried, where a run seems to have died: should this one die, too, it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.model.message import MIN_SEQ
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.model.retries import guarded, is_crash_guard, is_overdue, text_of, under_way

if TYPE_CHECKING:
    from stream_sort.consume.context import ConsumerContext
    from stream_sort.consume.session import Session
    from stream_sort.model.chunks import ChunkSize
    from stream_sort.model.consumption import Checkpoint
    from stream_sort.model.retries import Shift
    from stream_sort.model.slots import Entry


class CrashGuard:
    """Notes, in one queue, what is about to be tried. A queue that gets on costs no note.

    What failed before is tried with a note, always: so failures and deaths of one message add up. A note counts as an
    attempt only for a message by itself: of several nobody knows which one it was. Where a run died of several they are
    tried one by one, each with a note of its own.
    """

    def __init__(self, context: ConsumerContext, session: Session, shift: Shift, *, afresh: bool) -> None:
        self._context = context
        self._session = session
        self._shift = shift
        self._afresh = afresh
        # Up to here every chunk gets a note.
        self._through = MIN_SEQ - 1
        # The version of our note, while it stands.
        self._taken: int | None = None
        # The message of which somebody seems to have died, uncounted.
        self._suspect: int | None = None

    def heed(self, row: Checkpoint, chunk: ChunkSize) -> None:
        """Be careful with all that a run may have died of here."""
        if row.parked is None or not is_crash_guard(row.parked) or row.seq < self._through:
            return
        if row.parked.attempts > 0:
            self._through = row.parked.seq
            chunk.focus(row.seq, row.parked.seq)
        else:
            self._through = row.seq + self._context.terms.batch_size
            chunk.crawl(self._through)

    def was_the_last(self, row: Checkpoint) -> bool:
        """Return True if the last attempt at a message is begun: its process died of it, or may be at it still.

        What was given up before is tried all the same by who comes although it is parked, and so is it in a redrive.
        """
        parked = row.parked
        if parked is None or not is_crash_guard(parked) or parked.next_try is None or self._afresh:
            return False
        return parked.attempts >= self._context.terms.max_attempts

    def take(self, row: Checkpoint, first: Entry, seqs: tuple[int, ...], attempts: int) -> bool:
        """Note what is about to be tried, where that is due; return False if somebody else got on instead.

        `attempts` are those of the first message so far. What is noted is what they are if this process dies, too: a
        death that is only suspected counts in that case, and in no other.
        """
        now, alone = self._context.clock(), len(seqs) == 1
        came_at = self._came_at(row, first)
        overdue = is_overdue(row, came_at, self._shift, now)
        if not (overdue or row.seq < self._through or (alone and self._counts_always(row, attempts))):
            return True
        # Our own death is noted whatever the clocks say; that somebody died before is not to be read off one behind.
        is_suspect = is_overdue(row, came_at, self._shift, now - CLOCKS_DIFFER)
        if alone and is_suspect and self._may_have_been_tried(row, attempts):
            self._suspect = seqs[0]
        deaths = 1 + (self._suspect == seqs[0])
        trouble = self._session.trouble
        parked = guarded(row, seqs[0], attempts + deaths if alone else 0, self._shift, now)
        if trouble is not None and trouble[1] == seqs[0]:
            parked = replace(parked, error=under_way(text_of(trouble[0])))
        if not self._session.commit(row.seq, parked=parked):
            return False
        # A note gets nobody on: what went wrong before is still to be recorded.
        noted, self._session.trouble = self._session.standing_row(), trouble
        # What is known of the message is what was known before; whatever comes of it replaces the note.
        self._session.row, self._taken = replace(noted, parked=row.parked), noted.version
        return True

    @property
    def may_stand(self) -> bool:
        """Return True if a note of ours stands, or may do so: one that was not answered may have been written."""
        row, in_doubt = self._session.row, self._session.in_doubt
        return row is not None and (
            row.version == self._taken or any(is_crash_guard(one.row.parked) for one in in_doubt)
        )

    def take_back(self) -> None:
        """Take our note away: nobody died, a store failed, which is no fault of the message."""
        if self.may_stand:
            row = self._session.standing_row()
            self._session.commit(row.seq, parked=row.parked)

    def _counts_always(self, row: Checkpoint, attempts: int) -> bool:
        """Return True if a try of a message by itself is noted in any case: also while a note of ours stands."""
        return self._is_always_noted(attempts) or row.version == self._taken

    def _may_have_been_tried(self, row: Checkpoint, attempts: int) -> bool:
        """Return True if somebody may have tried the message and left no note."""
        if self._is_always_noted(attempts):
            return False
        return row.parked is None or not (is_crash_guard(row.parked) or row.parked.next_try is None)

    def _is_always_noted(self, attempts: int) -> bool:
        """Return True if nobody tries a message by itself without a note: it has one attempt, or has failed before."""
        return self._context.terms.max_attempts == 1 or attempts > 0

    def _came_at(self, row: Checkpoint, first: Entry) -> float:
        """Return when the first message that is due was stored: it was the one that its queue waited for.

        Of an item that others wrote nothing is known; then the cursor says it, unless it runs ahead.
        """
        if first.arrived_at is not None:
            return first.arrived_at
        is_ahead = self._session.position - row.seq > self._context.terms.batch_size
        return 0.0 if is_ahead else self._session.moved_at
