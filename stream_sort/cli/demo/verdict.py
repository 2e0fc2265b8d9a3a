"""Was it all right? Compares what came out of the sink with what was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.cli.demo.traffic import make_message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class QueueVerdict:
    """What came out of one queue; `problem` is None when everything is as it should be."""

    queue: str
    delivered: int
    repeats: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What a demo came to: how many different messages were sent, and the verdict on every queue."""

    messages: int
    queues: list[QueueVerdict]

    @property
    def good(self) -> bool:
        """Whether everything came out in order, nothing missing."""
        return all(verdict.problem is None for verdict in self.queues)


def judge(delivered: Mapping[str, Sequence[dict[str, Any]]], lengths: Mapping[str, int]) -> list[QueueVerdict]:
    """Check every queue: complete, in order, unchanged."""
    strangers = [queue for queue in delivered if queue not in lengths]
    verdicts = [_judge(queue, length, delivered.get(queue, ())) for queue, length in lengths.items()]
    return verdicts + [QueueVerdict(queue, len(delivered[queue]), 0, "nobody sent this") for queue in strangers]


def _judge(queue: str, length: int, messages: Sequence[dict[str, Any]]) -> QueueVerdict:
    """A message may come again, from a place after the last checkpoint; then all behind it come again, too."""
    expected = repeats = 0
    last = -1
    for message in messages:
        seq = message["seq"]
        if message != make_message(queue, seq):
            return QueueVerdict(queue, expected, repeats, f"seq {seq} came out changed: {message!r:.80}")
        if seq > expected or (seq < expected and seq != last + 1 and seq > last):
            return QueueVerdict(queue, expected, repeats, f"seq {seq} came when {expected} was next")
        repeats += seq < expected
        expected = max(expected, seq + 1)
        last = seq
    problem = None if expected == length else f"{expected:,} of {length:,} messages came out"
    return QueueVerdict(queue, expected, repeats, problem)
