"""What becomes of a message that failed: its queue is parked, or it is set aside, as the terms say."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from traceback import clear_frames
from typing import TYPE_CHECKING, Any

from stream_sort.errors import Trimmed
from stream_sort.model.consumption import DeadLetter, Outcome
from stream_sort.model.retries import TRIES_IN_PLACE, attempts_before, is_blameless, parked_by, parked_in_outage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.consume.session import Session
    from stream_sort.errors import StreamSortError
    from stream_sort.model.chunks import ChunkSize
    from stream_sort.model.consumption import Checkpoint, Parked

# An exception is kept until the run is logged; what its frames held, such as a batch, is not.
MOST_CAUSES = 20


class Parking:
    """Counts the attempts at a message; `afresh` forgets those before, once."""

    def __init__(self, context: ConsumerContext, session: Session, chunk: ChunkSize, *, afresh: bool) -> None:
        self._context = context
        self._terms = context.terms
        self._session = session
        self._chunk = chunk
        self._afresh = afresh
        # How often the message at fault failed by itself in this run.
        self.tries = 0
        self._sends_wakes = True

    @contextmanager
    def without_wakes(self) -> Iterator[None]:
        """Leave it to the sweep to wake what is parked within: to send a wake may take seconds."""
        self._sends_wakes = False
        try:
            yield
        finally:
            self._sends_wakes = True

    def attempts(self, row: Checkpoint, seq: int) -> int:
        """Count how often the handler was given a message by itself so far, and failed."""
        return self._before(row, seq) + self.tries

    def tries_in_place(self, row: Checkpoint, seq: int, limit: float) -> bool:
        """Return True if a message that failed is tried again at once: only if it never failed before this run."""
        return self._before(row, seq) == 0 and self.tries < min(TRIES_IN_PLACE, limit)

    def park(self, error: Exception, seq: int, limit: float) -> None:
        """Set the queue aside, or the message after its last attempt.

        What is the fault of no message is no attempt at one, and is tried again for ever.
        """
        row, now = self._session.standing_row(), self._context.clock()
        attempts = self.attempts(row, seq)
        if is_blameless(error):
            self._set_aside(parked_in_outage(row, seq, error, attempts, now), failure=error)
            return
        parked = parked_by(row, seq, error, attempts, now)
        if attempts >= limit:
            self.give_up(parked, error)
        else:
            self._set_aside(parked, failure=error)

    def give_up(self, parked: Parked, failure: Exception | None = None) -> None:
        """End the attempts at a message; `failure` is what the handler raised, unless the process died of it."""
        if not self._terms.dead_letters:
            self._set_aside(replace(parked, next_try=None), failure=failure)
            return
        now = self._context.clock()
        causes = self._session.served.causes
        if failure is not None and len(causes) < MOST_CAUSES:
            causes[parked.seq] = _without_locals(failure)
        self._record(parked.seq, dead=DeadLetter(parked.queue, parked.seq, parked.error, parked.attempts, now))
        self._chunk.reset()

    def park_damaged(self, error: StreamSortError) -> None:
        """Park a queue with a hole, an unreadable row or no cursor; try it again for ever: only a repair gets it past.

        Where the consumer's own row cannot be read nothing can be noted: the sweep names the queue until it can be.
        """
        row = self._recorded_row()
        if row is None:
            self._session.end(Outcome.FAILED, error)
        elif not self._session.must_wait():
            # How long it waits follows from how long it has been damaged, not from how long its message failed before.
            known = row if row.parked is not None and row.parked.damaged else replace(row, parked=None)
            # What is trimmed is given up from its beginning on; a message that failed before is known by its own seq.
            seq = row.seq + 1 if isinstance(error, Trimmed) else _first_due(row)
            parked = parked_in_outage(known, seq, error, self.attempts(row, seq), self._context.clock())
            self._set_aside(replace(parked, damaged=True), error)

    def park_for_bug(self, error: StreamSortError) -> None:
        """Park a queue in which a bug of ours came up. It is no attempt at a message, and is tried again for ever."""
        row = self._recorded_row()
        if row is None:
            self._session.end(Outcome.FAILED, error)
            return
        seq = _first_due(row)
        self._set_aside(parked_in_outage(row, seq, error, self.attempts(row, seq), self._context.clock()), error)

    def _recorded_row(self) -> Checkpoint | None:
        """Return the row if it was read or made; one that says where to begin must not replace somebody's."""
        return self._session.row if self._session.is_stored else None

    def _before(self, row: Checkpoint, seq: int) -> int:
        """Count how often a message failed by itself before this run."""
        return 0 if self._afresh else attempts_before(row, seq)

    def _set_aside(self, parked: Parked, error: Exception | None = None, *, failure: Exception | None = None) -> None:
        """Park the queue; `error` is what the run then ends with, if it is not the handler's, which is `failure`."""
        session = self._session
        if not self._record(session.standing_row().seq, parked=parked):
            return
        served = session.served
        served.parked, served.error, served.failure = parked, error, failure
        if parked.next_try is not None and self._sends_wakes:
            with suppress(Exception):
                # Whatever a waker of the user's raises: it is recorded as parked, and the sweep wakes it in time.
                self._context.waker.wake(parked.queue, parked.next_try - self._context.clock())
        session.end(Outcome.PARKED)

    def _record(self, seq: int, *, dead: DeadLetter | None = None, parked: Parked | None = None) -> bool:
        """Commit what became of a message; False if somebody else got on instead.

        The tries of this run are in the row then, or count no more, whatever fails later. Who cannot record them keeps
        them.
        """
        is_recorded = self._session.commit(seq, dead=dead, parked=parked)
        self.tries, self._afresh = 0, False
        return is_recorded


def _first_due(row: Checkpoint) -> int:
    """Return the seq of the first message that is due, as far as is known: there may be tombstones before it."""
    return row.seq + 1 if row.parked is None else row.parked.seq


def _without_locals(failure: Exception) -> Exception:
    """Let go of what the frames of an error, and of those before it, hold; where it was raised stays known."""
    error: Any = failure
    seen: list[BaseException] = []
    while error is not None and not any(error is one for one in seen):
        seen.append(error)
        clear_frames(_kept(error, "__traceback__"))
        cause = _kept(error, "__cause__")
        error = _kept(error, "__context__") if cause is None else cause
    return failure


def _kept(error: BaseException, name: str) -> Any:
    """Return what Python keeps of an error, whatever its class makes of that."""
    return BaseException.__dict__[name].__get__(error)
