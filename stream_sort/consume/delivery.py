"""Service: one queue on its way to one consumer, in three steps: `fetch` what is due, then `ack` it or let it `fail`.

What pushes batches to a handler is one driver of these steps. The rules of delivery are here, whoever drives.
"""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stream_sort.consume.batch_reader import BatchReader
from stream_sort.consume.crash_guard import CrashGuard
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
from stream_sort.model.consumption import Outcome, Served
from stream_sort.model.retries import Shift, ended, is_blameless, is_in_hand
from stream_sort.ports.time_limit import time_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import Parked, Wake


class Delivery:
    """One queue under way: a batch after the other, until `is_over`; `served` says then what came of it.

    No step raises: an error is recorded, in the tables or in `served`. `persists` goes on from where another run left
    it, `forced` although the queue is parked; `afresh` forgets the attempts before.
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
        self.queue = wake.queue
        # Whether its records come again if it fails: what is asked for by hand has none.
        self.comes_again = not persists
        self._chunk = ChunkSize(context.terms.batch_size)
        self._session = Session(context, wake.queue, persists=persists, forced=forced)
        self._reader = BatchReader(context, self._session, self._chunk, wake.position)
        self._parking = Parking(context, self._session, self._chunk, afresh=afresh)
        self._guard = CrashGuard(context, self._session, shift or Shift(), afresh=afresh)

    @property
    def served(self) -> Served:
        """Return what came of it so far."""
        return self._session.served

    @property
    def is_over(self) -> bool:
        """Return True if there is nothing left to do now."""
        return self._session.is_over

    @property
    def is_unrecorded(self) -> bool:
        """Return True if a failure of the handler is not recorded, or a note stands that only a death should leave."""
        return self._has_failed or self._guard.may_stand

    @property
    def tries_again(self) -> bool:
        """Return True if the next batch repeats what just failed."""
        return self._parking.tries > 0

    def fetch(self) -> Batch | None:
        """Do one piece of work towards the next batch that is due; return it once it may be handed out.

        What may have killed a process is noted before it is handed out. None is not the end: see `is_over`.
        """
        try:
            return self._next_batch()
        except Exception as error:  # noqa: BLE001  # a bug of ours must not stop the other queues
            self._recover(error)
            return None

    def ack(
        self, batch: Batch, through: int, effects: Sequence[Effect] = (), *, error: Exception | None = None
    ) -> None:
        """Commit a batch up to a seq, with its effects; `error` is what kept the rest, which comes again."""
        with self._recording_errors():
            if through < batch.through and effects:
                self._ask_for_part(batch, through, error)
                return
            delivered = sum(seq <= through for seq in batch.seqs)
            try:
                if not self._session.commit(through, effects, delivered=delivered):
                    self._start_over()
                    return
            except (EffectRefused, TransactionTooLarge, TryLater) as refused:
                self._fail(batch, refused, batch.after)
                return
            self._parking.tries = 0
            self._chunk.grow(through)
            if error is not None:
                self._fail(batch, error, through)

    def fail(self, batch: Batch, error: Exception) -> None:
        """Note that nothing of a batch is done: find the message at fault, try it again, park it or set it aside."""
        with self._recording_errors():
            self._fail(batch, error, batch.after)

    def hand_over(self) -> None:
        """Leave the rest to a new wake.

        A queue in trouble is parked instead: the new run would spend its time on the same trouble, and so for ever.
        """
        try:
            self._record_trouble()
            if not self.is_over:
                self._context.waker.wake(self.queue, 0.0)
                self._session.end(Outcome.HANDED_OVER)
        except Exception as error:  # noqa: BLE001  # a bug of ours must not stop the other queues
            self.stop(error)

    def give_back(self, *, records: bool) -> bool:
        """End the run for want of time to hand it over, so that its records come again; return if no trouble is left.

        A queue in trouble is parked all the same, unless it is known that nothing `records` it now; the sweep wakes it.
        """
        with suppress(Exception), time_limit(lambda: 0.0), self._parking.without_wakes():
            if records:
                self._record_trouble()
        if not self.is_over:
            self.stop(StoreUnavailable(f"no time to hand over queue {self.queue!r}; its records come again"))
        return self._session.trouble is None

    def stop(self, error: Exception) -> None:
        """End the run with an error that could not be recorded in the tables."""
        self._session.end(Outcome.FAILED, named_error(self.queue, error))

    def abandon(self, error: Exception) -> None:
        """End the run for an error that is not this queue's; what its handler did so far is recorded."""
        with suppress(Exception), time_limit(lambda: 0.0):
            self._note_failure()
        if not self.is_over:
            self.stop(error)

    def record(self) -> None:
        """Record what could not be recorded when the run ended; raises if that fails again."""
        with time_limit(lambda: 0.0):
            if self._has_failed:
                self._record_trouble()
            else:
                self._guard.take_back()

    def begin_report(self) -> None:
        """Begin a new `served`, for what comes of it from here on: what came of it so far is reported."""
        self._session.served, self._session.is_over = Served(self.queue), False

    @contextmanager
    def _recording_errors(self) -> Iterator[None]:
        """Record what ended the work within, so that it holds up this queue alone."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # as in `fetch`
            self._recover(error)

    def _recover(self, error: Exception) -> None:
        try:
            if isinstance(error, MissingItems | CursorLost | Trimmed | RowDamaged):
                self._parking.park_damaged(error)
            elif not isinstance(error, StreamSortError):
                self._parking.park_for_bug(named_error(self.queue, error))
            elif not self._gets_over_outage():
                self.stop(error)
        except Exception as failure:  # noqa: BLE001  # as above
            self.stop(failure)

    def _gets_over_outage(self) -> bool:
        """Record what is to be recorded though the store failed just now: one more try, the others have their turns."""
        with time_limit(lambda: 0.0):
            if self._note_failure():
                return True
            finds_its_write = self._session.finds_its_write()
            if finds_its_write:
                self._start_over()
            return finds_its_write

    def _note_failure(self) -> bool:
        """Record a failure of the handler: it counts, whatever failed since. Without one, nobody died: say so."""
        if self._has_failed:
            self._record_trouble()
            return True
        with suppress(StreamSortError):
            self._guard.take_back()
        return False

    @property
    def _has_failed(self) -> bool:
        """Return True if the handler failed with a message by itself, and that is not recorded."""
        return self._parking.tries > 0 and self._session.trouble is not None

    def _record_trouble(self) -> None:
        if self._session.trouble is not None:
            self._parking.park(*self._session.trouble)

    def _next_batch(self) -> Batch | None:
        if not self._reader.look() or not self._session.begin():
            return None
        row = self._session.standing_row()
        if row.parked is not None and self._guard.was_the_last(row):
            self._end_last_attempt(row.parked)
            return None
        self._guard.heed(row, self._chunk)
        chunk = self._reader.read(row)
        if not chunk:
            self._start_over()
            return None
        through = chunk[-1].seq
        messages = [entry for entry in chunk if not entry.is_tombstone]
        if not messages:
            # What failed behind them keeps its attempts.
            is_behind = row.parked is not None and row.parked.seq > through
            self._session.commit(through, parked=row.parked if is_behind else None)
            return None
        seqs = tuple(entry.seq for entry in messages)
        attempts = self._parking.attempts(row, seqs[0])
        if not self._guard.take(row, chunk[0], seqs, attempts):
            self._start_over()
            return None
        documents = tuple(entry.document for entry in messages)
        attempt = attempts + 1 if len(seqs) == 1 else 1
        return Batch(row.queue, row.seq, through, documents, seqs, attempt, replayed=row.is_replay(through))

    def _end_last_attempt(self, parked: Parked) -> None:
        """Give up a message, but not before the process of its last attempt is certainly dead, however forced."""
        if is_in_hand(parked, self._context.clock()):
            self._session.end(Outcome.WAITING)
        else:
            self._parking.give_up(ended(parked))

    def _start_over(self) -> None:
        """Forget the tries of what may be done now: somebody else got on, and who persists goes on from there."""
        self._parking.tries = 0

    def _ask_for_part(self, batch: Batch, done: int, error: Exception | None) -> None:
        """Let the finished part come again by itself: which effects belong to it is not known."""
        self._chunk.size = done - batch.after
        known = HandlerProblem(f"the handler did a batch up to seq {done}; that part is to come by itself")
        self._session.trouble = error or known, batch.seqs[0], math.inf

    def _fail(self, batch: Batch, error: Exception, done: int) -> None:
        """Find the message at fault by smaller and smaller chunks; try it again in place; then park.

        Only a message by itself is at fault for certain, and only that counts as an attempt. Where none is at fault,
        there is none to be found.
        """
        row, alone = self._session.standing_row(), len(batch) == 1
        undone = [seq for seq in batch.seqs if seq > done]
        limit = self._context.terms.max_attempts if alone else math.inf
        self._session.trouble = error, undone[0], limit
        if not alone and isinstance(error, TransactionTooLarge):
            self._chunk.limit(undone)
            return
        self.served.handler_failures += 1
        if is_blameless(error):
            self._parking.park(error, undone[0], limit)
        elif not alone and len(undone) > 1 and not isinstance(error, PartlyDone):
            self._chunk.halve(undone)
        else:
            self._chunk.focus(row.seq, undone[0])
            self._parking.tries += alone
            if alone and not self._parking.tries_in_place(row, undone[0], limit):
                self._parking.park(error, undone[0], limit)
