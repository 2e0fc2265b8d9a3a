"""A batch to send to a sink, and a consumer that does not give up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import HandlerProblem, PartlyDone
from stream_sort.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

    Sink = Callable[[Batch], int | None]

SEQS = (3, 4, 6, 7)  # 5 was skipped
THROUGH = 8  # and 8


def batch_of(queue: str = "ada", seqs: tuple[int, ...] = SEQS, after: int = 2, through: int = THROUGH) -> Batch:
    messages = tuple({"queue": queue, "seq": seq, "text": "grüße 🚀"} for seq in seqs)
    return Batch(queue=queue, after=after, through=through, messages=messages, seqs=seqs)


def rest_of(batch: Batch, last_done: int) -> Batch:
    seqs = tuple(seq for seq in batch.seqs if seq > last_done)
    return batch_of(batch.queue, seqs, last_done, batch.through)


def deliver(sink: Sink, batch: Batch) -> None:
    """Try until it is done, as a consumer does: after a failure from the message behind the last one done."""
    while batch.seqs:
        try:
            done = sink(batch)
        except PartlyDone as stopped:
            done = stopped.last_done
        except HandlerProblem:
            done = batch.after
        batch = rest_of(batch, batch.through if done is None else done)
