"""The sources of wakes in a simulation: the cursor table's stream, its event source mapping, and a retry queue.

The mapping has Lambda's semantics, which no emulator has: batches, retries of the whole batch or from the lowest
reported record, bisection, and records that are dropped after the last retry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.records import Cursor

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
