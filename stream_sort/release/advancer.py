"""Service: move a queue's cursor over the contiguous run, as far as it goes.

Why no queue is left behind: a writer stores before it comes here. If it finds the cursor too far back to
act on, whoever moves the cursor up to its message reads ahead after that move, and finds it.

Why no hole is released: a walk moves the cursor from `p` to `e` because it knows that the slots `p + 1` to `e` are
taken: it looked, or its caller filled them (`own`). It learnt each of these after it had read the row whose count of
withdrawals it puts into the condition of the move. Below the position nothing but a trim empties a slot, and beyond it
nothing but a withdrawal, which counts itself on the row in the same transaction. So if the count is the same at the
moment of the move, none of these slots was emptied in between. If it is not, the move is refused with the row as it
stands, and the walk forgets what its caller filled before that row and looks for itself. A queue without a row has
had no withdrawal: that is a count of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stream_sort.errors import CursorLost
from stream_sort.model.ordering import run_end, run_through
from stream_sort.model.outcomes import Advance
from stream_sort.model.records import Cursor
from stream_sort.release.lost_cursor import look_for_proof
from stream_sort.release.position_cache import Hint, Hints

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stream_sort.model.records import Look, Move
    from stream_sort.ports import Clock, CursorStore, HeadReader, ItemStore


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one step goes.

    `max_advance` caps one move of a cursor, so that each stream record stays digestible. The first page
    of a look-ahead is sized to cost a read unit or two; later ones grow up to `max_page`.
    """

    max_advance: int = 1_000
    max_page: int = 1_000
    first_page_bytes: int = 8_192
    usual_item_bytes: int = 1_024


@dataclass(frozen=True, slots=True)
class Reach:
    """How far an advance came, the row it left behind, and the lowest seq that waits beyond a gap.

    Not `complete` is one whose time was over: its row is marked, and a sweep goes on from there.
    """

    advance: Advance
    cursor: Cursor
    beyond: int | None
    complete: bool = True


class Unfinished(Exception):
    """Ends a walk whose time is over; never leaves this module."""


@dataclass(frozen=True, slots=True)
class Advancer:
    """Moves cursors. Safe to share by threads, and to run any number of at once, anywhere."""

    items: ItemStore
    cursors: CursorStore
    heads: HeadReader
    hints: Hints
    clock: Clock
    first_seq: int = 0
    limits: Limits = field(default_factory=Limits)

    def advance(
        self,
        queue: str,
        own: Collection[int] = (),
        hint: Hint | None = None,
        item_bytes: int = 0,
        *,
        is_over: Callable[[], bool] | None = None,
    ) -> Reach:
        """Release what can be released; `own` are seqs that the caller stored, or found stored, after `hint` was read.

        On return a read made after the last move, and after the caller stored, showed that the seq after
        the position is absent. Or else `is_over`, which is asked before each step, returned True: then the row is
        marked as waiting, after the last move and after the caller stored, and a sweep goes on from there.
        """
        walk = self.walk(queue, own, item_bytes)
        return self.go_on(walk, hint, is_over) or self.leave(walk)

    def walk(self, queue: str, own: Collection[int] = (), item_bytes: int = 0) -> Walk:
        """Return an advance that has not begun, for `go_on`."""
        return Walk(self, queue, own, item_bytes or self.limits.usual_item_bytes)

    def go_on(self, walk: Walk, hint: Hint | None, is_over: Callable[[], bool] | None = None) -> Reach | None:
        """Begin an advance, or go on with one that failed or was stopped; None if `is_over` stopped it now."""
        walk.is_over = is_over
        try:
            return self._remembered(walk, walk.run(hint))
        except Unfinished:
            return None
        except CursorLost:
            self.hints.forget(walk.queue)
            raise

    def leave(self, walk: Walk) -> Reach:
        """Mark the row of an advance that was stopped, so that a sweep goes on with it."""
        try:
            return self._remembered(walk, walk.leave())
        except CursorLost:
            self.hints.forget(walk.queue)
            raise

    def _remembered(self, walk: Walk, reach: Reach) -> Reach:
        if walk.exists:
            self.hints.remember(walk.queue, Hint(reach.cursor, reach.beyond))
        return reach


class Walk:
    """One advance under way."""

    def __init__(self, service: Advancer, queue: str, own: Collection[int], item_bytes: int) -> None:
        self._service = service
        self._limits = service.limits
        self._first_page = max(2, min(64, self._limits.first_page_bytes // item_bytes))
        self._page = self._first_page
        self._own = own if isinstance(own, set | frozenset) else frozenset(own)
        # Those of `own` that are known to be stored still, and the count of withdrawals from before they were.
        self._filled: Collection[int] = ()
        self._withdrawals: int | None = None
        self._start: int | None = None
        self._released = 0
        self._beyond: int | None = None
        # What was known to wait may have been withdrawn: only a look tells what does.
        self._must_look = False
        self._row_was_read = False
        self.queue = queue
        self.exists = False
        self.moves = 0
        self.is_over: Callable[[], bool] | None = None
        self.cursor = Cursor(queue, service.first_seq - 1, service.first_seq)

    def run(self, hint: Hint | None) -> Reach:
        """Walk from the hint, or from the row, to the end of the run; Unfinished when the time is over."""
        fresh = hint is None
        self._set_out(hint)
        while True:
            if not self.exists:
                if self._begin():
                    break
                fresh = True
                continue
            self._check_time()
            end = run_end(self.cursor.position, self._filled, self._limits.max_advance)
            if end == self.cursor.position and not fresh:
                if not self._peek() and not self._must_look:
                    break
                fresh = True
                continue
            if end == self.cursor.position or end + 1 == self._beyond:
                end = self._look_ahead(end)
            if end == self.cursor.position:
                break
            self._move(end)
            # What follows a batch of ours is mostly absent: asking for that one slot is the cheapest way to
            # see it. Behind a single message the rest of a run is likely, and a look shows all of it.
            fresh = len(self._own) <= 1
        return self._arrive()

    def _check_time(self) -> None:
        if self.is_over is not None and self.is_over():
            raise Unfinished

    def leave(self) -> Reach:
        """Mark the row where it stands now, whatever there is to release: a sweep looks.

        A mark that is there already is relied on only if the row was read after the caller stored: a sweep that puts
        it in doubt later reads ahead after that, and finds what is stored.
        """
        if not self._row_was_read and not self._read_row():
            raise CursorLost(self.queue, known_position=self.cursor.position)
        while not self.cursor.is_marked:
            if not self._set_mark() and not self._read_row():
                raise CursorLost(self.queue, known_position=self.cursor.position)
        return self._reach(self.cursor.position, None, complete=False)

    def _begin(self) -> bool:
        """Create the row of a queue that has none, unless it was lost; True when there is nothing to do."""
        position = self.cursor.position
        look = look_for_proof(self._service.items, self.queue)
        if look.more and not look.cursor_seen and look.slots[-1].stop - 1 <= position:
            # All of these were written past us and lie before the start: what can be released comes behind them.
            look = self._service.items.look(self.queue, position, self._first_page)
        if look.cursor_seen:
            # Whoever filled that slot saw a row, and rows are never deleted by us.
            if self._read_row():
                return False
            raise CursorLost(self.queue)
        filled = sorted([*look.slots, *(range(seq, seq + 1) for seq in self._filled)], key=lambda seqs: seqs.start)
        end = run_through(position, filled, self._limits.max_advance)
        self._note_beyond(end, look)
        if end == position and self._beyond is None:
            return True
        now = self._service.clock()
        waiting_since = now if self._beyond is not None else None
        row = Cursor(self.queue, end, self.cursor.first_seq, waiting_since=waiting_since, moved_at=now)
        self._settle(self._service.cursors.create(row), end)
        return False

    def _peek(self) -> bool:
        """Check a remembered position against the tables; False when the seq after it is absent.

        The row must be read too: with an old hint, the seq after it may have been released and trimmed.
        """
        remembered = self.cursor.position
        head = self._service.heads.peek(self.queue, remembered + 1)
        if head.cursor is None:
            raise CursorLost(self.queue, known_position=remembered)
        self._stand_on(head.cursor)
        return head.taken or head.cursor.position != remembered

    def _look_ahead(self, after: int) -> int:
        """Return the end of the run that goes on after `after`, within the cap on one move."""
        end = after
        while (room := self._limits.max_advance - (end - self.cursor.position)) > 0:
            look = self._service.items.look(self.queue, end, min(self._page, room))
            end = run_through(end, look.slots, room)
            self._note_beyond(end, look)
            if not look.more or self._beyond is not None:
                break
            self._page = min(self._page * 4, self._limits.max_page)
        return end

    def _note_beyond(self, end: int, look: Look) -> None:
        self._beyond = next((seqs.start for seqs in look.slots if seqs.start > end), None)
        self._must_look = False

    def _move(self, end: int) -> None:
        cursor = self.cursor
        move = self._service.cursors.move(cursor, end, self._service.clock())
        if move is None:
            raise CursorLost(self.queue, known_position=cursor.position)
        self._settle(move, end)

    def _settle(self, move: Move, end: int) -> None:
        """Go on from the row as it stands.

        Also after a lost condition: the SDK retries a write whose reply was lost, and that fails on itself.
        """
        if move.won:
            start = self.cursor.position
            self._start = start if self._start is None else self._start
            self._released += end - start
            self.moves += 1
        self._stand_on(move.cursor)

    def _read_row(self) -> bool:
        row = self._service.cursors.get(self.queue)
        if row is not None:
            self._stand_on(row)
        return row is not None

    def _stand_on(self, row: Cursor) -> None:
        if row.withdrawals != self.cursor.withdrawals:
            self._must_look = self._must_look or self._beyond is not None
            self._beyond = None
        self.cursor = row
        self.exists = True
        self._row_was_read = True
        if row.withdrawals != self._withdrawals:
            self._forget_filled()

    def _set_out(self, hint: Hint | None) -> None:
        """Stand on the row of the hint, or read it; CursorLost if it is gone since an earlier run of this walk."""
        self._note_withdrawals(hint)
        if hint is None:
            if not self._read_row() and self.exists:
                raise CursorLost(self.queue, known_position=self.cursor.position)
        elif hint.cursor is not None:
            self._stand_on(hint.cursor)
            self._row_was_read = False
            self._beyond, self._must_look = hint.beyond, False

    def _note_withdrawals(self, hint: Hint | None) -> None:
        """Note the count from before `own` was stored: that of the hint with which the walk first began."""
        if self._withdrawals is None:
            row = None if hint is None else hint.cursor
            self._withdrawals = 0 if row is None else row.withdrawals
            self._filled = () if hint is None else self._own

    def _forget_filled(self) -> None:
        """Somebody withdrew a message after ours were stored: it may be one of them."""
        self._filled = ()

    def _arrive(self) -> Reach:
        position, waits = self.cursor.position, self._waits()
        if waits:
            self._mark_waiting(max(waits))
        return self._reach(position, min(waits, default=None))

    def _waits(self) -> list[int]:
        """Return the seqs known to be stored beyond the position."""
        position = self.cursor.position
        waits = [seq for seq in self._own if seq > position]
        if self._beyond is not None and self._beyond > position:
            waits.append(self._beyond)
        return waits

    def _reach(self, position: int, beyond: int | None, *, complete: bool = True) -> Reach:
        old = position if self._start is None else self._start
        return Reach(Advance(self.queue, old, position, self._released), self.cursor, beyond, complete)

    def _mark_waiting(self, last: int) -> None:
        """Leave a hint for the sweep, unless all up to `last` is released by now.

        If it is refused, somebody moved the cursor, perhaps with no look at what waits: try where it stands now.
        """
        while not self.cursor.is_marked and self.cursor.position < last:
            if not self._set_mark() and not self._read_row():
                return

    def _set_mark(self) -> bool:
        """Mark the row as waiting from now on; False if it is not as it was last seen."""
        since = self.cursor.next_mark(self._service.clock())
        if not self._service.cursors.set_waiting(self.cursor, since):
            return False
        self.cursor = replace(self.cursor, waiting_since=since)
        return True
