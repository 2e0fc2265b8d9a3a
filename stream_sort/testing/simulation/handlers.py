"""The handlers of a simulation: one that fails as its seed says, and one that wraps a user's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.consume.handler import call_handler
from stream_sort.errors import PartlyDone, TryLater
from stream_sort.model.batch import Effect
from stream_sort.testing.simulation.consumers import Handled

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.model.batch import Batch
    from stream_sort.testing.simulation.workload import ConsumptionPlan


class Trouble(Exception):
    """Raised by a simulated handler at a message that fails."""


class ProcessDied(Exception):
    """A handler ended its process: nothing of the services runs on."""


class SimulatedHandler:
    """A handler that fails as its seed's plan says; if it is transactional, every message has one effect."""

    def __init__(self, rng: Random, plan: ConsumptionPlan) -> None:
        self.transactional = plan.transactional
        self._rng = rng
        # How often each message still fails, kills its process, or meets an outage.
        self._poison, self._deadly, self._outages = dict(plan.poison), dict(plan.deadly), dict(plan.outages)

    def deliver(self, consumer: str, batch: Batch) -> Handled:
        """Do a batch, as far as it goes."""
        stop = self._rng.choice(batch.seqs) if self._rng.random() < 0.1 else None  # noqa: PLR2004  # now and then
        done = None
        for seq in batch.seqs:
            key = (consumer, batch.queue, seq)
            if self._deadly.get(key, 0) > 0:
                self._deadly[key] -= 1
                raise ProcessDied(f"of {key}")
            if self._outages.get(key, 0) > 0:
                self._outages[key] -= 1
                return Handled(error=_outage(done, key), effects=tuple(batch.transaction.effects))
            if self._poison.get(key, 0) > 0:
                self._poison[key] -= 1
                says = done is not None and self._rng.random() < 0.5  # noqa: PLR2004  # as often as not
                error = PartlyDone(done) if says and done is not None else Trouble(f"poison {key}")
                return Handled(error=error, effects=tuple(batch.transaction.effects))
            if self.transactional:
                batch.transaction.put("Effects", {"id": f"{consumer}/{batch.queue}/{seq}"})
            done = seq
            if seq == stop:
                return Handled(done, effects=tuple(batch.transaction.effects))
        return Handled(effects=tuple(batch.transaction.effects))


def _outage(done: int | None, key: tuple[str, str, int]) -> Exception:
    """Return what a handler raises at an outage: with how far it got, if it got anywhere."""
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
        """Return True if it gave every batch it did an effect."""
        return 0 < self.calls == self.calls_with_effects

    def deliver(self, consumer: str, batch: Batch) -> Handled:
        """Call it; each consumer of a seed writes to tables of its own, as different handlers would."""
        answered = call_handler(self.handler, batch)
        effects = batch.transaction.effects
        # What is no effect at all has become an error of the answer.
        named = [effect for effect in effects if isinstance(effect, Effect)]
        effects[:] = [replace(effect, table=f"{effect.table} of {consumer}") for effect in named]
        if answered.error is not None:
            return Handled(error=answered.error, effects=tuple(effects))
        self.calls += 1
        self.calls_with_effects += bool(effects)
        return Handled(None if answered.done == batch.through else answered.done, effects=tuple(effects))


def done_through(batch: Batch, handled: Handled) -> int:
    """Return how far a handler got, by its own word."""
    if isinstance(handled.error, PartlyDone):
        return handled.error.last_done
    if handled.error is not None:
        return batch.after
    return batch.through if handled.answer is None else handled.answer
