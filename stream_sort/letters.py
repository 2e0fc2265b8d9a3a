"""Service: the dead letters of one consumer: each is tried again by itself, at its own place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.core.batch import Batch
from stream_sort.core.consumption import is_blameless, told
from stream_sort.desk import hole
from stream_sort.errors import CheckpointConflict, EffectRefused, TransactionTooLarge, TryLater
from stream_sort.verdict import verdict_of

if TYPE_CHECKING:
    from stream_sort.core.consumption import DeadLetter
    from stream_sort.desk import Desk
    from stream_sort.errors import StreamSortError


@dataclass(frozen=True, slots=True)
class Letters:
    """The dead letters of a consumer. Each change is on condition that nobody else made one."""

    desk: Desk

    def of(self, queue: str, seq: int | None = None) -> list[DeadLetter]:
        """Those of a queue, or the one at a seq of it; lowest seq first."""
        letters = self.desk.control.dead_letters_of(self.desk.terms.name, queue)
        return [letter for letter in letters if seq in {None, letter.seq}]

    def discarded(self, queue: str) -> list[DeadLetter]:
        """Those of a queue that were given up for good, with the reason; lowest seq first."""
        return self.desk.control.dead_letters_of(self.desk.terms.name, queue, discarded=True)

    def redrive(self, letter: DeadLetter) -> bool:
        """Try a message again; whether it is dead no longer. What is no fault of its own is no attempt."""
        control, name = self.desk.control, self.desk.terms.name
        verdict = verdict_of(self.desk.handler, self._batch(letter))
        error = verdict.error
        settled = False
        if error is None:
            try:
                settled = control.settle(name, letter, None, verdict.effects)
            except (EffectRefused, TransactionTooLarge, TryLater) as refused:
                error = refused
        if error is not None:
            attempts = letter.attempts + (not is_blameless(error))
            settled = control.settle(name, letter, replace(letter, attempts=attempts, error=told(error)))
        if not settled:
            raise CheckpointConflict(name, letter.queue)
        return error is None

    def _batch(self, letter: DeadLetter) -> Batch:
        queue, seq = letter.queue, letter.seq
        items = self.desk.sorter.stores.items.page(queue, seq - 1, seq, 1).items
        if not items:
            raise self._missing(letter)
        return Batch(queue, seq - 1, seq, (items[0].document,), (seq,), letter.attempts + 1)

    def _missing(self, letter: DeadLetter) -> StreamSortError:
        """Name why a dead letter has no message: another run redrove it, and then it was trimmed; or it is a loss."""
        name, queue, seq = self.desk.terms.name, letter.queue, letter.seq
        if letter not in self.of(queue, seq):
            return CheckpointConflict(name, queue)
        return hole(queue, range(seq, seq + 1), self.desk.control.standing(name, queue).cursor)
