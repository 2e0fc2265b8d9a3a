"""Slots as tests want them, and a target that remembers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stream_sort.replay.slots import SLOTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stream_sort.model.batch import Batch


def text_of(queue: str, seq: int) -> str:
    return json.dumps({"queue": queue, "seq": seq, "text": f"{queue} {seq}"}, sort_keys=True)


def slots(
    queue: str, seqs: Iterable[int], skipped: Mapping[int, str] | None = None, at: Mapping[int, int] | None = None
) -> pa.RecordBatch:
    """A batch of one queue: messages, or tombstones where `skipped` gives a reason; `at` are times in milliseconds."""
    reasons, times = skipped or {}, at or {}
    rows = [
        {
            "queue": queue,
            "seq": seq,
            "item": None if seq in reasons else text_of(queue, seq),
            "arrived_at": times.get(seq),
            "skipped": reasons.get(seq),
        }
        for seq in seqs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SLOTS)


class Inbox:
    """A sender that keeps what it got, in the order it got it."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int]] = []
        self.sendings: list[str] = []
        self.opened: list[tuple[str, int]] = []
        self.skipped: list[tuple[str, int, str]] = []
        self.lates: list[tuple[str, int]] = []

    def check(self, queue: str) -> None:
        """Everything can go here."""

    def open(self, queue: str, first_seq: int) -> None:
        self.opened.append((queue, first_seq))

    def handler(self, sending: str) -> Callable[[Batch], int | None]:
        self.sendings.append(sending)
        return self

    def __call__(self, batch: Batch) -> int | None:
        self.got += [(batch.queue, message["seq"]) for message in batch]
        return None

    def skip(self, queue: str, seqs: Sequence[int], reason: str) -> None:
        self.skipped += [(queue, seq, reason) for seq in seqs]

    def late(self, queue: str, messages: Sequence[dict[str, Any]]) -> None:
        self.lates += [(queue, message["seq"]) for message in messages]
