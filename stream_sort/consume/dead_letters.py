"""Service: the dead letters of one consumer: each is tried again by itself, at its own place."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.consume.context import hole
from stream_sort.consume.handler import call_handler
from stream_sort.errors import (
    CheckpointConflict,
    EffectRefused,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
    TransactionTooLarge,
    TryLater,
)
from stream_sort.model.batch import Batch
from stream_sort.model.consumption import is_blameless, told
from stream_sort.model.precaution import last_error, under_way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import DeadLetter


@dataclass(frozen=True, slots=True)
class DeadLetterTries:
    """The dead letters of a consumer. Each change is on condition that nobody else made one."""

    context: ConsumerContext

    def of(self, queue: str, seq: int | None = None) -> list[DeadLetter]:
        """Those of a queue, or the one at a seq of it; lowest seq first."""
        letters = self.context.dead_letters.of_queue(self.context.terms.name, queue)
        return [letter for letter in letters if seq in {None, letter.seq}]

    def discarded(self, queue: str) -> list[DeadLetter]:
        """Those of a queue that were given up for good, with the reason; lowest seq first."""
        return self.context.dead_letters.of_queue(self.context.terms.name, queue, discarded=True)

    def redrive(self, letter: DeadLetter) -> bool:
        """Try a message again; return True if it is dead no longer.

        The attempt is noted before the handler is called: a process that dies of the message is counted, too. What is
        no fault of the message is no attempt, and the note is taken back; should that fail, too, it is counted.
        """
        batch = self._batch(letter)
        error_before, run = last_error(letter.error), self.context.new_run()
        noted = replace(letter, attempts=letter.attempts + 1, error=under_way(error_before), run=run)
        try:
            self._settle(letter, noted)
            error = self._try(noted, batch)
            if error is not None and is_blameless(error):
                self._settle(noted, replace(letter, error=told(error), run=None))
        except (StoreUnavailable, StoreMisconfigured):
            with suppress(StreamSortError):
                self._settle(noted, letter)
            raise
        if error is not None and not is_blameless(error):
            # Whether or not it can be recorded: the message was tried, and the note says so.
            self._settle(noted, replace(noted, error=told(error), run=None))
        return error is None

    def _try(self, noted: DeadLetter, batch: Batch) -> Exception | None:
        """Call the handler, and commit what it did; return what kept it from that."""
        verdict = call_handler(self.context.handler, batch)
        if verdict.error is None:
            try:
                self._settle(noted, None, verdict.effects)
            except (EffectRefused, TransactionTooLarge, TryLater) as refused:
                return refused
        return verdict.error

    def _settle(self, old: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> None:
        """Put `new` in the place of a letter; CheckpointConflict if somebody else changed it."""
        if not self.context.dead_letters.settle(self.context.terms.name, old, new, effects):
            raise CheckpointConflict(self.context.terms.name, old.queue)

    def _batch(self, letter: DeadLetter) -> Batch:
        queue, seq = letter.queue, letter.seq
        slot = self.context.queues.items.holding(queue, seq)
        if slot is None:
            raise self._missing(letter)
        return Batch(queue, seq - 1, seq, (slot.at(seq).document,), (seq,), letter.attempts + 1)

    def _missing(self, letter: DeadLetter) -> StreamSortError:
        """Name why a dead letter has no message: another run redrove it, and then it was trimmed; or it is a loss."""
        name, queue, seq = self.context.terms.name, letter.queue, letter.seq
        if letter not in self.of(queue, seq):
            return CheckpointConflict(name, queue)
        return hole(queue, range(seq, seq + 1), self.context.checkpoints.standing(name, queue).cursor)
