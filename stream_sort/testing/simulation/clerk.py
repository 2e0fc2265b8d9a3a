"""The handlers of a simulation: one that fails as its seed says, and one that wraps a user's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import PartlyDone
from stream_sort.testing.simulation.consumer_operations import Handled

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.core.batch import Batch


class Trouble(Exception):
    """What a simulated handler raises."""


@dataclass(slots=True)
class Clerk:
    """A handler whose every message has one effect. `poison` tells how often each message still fails."""

    rng: Random
    transactional: bool
    poison: dict[tuple[str, str, int], float] = field(default_factory=dict)

    def deliver(self, consumer: str, batch: Batch) -> Handled:
        """Do a batch, as far as it goes."""
        stop = self.rng.choice(batch.seqs) if self.rng.random() < 0.1 else None  # noqa: PLR2004  # now and then
        done = None
        for seq in batch.seqs:
            key = (consumer, batch.queue, seq)
            if self.poison.get(key, 0) > 0:
                self.poison[key] -= 1
                says = done is not None and self.rng.random() < 0.5  # noqa: PLR2004  # as often as not
                error = PartlyDone(done) if says and done is not None else Trouble(f"poison {key}")
                return Handled(error=error, effects=tuple(batch.transaction.effects))
            if self.transactional:
                batch.transaction.put("Effects", {"id": f"{consumer}/{batch.queue}/{seq}"})
            done = seq
            if seq == stop:
                return Handled(done, effects=tuple(batch.transaction.effects))
        return Handled(effects=tuple(batch.transaction.effects))


@dataclass(slots=True)
class OwnHandler:
    """A user's handler, called as it would be in Lambda."""

    handler: Callable[[Batch], Any]
    calls: int = 0
    calls_with_effects: int = 0

    @property
    def transactional(self) -> bool:
        """Whether it gave every batch it did an effect."""
        return 0 < self.calls == self.calls_with_effects

    def deliver(self, consumer: str, batch: Batch) -> Handled:  # noqa: ARG002  # as Clerk
        """Call it."""
        try:
            answer = self.handler(batch)
        except Exception as error:  # noqa: BLE001  # a user's handler may raise anything
            return Handled(error=error, effects=tuple(batch.transaction.effects))
        self.calls += 1
        self.calls_with_effects += bool(batch.transaction.effects)
        return Handled(answer, effects=tuple(batch.transaction.effects))


def done_through(batch: Batch, handled: Handled) -> int:
    """How far a handler got, by its own word."""
    if isinstance(handled.error, PartlyDone):
        return handled.error.last_done
    if handled.error is not None:
        return batch.after
    is_seq = isinstance(handled.answer, int) and not isinstance(handled.answer, bool)
    return int(handled.answer) if is_seq else batch.through
