"""The workers of a simulation: writers, and functions that a stream and a retry queue invoke."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.operations import Failed, Operation
from stream_sort.testing.simulation.stream import Mapping

if TYPE_CHECKING:
    from random import Random

    from stream_sort.testing.simulation.consumers import ConsumerPlan
    from stream_sort.testing.simulation.harness import Harness
    from stream_sort.testing.simulation.process import SimulatedProcess
    from stream_sort.testing.simulation.workload import ConsumptionPlan


@dataclass(slots=True, eq=False)
class Worker:
    """A place where processes run one after the other, and the operations still to do there."""

    process: SimulatedProcess
    tasks: list[Operation]
    speed: float = 1.0
    processes: int = 1

    @property
    def is_busy(self) -> bool:
        """Return True if it has anything to do."""
        return bool(self.tasks) or self.process.pending is not None


@dataclass(slots=True, eq=False, kw_only=True)
class Function(Worker):
    """A consumer's function: invoked by its mapping, or by a message of the retry queue (`message` is that one)."""

    plan: ConsumerPlan
    harness: Harness
    mapping: Mapping | None = None
    message: tuple[float, str, str] | None = None

    def invocation(self, rng: Random) -> Operation | None:
        """Return what invokes it now; None if there is nothing to do."""
        event = self._retry_event(rng) if self.mapping is None else _stream_event(rng, self.mapping)
        return None if event is None else Operation("process", argument=event, consumer=self.plan)

    def answer(self, result: Any) -> None:
        """Tell the source of an invocation how it ended."""
        met = self.harness.met
        if self.message is not None:
            if not isinstance(result, Failed) and not result["batchItemFailures"]:
                self.harness.retries.delete(self.message)
            self.message = None
        elif self.mapping is not None and isinstance(result, Failed):
            met["records dropped"] += self.mapping.fail()
        elif self.mapping is not None:
            reported = [one["itemIdentifier"] for one in result["batchItemFailures"]]
            met["partial failures"] += bool(reported)
            met["records dropped"] += self.mapping.succeed(reported)

    def abandon(self) -> None:
        """Leave an invocation without an answer: its source tries again."""
        self.message = None
        if self.mapping is not None:
            self.harness.met["records dropped"] += self.mapping.fail()

    def lose_records(self) -> None:
        """Lose all records that were not read yet."""
        if self.mapping is not None and self.process.pending is None:
            self.tasks.clear()
            self.harness.met["records lost"] += self.mapping.lose()

    def _retry_event(self, rng: Random) -> dict[str, Any] | None:
        self.message = self.harness.retries.take(rng, self.harness.world.now, self.plan.terms.name)
        if self.message is None:
            return None
        body = json.dumps({"consumer": self.message[1], "queue": self.message[2]})
        return {"Records": [{"eventSource": "aws:sqs", "messageId": "m1", "body": body}]}


def make_functions(harness: Harness, plan: ConsumptionPlan) -> list[Function]:
    """Return the function of each consumer, as its mapping invokes it, and as its retry queue does."""
    functions = []
    for consumer, size in zip(plan.consumers, plan.sizes, strict=True):
        name = consumer.terms.name
        mapping = Mapping(harness.stream, size, plan.retries, plan.bisects)
        stream = harness.process(f"{name}-stream")
        functions.append(Function(process=stream, tasks=[], plan=consumer, harness=harness, mapping=mapping))
        if consumer.has_retry_queue:
            retry = harness.process(f"{name}-retry")
            functions.append(Function(process=retry, tasks=[], plan=consumer, harness=harness))
    return functions


def _stream_event(rng: Random, mapping: Mapping) -> dict[str, Any] | None:
    records = mapping.batch()
    return {"Records": [_without_some_images(rng, record) for record in records]} if records else None


def _without_some_images(rng: Random, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as it may come: without an image now and then."""
    body = dict(record["dynamodb"])
    for image in ("OldImage", "NewImage"):
        if rng.random() < 0.1:  # noqa: PLR2004  # now and then
            body.pop(image, None)
    return {**record, "dynamodb": body}
