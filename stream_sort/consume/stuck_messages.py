"""Service: messages that one consumer cannot get past: dead ones are tried again, dead and parked ones discarded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.consume.context import hole
from stream_sort.consume.handler import call_handler
from stream_sort.errors import (
    CheckpointConflict,
    EffectRefused,
    InvalidInput,
    NotParked,
    QueueDamaged,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
    TransactionTooLarge,
    TryLater,
)
from stream_sort.model.batch import Batch
from stream_sort.model.consumption import DeadLetter
from stream_sort.model.message import check_queue, is_text
from stream_sort.model.retries import is_blameless, last_error, text_of, under_way

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import Checkpoint, Parked

MAX_REASON = 256


@dataclass(frozen=True, slots=True)
class StuckMessages:
    """The dead letters of a consumer, and what it is parked at; each is changed only if nobody else changed it."""

    context: ConsumerContext

    def all_parked(self) -> list[Parked]:
        """List the queues that are parked; the next to be tried first."""
        name, read = self.context.terms.name, self.context.checkpoints.parked
        page = read(name)
        found = list(page.parked)
        while page.next is not None:
            page = read(name, None, page.next)
            found += page.parked
        return found

    def all_dead(self) -> list[DeadLetter]:
        """List the messages that are dead; the oldest first."""
        name, read = self.context.terms.name, self.context.dead_letters.listed
        page = read(name)
        found = list(page.dead)
        while page.next is not None:
            page = read(name, page.next)
            found += page.dead
        return found

    def of(self, queue: str, seq: int | None = None) -> list[Parked | DeadLetter]:
        """List what is dead or parked in one queue, or at one seq of it; lowest seq first."""
        row = self.context.checkpoints.standing(self.context.terms.name, queue).checkpoint
        parked = [row.parked] if row is not None and row.parked is not None else []
        return [*self._dead(queue, seq), *(one for one in parked if seq in {None, one.seq})]

    def redrive(self, dead: DeadLetter, on_failure: Callable[[Exception], None] = lambda _: None) -> bool:
        """Try a message again; return True if it is dead no longer. `on_failure` gets what the handler raises.

        The attempt is noted before the handler is called: a process that dies of the message is counted, too. What is
        no fault of the message is no attempt, and the note is taken back; should that fail, too, it is counted.
        """
        batch = self._batch(dead)
        error_before, run = last_error(dead.error), self.context.new_run()
        noted = replace(dead, attempts=dead.attempts + 1, error=under_way(error_before), run=run)
        try:
            self._settle(dead, noted)
            error = self._try(noted, batch)
            if error is not None and is_blameless(error):
                self._settle(noted, replace(dead, error=text_of(error), run=None))
        except (StoreUnavailable, StoreMisconfigured):
            with suppress(StreamSortError):
                self._settle(noted, dead)
            raise
        if error is not None:
            on_failure(error)
        if error is not None and not is_blameless(error):
            # Whether or not it can be recorded: the message was tried, and the note says so.
            self._settle(noted, replace(noted, error=text_of(error), run=None))
        return error is None

    def _dead(self, queue: str, seq: int | None) -> list[DeadLetter]:
        dead = self.context.dead_letters.of_queue(self.context.terms.name, queue)
        return [one for one in dead if seq in {None, one.seq}]

    def _try(self, noted: DeadLetter, batch: Batch) -> Exception | None:
        """Call the handler, and commit what it did; return what kept it from that."""
        answer = call_handler(self.context.handler, batch)
        if answer.error is None:
            try:
                self._settle(noted, None, answer.effects)
            except (EffectRefused, TransactionTooLarge, TryLater) as refused:
                return refused
        return answer.error

    def _settle(self, old: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> None:
        """Put `new` in the place of a dead letter; CheckpointConflict if somebody else changed it."""
        if not self.context.dead_letters.settle(self.context.terms.name, old, new, effects):
            raise CheckpointConflict(self.context.terms.name, old.queue)

    def _batch(self, dead: DeadLetter) -> Batch:
        queue, seq = dead.queue, dead.seq
        slot = self.context.queues.items.holding(queue, seq)
        if slot is None:
            raise self._missing(dead)
        return Batch(queue, seq - 1, seq, (slot.at(seq).document,), (seq,), dead.attempts + 1)

    def _missing(self, dead: DeadLetter) -> StreamSortError:
        """Name why a dead letter has no message: another run redrove it, and then it was trimmed; or it is a loss."""
        name, queue, seq = self.context.terms.name, dead.queue, dead.seq
        if dead not in self._dead(queue, seq):
            return CheckpointConflict(name, queue)
        return hole(queue, range(seq, seq + 1), self.context.checkpoints.standing(name, queue).cursor)

    def discard(self, queue: str, seq: int, reason: str) -> None:
        """Give up for good on a message that is dead, or on the one a queue is parked at. See `Consumer.discard`."""
        if not isinstance(reason, str) or not reason or not is_text(reason) or len(reason.encode()) > MAX_REASON:
            raise InvalidInput(f"a reason is text of 1 to {MAX_REASON} bytes")
        name = self.context.terms.name
        row = self.context.checkpoints.standing(name, check_queue(queue)).checkpoint
        dead = self._dead(queue, seq)
        parked = row.parked if row is not None and row.parked is not None and row.parked.seq == seq else None
        # After a reset it may be both; what passes a parked message over takes the place of its dead letter.
        if row is not None and parked is not None and not (dead and (parked.damaged or seq <= row.seq)):
            self._pass_over(row, parked, reason)
        elif dead:
            self._settle(dead[0], replace(dead[0], discarded=reason))
        else:
            raise NotParked(name, queue, seq)

    def _pass_over(self, row: Checkpoint, parked: Parked, reason: str) -> None:
        """Set the checkpoint behind a parked message, which becomes a discarded dead letter; wake the consumer."""
        last, name, now = self._last_given_up(parked), row.consumer, self.context.clock()
        if last <= row.seq:
            raise InvalidInput(
                f"consumer {name!r}, queue {row.queue!r}: seq {last} is done, the checkpoint is {row.seq}; "
                f"nothing was discarded. redrive({row.queue!r}) lets the queue go on"
            )
        new = row.moved(last, self.context.new_run(), now)
        dead = DeadLetter(row.queue, parked.seq, parked.error, parked.attempts, now, discarded=reason)
        if not self.context.checkpoints.commit(row, new, dead=dead).put(new):
            raise CheckpointConflict(name, row.queue)
        with suppress(Exception):
            # Whatever a waker of the user's raises: the sweep finds a queue that lags and sleeps.
            self.context.waker.wake(row.queue, 0.0)

    def _last_given_up(self, parked: Parked) -> int:
        """Return the last seq that goes when a parked one is discarded: what is trimmed goes as a whole."""
        if not parked.damaged:
            return parked.seq
        name = self.context.terms.name
        there = self.context.checkpoints.standing(name, parked.queue, parked.seq)
        floor = None if there.cursor is None else there.cursor.floor
        if floor is None or parked.seq > floor or there.taken:
            raise QueueDamaged(name, parked.queue, parked.seq, parked.error)
        return floor
