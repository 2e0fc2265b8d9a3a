"""The workers of a simulation: writers, and functions that a stream and a retry queue invoke.

The mapping between stream and function has Lambda's semantics, which no emulator has: batches, retries of the whole
batch or from the lowest reported record, bisection, and records that are dropped after the last retry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.operations import Failed, Operation

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.records import Cursor
    from stream_sort.testing.simulation.consumers import ConsumerPlan
    from stream_sort.testing.simulation.harness import Harness
    from stream_sort.testing.simulation.process import SimulatedProcess
    from stream_sort.testing.simulation.workload import ConsumptionPlan


ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/Cursor/stream/2026-01-01T00:00:00.000"


@dataclass(slots=True)
class CursorStream:
    """Every change of a cursor row, in order; kept as records of Lambda's shape."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, old: Cursor | None, new: Cursor | None) -> None:
        """Note a change."""
        row = new or old
        if row is None or old is new or old == new:
            return
        body: dict[str, Any] = {
            "Keys": {"queue": {"S": row.queue}},
            "SequenceNumber": f"{len(self.records) + 1:021d}",
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        }
        for name, image in (("OldImage", old), ("NewImage", new)):
            if image is not None:
                body[name] = {"queue": {"S": image.queue}, "seq": {"N": str(image.position)}}
        kind = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
        self.records.append({"eventSource": "aws:dynamodb", "eventSourceARN": ARN, "eventName": kind, "dynamodb": body})


@dataclass(slots=True)
class Mapping:
    """An event source mapping: where one function stands in the stream. `limit` is the size of a batch now."""

    stream: CursorStream
    size: int
    retries: int
    bisects: bool
    at: int = 0
    limit: int = 0
    failures: int = 0

    def batch(self) -> list[dict[str, Any]]:
        """Return the records of the next invocation; the same ones again after a failure."""
        end = self.at + (self.limit or self.size)
        return self.stream.records[self.at : end]

    def succeed(self, reported: list[str]) -> int:
        """Take an answer; return how many records were dropped.

        Everything from the lowest record it reported is sent again. An unknown name fails the whole batch.
        """
        batch = self.batch()
        names = [record["dynamodb"]["SequenceNumber"] for record in batch]
        if not reported:
            self._go_on(len(batch))
            return 0
        if not set(reported) <= set(names):
            return self.fail()
        done = names.index(min(reported))
        self.at += done
        self.limit = len(batch) - done
        return self._try_again()

    def fail(self) -> int:
        """Note that the function raised, died or ran out of time; return how many records were dropped."""
        batch = self.batch()
        if self.bisects and len(batch) > 1:
            self.limit = (len(batch) + 1) // 2
        return self._try_again()

    def lose(self) -> int:
        """Lose everything that was not read yet, as after a day; return how many records that were."""
        lost = len(self.stream.records) - self.at
        self._go_on(lost)
        return lost

    def _try_again(self) -> int:
        self.failures += 1
        if self.failures <= self.retries:
            return 0
        dropped = len(self.batch())
        self._go_on(dropped)
        return dropped

    def _go_on(self, count: int) -> None:
        self.at += count
        self.limit = self.failures = 0


@dataclass(slots=True)
class RetryMessages:
    """An SQS queue of wakes: delayed, delivered at least once, in no order."""

    messages: list[tuple[float, str, str]] = field(default_factory=list)

    def send(self, now: float, consumer: str, queue: str, delay: float) -> None:
        """Take a wake."""
        self.messages.append((now + delay, consumer, queue))

    def take(self, rng: Random | None, now: float, consumer: str) -> tuple[float, str, str] | None:
        """Return any of the consumer's messages that are due; it stays until it is deleted."""
        due = [message for message in self.messages if message[0] <= now and message[1] == consumer]
        if not due:
            return None
        return rng.choice(due) if rng else due[0]

    def delete(self, message: tuple[float, str, str]) -> None:
        """Delete a message whose function answered."""
        if message in self.messages:
            self.messages.remove(message)


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
