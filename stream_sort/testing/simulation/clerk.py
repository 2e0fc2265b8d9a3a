"""The handlers of a simulation: one that fails as its seed says, and one that wraps a user's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.consume.handler import call_handler
from stream_sort.errors import PartlyDone, TryLater
from stream_sort.model.batch import Effect
from stream_sort.testing.simulation.consumer_operations import Handled

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.model.batch import Batch


class Trouble(Exception):
    """What a simulated handler raises."""


class ProcessDied(Exception):
    """A handler ended its process: nothing of the services runs on."""


@dataclass(slots=True)
class Clerk:
    """A handler whose every message has one effect.

    `poison` tells how often each message still fails, `deadly` how often it still kills its process, `outages` how
    often what it needs is out of order.
    """

    rng: Random
    transactional: bool
    poison: dict[tuple[str, str, int], float] = field(default_factory=dict)
    deadly: dict[tuple[str, str, int], float] = field(default_factory=dict)
    outages: dict[tuple[str, str, int], float] = field(default_factory=dict)

    def deliver(self, consumer: str, batch: Batch) -> Handled:
        """Do a batch, as far as it goes."""
        stop = self.rng.choice(batch.seqs) if self.rng.random() < 0.1 else None  # noqa: PLR2004  # now and then
        done = None
        for seq in batch.seqs:
            key = (consumer, batch.queue, seq)
            if self.deadly.get(key, 0) > 0:
                self.deadly[key] -= 1
                raise ProcessDied(f"of {key}")
            if self.outages.get(key, 0) > 0:
                self.outages[key] -= 1
                return Handled(error=_outage(done, key), effects=tuple(batch.transaction.effects))
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


def _outage(done: int | None, key: tuple[str, str, int]) -> Exception:
    """What a handler says when it met an outage at a message: how far it got, if it got anywhere."""
    outage = TryLater(f"outage at {key}")
    if done is None:
        return outage
    partly = PartlyDone(done)
    partly.__cause__ = outage
    return partly


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

    def deliver(self, consumer: str, batch: Batch) -> Handled:
        """Call it; each consumer of a seed writes to tables of its own, as different handlers would."""
        verdict = call_handler(self.handler, batch)
        effects = batch.transaction.effects
        # What is no effect at all has become an error of the verdict.
        named = [effect for effect in effects if isinstance(effect, Effect)]
        effects[:] = [replace(effect, table=f"{effect.table} of {consumer}") for effect in named]
        if verdict.error is not None:
            return Handled(error=verdict.error, effects=tuple(effects))
        self.calls += 1
        self.calls_with_effects += bool(effects)
        return Handled(None if verdict.done == batch.through else verdict.done, effects=tuple(effects))


def done_through(batch: Batch, handled: Handled) -> int:
    """How far a handler got, by its own word."""
    if isinstance(handled.error, PartlyDone):
        return handled.error.last_done
    if handled.error is not None:
        return batch.after
    is_seq = isinstance(handled.answer, int) and not isinstance(handled.answer, bool)
    return int(handled.answer) if is_seq else batch.through
