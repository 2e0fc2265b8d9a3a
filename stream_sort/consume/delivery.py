"""Service: one queue on its way to one consumer. Delivers (checkpoint, position] chunk by chunk, parks what fails.

The tables say what is due, nothing else: a wake only says where to look.
"""

from __future__ import annotations

import math
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from stream_sort.consume.context import hole
from stream_sort.consume.crash_guard import CrashGuard
from stream_sort.consume.handler import call_handler
from stream_sort.consume.parking import Parking
from stream_sort.consume.session import Session
from stream_sort.errors import (
    CursorLost,
    EffectRefused,
    HandlerProblem,
    MissingItems,
    PartlyDone,
    RowDamaged,
    StoreUnavailable,
    StreamSortError,
    TransactionTooLarge,
    Trimmed,
    TryLater,
    named_error,
)
from stream_sort.model.batch import Batch
from stream_sort.model.chunks import ChunkSize
from stream_sort.model.consumption import Served, is_blameless
from stream_sort.model.ordering import run_through
from stream_sort.model.precaution import Shift, ended, is_in_hand
from stream_sort.model.slots import expand
from stream_sort.ports.time_limit import time_limit
from stream_sort.release.slot_reads import read_slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.consumption import Checkpoint, Wake
    from stream_sort.model.slots import Entry

# How many steps of an advance, each a read or a move of up to a thousand seqs, one turn makes.
STEPS_A_TURN = 20


class Delivery:
    """One queue under way: `turn` after `turn` until there is nothing left to do.

    `persists` goes on from where another run left it, `forced` although the queue is parked; `afresh` forgets the
    attempts before.
    """

    def __init__(  # noqa: PLR0913  # each is a keyword with a default
        self,
        context: ConsumerContext,
        wake: Wake,
        shift: Shift | None = None,
        *,
        persists: bool = False,
        forced: bool = False,
        afresh: bool = False,
    ) -> None:
        self._context = context
        self._wake = wake
        # Whether its records come again if it fails: what is asked for by hand has none.
        self.comes_again = not persists
        self._chunk = ChunkSize(context.terms.batch_size)
        self._session = Session(context, wake.queue, persists=persists, forced=forced)
        self._parking = Parking(context, self._session, self._chunk, afresh=afresh)
        self._guard = CrashGuard(context, self._session, shift or Shift(), afresh=afresh)

    @property
    def served(self) -> Served:
        """What came of it."""
        return self._session.served

    @property
    def is_unrecorded(self) -> bool:
        """Whether a failure of the handler is not recorded, or a note may stand that only a death should leave."""
        return self._has_failed or self._guard.may_stand

    @property
    def tries_again(self) -> bool:
        """Whether the next turn repeats what just failed."""
        return self._parking.tries > 0

    def turn(self) -> bool:
        """Do one piece of work, one chunk at most; False when nothing is left to do now."""
        try:
            return self._work()
        except Exception as error:  # noqa: BLE001  # a bug of ours must not stop the other queues
            return self._recover(error)

    def hand_over(self) -> None:
        """Leave the rest to a new wake.

        A queue in trouble is parked instead: the new run would spend its time on the same trouble, and so for ever.
        """
        try:
            if self._session.trouble is not None:
                self._parking.park(*self._session.trouble)
            if self._session.goes_on:
                self._context.waker.wake(self._wake.queue, 0.0)
                self._session.end("handed over")
        except Exception as error:  # noqa: BLE001  # as above
            self.stop(error)

    def give_back(self, *, records: bool) -> bool:
        """End the run for want of time to hand it over, so that its records come again; whether no trouble is left.

        A queue in trouble is parked all the same, unless it is known that nothing `records` it now; the sweep wakes it.
        """
        with suppress(Exception), time_limit(lambda: 0.0), self._parking.without_wakes():
            if records and self._session.trouble is not None:
                self._parking.park(*self._session.trouble)
        if self._session.goes_on:
            self.stop(StoreUnavailable(f"no time to hand over queue {self._wake.queue!r}; its records come again"))
        return self._session.trouble is None

    def stop(self, error: Exception) -> bool:
        """End the run with an error that could not be recorded in the tables; always False."""
        return self._session.end("failed", named_error(self._wake.queue, error))

    def record(self) -> None:
        """Record what could not be recorded when the run ended; raises if that fails again."""
        with time_limit(lambda: 0.0):
            if self._has_failed:
                self._record_failure()
            else:
                self._guard.take_back()

    def retell(self) -> None:
        """What came of it so far is told: `served` is what comes of it from here on."""
        self._session.served = Served(self._wake.queue)

    def abandon(self, error: Exception) -> None:
        """End the run for an error that is not this queue's; what its handler did so far is recorded."""
        with suppress(Exception), time_limit(lambda: 0.0):
            self._note_trouble()
        if self._session.goes_on:
            self.stop(error)

    def _recover(self, error: Exception) -> bool:
        """Record what ended the work, so that it holds up this queue alone; whether the run goes on."""
        try:
            if isinstance(error, MissingItems | CursorLost | Trimmed | RowDamaged):
                return self._parking.park_damaged(error)
            if not isinstance(error, StreamSortError):
                return self._parking.park_for_bug(named_error(self._wake.queue, error))
            # The store failed just now: one more try, and the other queues have their turns.
            with time_limit(lambda: 0.0):
                if self._note_trouble():
                    return self._session.goes_on
                if self._session.finds_its_write():
                    return self._start_over()
        except Exception as failure:  # noqa: BLE001  # as above
            return self.stop(failure)
        return self.stop(error)

    def _note_trouble(self) -> bool:
        """Record a failure of the handler: it counts, whatever failed since. Without one, nobody died: say so."""
        if self._has_failed:
            self._record_failure()
            return True
        with suppress(StreamSortError):
            self._guard.take_back()
        return False

    @property
    def _has_failed(self) -> bool:
        """Whether the handler failed with a message by itself, and that is not recorded."""
        return self._parking.tries > 0 and self._session.trouble is not None

    def _record_failure(self) -> None:
        if self._session.trouble is not None:
            self._parking.park(*self._session.trouble)

    def _work(self) -> bool:
        # Arriving is no work by itself: a run whose time is short from the start must get on, too.
        if self._session.row is None and not self._arrive():
            return False
        if self._session.position <= self._session.standing_row().seq:
            return self._look_past()
        return self._deliver(self._session.standing_row()) if self._session.begin() else self._session.goes_on

    def _arrive(self) -> bool:
        hint, session = self._wake.position, self._session
        standing = session.look(None if hint is None else hint + 1)
        if standing.cursor is None:
            return False
        if session.is_waiting():
            return session.end("waiting")
        row = session.standing_row()
        if row.parked is not None:
            self._chunk.focus(row.seq, row.parked.seq)
        if session.position <= row.seq and session.position == hint:
            return self._go_past(taken=bool(standing.taken))
        return True

    def _look_past(self) -> bool:
        """Read again after the last commit: whoever lost a commit to us relies on this."""
        seen = self._session.position
        standing = self._session.look(seen + 1)
        if self._session.is_waiting():
            return self._session.end("waiting")
        return self._session.position != seen or self._go_past(taken=bool(standing.taken))

    def _go_past(self, *, taken: bool) -> bool:
        """Advance if something stands behind the position: its writer may have died."""
        if not taken:
            return self._rest(self._session.standing_row())
        before, steps = self._session.position, count()
        # A piece of a long backlog at a time: the other queues have their turns, and the run its time.
        reach = self._context.queues.reach(self._wake.queue, is_over=lambda: next(steps) >= STEPS_A_TURN)
        self._session.see(reach.cursor)
        return self._session.position > before

    def _rest(self, row: Checkpoint) -> bool:
        """Nothing is due. A queue that was parked for a lost cursor is so no longer; then look again, as ever."""
        return row.parked is not None and (self._session.commit(row.seq) or self._session.goes_on)

    def _deliver(self, row: Checkpoint) -> bool:
        if row.parked is not None and self._guard.was_the_last(row):
            # A forced run, too, waits until the process of the last attempt is certainly dead.
            if is_in_hand(row.parked, self._context.clock()):
                return self._session.end("waiting")
            return self._parking.give_up(ended(row.parked))
        self._guard.heed(row, self._chunk)
        chunk = self._read(row)
        if not chunk:
            return self._start_over()
        through = chunk[-1].seq
        messages = [entry for entry in chunk if not entry.is_tombstone]
        if not messages:
            # What failed behind them keeps its attempts.
            is_behind = row.parked is not None and row.parked.seq > through
            self._session.commit(through, parked=row.parked if is_behind else None)
            return self._session.goes_on
        seqs = tuple(entry.seq for entry in messages)
        attempts = self._parking.attempts(row, seqs[0])
        if not self._guard.take(row, chunk[0], seqs, attempts):
            return self._start_over()
        documents = tuple(entry.document for entry in messages)
        attempt = attempts + 1 if len(seqs) == 1 else 1
        replayed = row.is_replay(through)
        return self._settle(Batch(row.queue, row.seq, through, documents, seqs, attempt, replayed=replayed))

    def _read(self, row: Checkpoint) -> Sequence[Entry]:
        """Return the next chunk, whole: a hole in a released range is never passed over. Empty if overtaken.

        It has messages that the consumer has had before a reset, or others, never both.
        """
        after, position, border = row.seq, self._session.position, row.border()
        if border is not None:
            position = min(position, border)
        slots = read_slots(self._context.queues.items, self._wake.queue, after, position, self._chunk.size).slots
        end = min(run_through(after, [slot.seqs for slot in slots]), position, after + self._chunk.size)
        if end == after:
            self._check_hole(row, range(after + 1, slots[0].first if slots else position + 1))
        return list(expand(slots, after, end))

    def _check_hole(self, row: Checkpoint, missing: range) -> None:
        """Raise what is wrong where items are missing, unless another run moved on since the checkpoint was read.

        Then they may have been delivered, and trimmed, meanwhile. While the checkpoint stands nobody may trim them.
        What was trimmed before a reset went back to it, the consumer has had: it begins behind that.
        """
        queue = self._wake.queue
        standing = self._context.checkpoints.standing(row.consumer, queue)
        there, cursor = standing.checkpoint, standing.cursor
        if there is None or not there.is_write_of(row):
            self._session.give_way(there)
        elif cursor is not None and missing.start <= cursor.start and row.has_had(missing.start):
            # A chunk ends where what it has had does: all that is missing is alike.
            self._session.commit(min(cursor.start, missing.stop - 1))
        else:
            raise hole(queue, missing, cursor)

    def _settle(self, batch: Batch) -> bool:
        """Call the handler, commit what it did, and see to what it did not do."""
        verdict = call_handler(self._context.handler, batch)
        if batch.after < verdict.done < batch.through and verdict.effects:
            # Which effects belong to the finished part is not known: deliver that part again, by itself.
            self._chunk.size = verdict.done - batch.after
            known = HandlerProblem(f"the handler did a batch up to seq {verdict.done}; that part is to come by itself")
            self._session.trouble = verdict.error or known, batch.seqs[0], math.inf
            return True
        error, done = verdict.error, verdict.done
        if done > batch.after:
            try:
                if not self._session.commit(done, verdict.effects, delivered=sum(seq <= done for seq in batch.seqs)):
                    return self._start_over()
                self._parking.tries = 0
                self._chunk.grow(done)
            except (EffectRefused, TransactionTooLarge, TryLater) as refused:
                error, done = refused, batch.after
        if error is None:
            return True
        return self._fail(error, [seq for seq in batch.seqs if seq > done], alone=len(batch) == 1)

    def _start_over(self) -> bool:
        """Somebody else got on. Who persists goes on from there: tries of what may be done now count no more."""
        self._parking.tries = 0
        return self._session.goes_on

    def _fail(self, error: Exception, undone: Sequence[int], *, alone: bool) -> bool:
        """Find the message at fault by smaller and smaller chunks; try it again in place; then park.

        Only a message by itself is at fault for certain, and only that counts as an attempt. Where none is at fault,
        there is none to be found.
        """
        row, seq = self._session.standing_row(), undone[0]
        limit = self._context.terms.max_attempts if alone else math.inf
        self._session.trouble = error, seq, limit
        if not alone and isinstance(error, TransactionTooLarge):
            self._chunk.limit(undone)
            return True
        self.served.handler_failures += 1
        if is_blameless(error):
            return self._parking.park(error, seq, limit)
        if not alone and len(undone) > 1 and not isinstance(error, PartlyDone):
            self._chunk.halve(undone)
            return True
        self._chunk.focus(row.seq, seq)
        self._parking.tries += alone
        if not alone or self._parking.tries_in_place(row, seq, limit):
            return True
        return self._parking.park(error, seq, limit)
