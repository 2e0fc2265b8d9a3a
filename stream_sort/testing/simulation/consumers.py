"""Consumers of a simulation: ours, invoked as Lambda would or by hand, and one in few lines for writers' runs.

Their handlers: one that fails as its seed says, and one that wraps a user's own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.wakes import WakeReader, batch_response
from stream_sort.consume.consumer import Consumer
from stream_sort.consume.context import ConsumerContext, DeliveryTerms, Nudger
from stream_sort.consume.handler import call_handler
from stream_sort.consume.push import Pace
from stream_sort.consume.registration import Registration
from stream_sort.errors import MissingItems, PartlyDone, TryLater
from stream_sort.model.batch import Effect
from stream_sort.model.consumption import EARLIEST, Checkpoint, Subscription, first_checkpoint
from stream_sort.model.ordering import run_through
from stream_sort.ports.in_flight import InFlight
from stream_sort.testing.simulation.calls import Call

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.model.batch import Batch
    from stream_sort.sorter import Sorter
    from stream_sort.testing.simulation.calls import Recorder
    from stream_sort.testing.simulation.operations import Operation
    from stream_sort.testing.simulation.workload import ConsumptionPlan

CONTROL = "control"
CHUNK = 2
PACE = Pace(sleep=lambda _: None, monotonic=lambda: 0.0)


@dataclass(frozen=True, slots=True)
class Handled:
    """The result of a handler for a batch; `answer` is the last seq it did, None for all."""

    answer: int | None = None
    error: Exception | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """The settings of one consumer of a seed; `turns` is how much it does in one invocation before time is short."""

    terms: DeliveryTerms
    has_retry_queue: bool
    turns: int


def run_consumer(plan: ConsumerPlan, operation: Operation, sorter: Sorter, recorder: Recorder) -> Any:
    """Do an operation of a consumer."""
    terms = plan.terms
    registration = _registration(sorter, recorder)
    consumer = _wired(plan, sorter, recorder, registration)
    match operation.name:
        case "process":
            wakes = WakeReader(terms.name, "Cursor", sorter.options.keys).read(operation.argument).wakes
            return batch_response(wakes, consumer.process(wakes, _countdown(plan.turns)))
        case "catch_up":
            return consumer.catch_up(operation.queue)
        case "redrive":
            return consumer.redrive(operation.queue)
        case "retire":
            return consumer.retire()
        case "introduce":
            return registration.introduce(terms.name, terms.start)
        case _:
            return consumer.discard(operation.queue, operation.argument, "not needed")


class _RetryQueue:
    """The Waker of a consumer that has a retry queue."""

    def __init__(self, consumer: str, recorder: Recorder) -> None:
        self._consumer = consumer
        self._recorder = recorder

    def wake(self, queue: str, delay: float) -> None:
        self._recorder.ask(Call("waker", "wake", (queue, self._consumer, delay)))


def _registration(sorter: Sorter, recorder: Recorder) -> Registration:
    control, cursors = sorter.homes.only.control(CONTROL), sorter.homes.only.cursors
    registration = Registration(control.subscriptions, control.checkpoints, cursors, recorder.clock, InFlight(1))
    registration._known = recorder.registered  # noqa: SLF001  # the memory that a replay starts from
    return registration


def _wired(plan: ConsumerPlan, sorter: Sorter, recorder: Recorder, registration: Registration) -> Consumer:
    terms, control = plan.terms, sorter.homes.only.control(CONTROL)

    def handler(batch: Batch) -> Any:
        handled: Handled = recorder.ask(Call("handler", "deliver", (terms.name, batch)))
        batch.transaction.effects.extend(handled.effects)
        if handled.error is not None:
            raise handled.error
        return handled.answer

    waker = _RetryQueue(terms.name, recorder) if plan.has_retry_queue else Nudger(sorter.queues)
    context = ConsumerContext(
        terms,
        sorter.queues,
        control.checkpoints,
        control.dead_letters,
        handler,
        waker,
        recorder.clock,
        recorder.new_name,
    )
    return Consumer(context, registration, PACE)


def _countdown(turns: int) -> Callable[[], float]:
    """Return a time that is plenty for so many turns, and then short."""
    times = itertools.repeat(100.0, turns + 1)
    return lambda: next(times, 0.0)


def read_some(sorter: Sorter, queue: str, name: str) -> int:
    """Read a few messages that are due to a consumer; return how many. A hole raises MissingItems."""
    control = sorter.homes.only.control(CONTROL)
    control.subscriptions.register(Subscription(name, EARLIEST, 0.0))
    standing = control.checkpoints.standing(name, queue, 0)
    if standing.cursor is None:
        # Raises if the row is lost, and not only absent as yet.
        sorter.position(queue)
        return 0
    position, row = standing.cursor.position, standing.checkpoint
    if row is None and position > first_checkpoint(EARLIEST, standing.cursor):
        row = control.checkpoints.create(
            Checkpoint(name, queue, first_checkpoint(EARLIEST, standing.cursor))
        ).checkpoint
    if row is None or position <= row.seq:
        return 0
    found = sorter.homes.of(queue).items.page(queue, row.seq, position, CHUNK).slots
    end = run_through(row.seq, [slot.seqs for slot in found])
    if end == row.seq:
        if control.checkpoints.standing(name, queue).checkpoint != row:
            # Overtaken: another run read it, and then it was trimmed.
            return 0
        raise MissingItems(queue, [range(end + 1, end + 2)])
    done = control.checkpoints.commit(row, replace(row, seq=end, version=row.version + 1))
    return end - row.seq if done.won else 0


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
