"""What the demo sends, the counts of it that are shown meanwhile, and whether it came out of the sink.

Messages of many queues, shuffled, some of them twice, one held back, and one that is poison.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Message = dict[str, Any]
NAMES = (
    "orders",
    "payments [eu]",
    "device-17",
    "chat/anna",
    "chat/bert",
    "sensors",
    "invoices",
    "returns",
    "stock #3",
    "météo",
    "trips",
    "votes",
)
# A message comes at most this share of its queue's length too late.
JITTER = 0.08
TWICE = 0.05
LARGEST_PARCEL = 40
BY_INVOKE = 0.5
GAP_AT = 0.4
POISON = '{"queue": "orders", "seq": "eleven", "text": "no number, so no place in its queue"}'


@dataclass(frozen=True, slots=True)
class DemoParcel:
    """What is sent at once, always of one queue: through SQS, or by invoking the function."""

    messages: list[Message]
    by_invoke: bool


@dataclass(frozen=True, slots=True)
class DemoTraffic:
    """All that is sent; `held_back` is in none of the parcels."""

    lengths: dict[str, int]
    parcels: list[DemoParcel]
    held_back: Message

    @property
    def total(self) -> int:
        """Return how many different messages there are."""
        return sum(self.lengths.values())


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
        """Return True if everything came out in order, nothing missing."""
        return all(verdict.problem is None for verdict in self.queues)


def make_message(queue: str, seq: int) -> Message:
    """Return the message with this place; the same whenever it is asked for."""
    return {"queue": queue, "seq": seq, "text": f"message {seq} of {queue}", "amount": seq * 0.5, "tags": ["demo"]}


def make_traffic(messages: int, queues: int, seed: int) -> DemoTraffic:
    """Return traffic from a seed: the same numbers give the same traffic."""
    rng = Random(seed)  # noqa: S311  # a shuffle, not a secret
    lengths = {name: len(range(index, messages, queues)) for index, name in enumerate(NAMES[:queues])}
    gapped = list(lengths)[min(1, queues - 1)]
    gap = int(lengths[gapped] * GAP_AT)
    parcels: list[tuple[float, DemoParcel]] = []
    for queue, length in lengths.items():
        seqs = _arrival_order(length, rng)
        if queue == gapped:
            seqs = [seq for seq in seqs if seq != gap]
        while seqs:
            size = rng.randint(1, LARGEST_PARCEL)
            chosen, seqs = seqs[:size], seqs[size:]
            parcel = DemoParcel([make_message(queue, seq) for seq in chosen], rng.random() < BY_INVOKE)
            parcels.append((chosen[0] / length, parcel))
    parcels.sort(key=lambda placed: placed[0])
    return DemoTraffic(lengths, [parcel for _, parcel in parcels], make_message(gapped, gap))


def _arrival_order(length: int, rng: Random) -> list[int]:
    """Return the seqs of a queue as they arrive: out of place, and some of them twice."""
    seqs = [*range(length), *rng.sample(range(length), int(length * TWICE))]
    return sorted(seqs, key=lambda seq: seq + rng.uniform(0, JITTER * length))


def judge(delivered: Mapping[str, Sequence[dict[str, Any]]], lengths: Mapping[str, int]) -> list[QueueVerdict]:
    """Check every queue: complete, in order, unchanged."""
    strangers = [queue for queue in delivered if queue not in lengths]
    verdicts = [_judge(queue, length, delivered.get(queue, ())) for queue, length in lengths.items()]
    return verdicts + [QueueVerdict(queue, len(delivered[queue]), 0, "nobody sent this") for queue in strangers]


def _judge(queue: str, length: int, messages: Sequence[dict[str, Any]]) -> QueueVerdict:
    """Check one queue. A message may come again, from behind the last checkpoint on; then all after it do, too."""
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


@dataclass(slots=True)
class Count:
    """What became of one queue's messages so far."""

    length: int
    sent: int = 0
    arrived: int = 0
    released: int = 0
    delivered: int = 0

    @property
    def waiting(self) -> int:
        """Return how many messages are stored beyond a gap."""
        return max(0, self.arrived - self.released)


class Board:
    """The counts of all queues. Safe to share by threads."""

    def __init__(self, lengths: dict[str, int]) -> None:
        self.counts = {queue: Count(length) for queue, length in lengths.items()}
        self._lock = threading.Lock()

    def note_sent(self, queue: str, messages: int) -> None:
        """Add what was sent."""
        with self._lock:
            self.counts[queue].sent += messages

    def note_stored(self, queue: str, arrived: int, released: int) -> None:
        """Set what the tables show."""
        with self._lock:
            count = self.counts[queue]
            count.released = max(released, count.released)
            count.arrived = max(arrived, count.arrived, count.released)

    def note_delivered(self, queue: str, messages: int) -> None:
        """Set how many different messages came out."""
        with self._lock:
            count = self.counts[queue]
            count.delivered = messages
            # What came out was released before, whether or not somebody has looked since.
            count.released = max(messages, count.released)
            count.arrived = max(count.arrived, count.released)

    def total(self, what: str) -> int:
        """Return a count over all queues."""
        return sum(getattr(count, what) for count in self.counts.values())
