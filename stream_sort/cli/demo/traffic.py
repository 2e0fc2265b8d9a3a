"""What the demo sends: messages of several queues, shuffled, some of them twice, one of them held back."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

Message = dict[str, Any]

NAMES = ("orders", "payments [eu]", "device-17", "chat/anna", "chat/bert", "sensors", "invoices", "returns")
# A message comes at most this share of its queue's length too late.
JITTER = 0.08
TWICE = 0.05
LARGEST_BATCH = 40
SINGLES = 0.35
GAP_AT = 0.4


@dataclass(frozen=True, slots=True)
class Traffic:
    """`calls` holds what is sent in one call, always of one queue; `held_back` is in none of them."""

    lengths: dict[str, int]
    calls: list[list[Message]]
    held_back: Message

    @property
    def total(self) -> int:
        """How many different messages there are."""
        return sum(self.lengths.values())


def make_message(queue: str, seq: int) -> Message:
    """The message with this place; the same whenever it is asked for."""
    return {"queue": queue, "seq": seq, "text": f"message {seq} of {queue}", "amount": seq * 0.5, "tags": ["demo"]}


def make_traffic(messages: int, queues: int, seed: int) -> Traffic:
    """Traffic from a seed: the same numbers give the same traffic."""
    rng = Random(seed)  # noqa: S311  # a shuffle, not a secret
    lengths = {name: len(range(index, messages, queues)) for index, name in enumerate(NAMES[:queues])}
    gapped = list(lengths)[min(1, queues - 1)]
    gap = int(lengths[gapped] * GAP_AT)
    calls: list[tuple[float, list[Message]]] = []
    for queue, length in lengths.items():
        seqs = _arrival_order(length, rng)
        if queue == gapped:
            seqs = [seq for seq in seqs if seq != gap]
        while seqs:
            size = 1 if rng.random() < SINGLES else rng.randint(2, LARGEST_BATCH)
            batch, seqs = seqs[:size], seqs[size:]
            calls.append((batch[0] / length, [make_message(queue, seq) for seq in batch]))
    calls.sort(key=lambda call: call[0])
    return Traffic(lengths, [batch for _, batch in calls], make_message(gapped, gap))


def _arrival_order(length: int, rng: Random) -> list[int]:
    """The seqs of a queue as they arrive: out of place, and some of them twice."""
    seqs = [*range(length), *rng.sample(range(length), int(length * TWICE))]
    return sorted(seqs, key=lambda seq: seq + rng.uniform(0, JITTER * length))
