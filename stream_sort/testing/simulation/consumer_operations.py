"""What simulated consumers are asked to do: an invocation of their function, or what an operator does by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.wakes import WakeReader, batch_response
from stream_sort.concurrency import InFlight
from stream_sort.consume.consumer import Consumer, Pace
from stream_sort.consume.context import ConsumerContext, DeliveryTerms
from stream_sort.consume.nudger import Nudger
from stream_sort.consume.registration import Registration
from stream_sort.testing.simulation.calls import Call
from stream_sort.testing.simulation.reader import CONTROL

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.batch import Batch, Effect
    from stream_sort.sorter import Sorter
    from stream_sort.testing.simulation.calls import Recorder


@dataclass(frozen=True, slots=True)
class Handled:
    """What a handler did with a batch."""

    answer: Any = None
    error: Exception | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """How one consumer of a seed is set up; `turns` is how much it does in one invocation before time is short."""

    terms: DeliveryTerms
    has_retry_queue: bool
    turns: int
    reader: type[WakeReader] = WakeReader


@dataclass(frozen=True, slots=True)
class ConsumerOperation:
    """One call of a consumer: `process` with an event, `catch_up`, `redrive`, `discard` or `retire`.

    `introduce` is the cold start of a sweep whose stack's own consumer this is.
    """

    name: str
    plan: ConsumerPlan
    queue: str = ""
    argument: Any = None
    messages: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.plan.terms.name}.{self.name}({self.queue!r}, {self._told()})"

    @property
    def queues(self) -> set[str]:
        """The queue that the operation names; those of an event are known from its records only."""
        return {self.queue} if self.queue else set()

    def run(self, sorter: Sorter, recorder: Recorder) -> Any:
        """Do it."""
        registrar = _registrar(sorter, recorder)
        consumer = _wired(self.plan, sorter, recorder, registrar)
        match self.name:
            case "process":
                wakes = self.plan.reader(self.plan.terms.name, "Cursor", sorter.options.keys).read(self.argument).wakes
                return batch_response(wakes, consumer.process(wakes, _countdown(self.plan.turns)))
            case "catch_up":
                return consumer.catch_up(self.queue)
            case "redrive":
                return consumer.redrive(self.queue)
            case "retire":
                return consumer.retire()
            case "introduce":
                return registrar.introduce(self.plan.terms.name, self.plan.terms.start)
            case _:
                return consumer.discard(self.queue, self.argument, "not needed")

    def _told(self) -> Any:
        if self.name != "process":
            return self.argument
        told = []
        for record in self.argument["Records"]:
            body = record.get("dynamodb")
            told.append(body["Keys"]["queue"]["S"] if body else json.loads(record["body"])["queue"])
        return " ".join(told)


class _RetryQueue:
    """The Waker of a consumer that has a retry queue."""

    def __init__(self, consumer: str, recorder: Recorder) -> None:
        self._consumer = consumer
        self._recorder = recorder

    def wake(self, queue: str, delay: float) -> None:
        self._recorder.ask(Call("waker", "wake", (queue, self._consumer, delay)))


def _registrar(sorter: Sorter, recorder: Recorder) -> Registration:
    stores = sorter.stores
    registrar = Registration(stores.control(CONTROL), stores.cursors, recorder.clock, InFlight(1))
    registrar._known = recorder.registered  # noqa: SLF001  # the memory that a replay starts from
    return registrar


def _wired(plan: ConsumerPlan, sorter: Sorter, recorder: Recorder, registrar: Registration) -> Consumer:
    terms, control = plan.terms, sorter.stores.control(CONTROL)

    def handler(batch: Batch) -> Any:
        handled: Handled = recorder.ask(Call("handler", "deliver", (terms.name, batch)))
        batch.transaction.effects.extend(handled.effects)
        if handled.error is not None:
            raise handled.error
        return handled.answer

    waker = _RetryQueue(terms.name, recorder) if plan.has_retry_queue else Nudger(sorter.queues)
    desk = ConsumerContext(terms, sorter.queues, control, handler, waker, recorder.clock, recorder.new_name)
    return Consumer(desk, registrar, Pace(sleep=lambda _: None, monotonic=lambda: 0.0))


def _countdown(turns: int) -> Callable[[], float]:
    """Time that is plenty for so many turns, and then short."""
    left = [turns + 2]

    def time_left() -> float:
        left[0] -= 1
        return 100.0 if left[0] > 0 else 0.0

    return time_left
