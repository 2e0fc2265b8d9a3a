"""What is measured: the same messages for stream_sort and for the classic algorithm."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.config import Config

from stream_sort import StreamSorter
from tests.benchmarks.classic import ClassicSorter
from tests.benchmarks.meter import Meter, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.local.ministack import MiniStack

Message = dict[str, Any]

ITEMS_TABLE, CURSOR_TABLE = "bench-items", "bench-cursor"
MESSAGE_BYTES = 250
_fresh = itertools.count()


@dataclass(frozen=True, slots=True)
class Workload:
    """Messages in the order they come, `batch` at a time; the bars are upper limits for one message."""

    name: str
    batch: int
    queues: int
    shuffle: int
    bars: dict[str, float]

    def messages(self, count: int) -> list[Message]:
        """Messages of queues that nobody used before, shuffled within blocks of each queue."""
        rng = random.Random(1)
        prefix = next(_fresh)
        lanes = [
            [_message(f"q{prefix:05}-{lane}", seq) for seq in _shuffled(count // self.queues, self.shuffle, rng)]
            for lane in range(self.queues)
        ]
        return [message for row in zip(*lanes, strict=True) for message in row]

    def batches(self, messages: list[Message]) -> Iterator[list[Message]]:
        for start in range(0, len(messages), self.batch):
            yield messages[start : start + self.batch]


WORKLOADS = [
    Workload("one by one, in order", 1, 1, 1, {"requests": 3.05, "write units": 2.05}),
    Workload("one by one, shuffled by 10", 1, 1, 10, {"requests": 2.94, "write units": 1.56}),
    Workload("batches of 100, in order", 100, 1, 1, {"requests": 0.075, "write units": 1.03, "read units": 0.06}),
    Workload(
        "batches of 100, shuffled by 10", 100, 1, 10, {"requests": 0.075, "write units": 1.03, "read units": 0.06}
    ),
    Workload("batches of 500 over 5 queues", 500, 5, 10, {"requests": 0.09, "write units": 1.05}),
]


class Bench:
    """Both algorithms on one client, metered."""

    def __init__(self, stack: MiniStack) -> None:
        # The configuration that stream_sort gives a client of its own.
        config = Config(user_agent="stream_sort", retries={"total_max_attempts": 1})
        self.client = stack.client("dynamodb", config=config)
        self.meter = Meter(self.client)
        self.sorter().create_tables()

    def close(self) -> None:
        self.client.close()

    def sorter(self) -> StreamSorter:
        return StreamSorter(items_table=ITEMS_TABLE, cursor_table=CURSOR_TABLE, client=self.client)

    def classic(self) -> ClassicSorter:
        return ClassicSorter(self.client, ITEMS_TABLE, CURSOR_TABLE)

    def cost(self, workload: Workload, count: int) -> Usage:
        """What stream_sort asks for; checks that it also did the job."""
        sorter, messages = self.sorter(), workload.messages(count)
        with self.meter.measure() as usage:
            for batch in workload.batches(messages):
                send(sorter, batch)
        self._check(messages, sorter.position)
        return usage

    def classic_cost(self, workload: Workload, count: int) -> Usage:
        """What the classic algorithm asks for with the same messages, one by one."""
        classic, messages = self.classic(), workload.messages(count)
        with self.meter.measure() as usage:
            for message in messages:
                classic.put(message)
        return usage

    def _check(self, messages: list[Message], position: Callable[[str], int]) -> None:
        lengths: dict[str, int] = {}
        for message in messages:
            lengths[message["queue"]] = lengths.get(message["queue"], 0) + 1
        assert {queue: position(queue) + 1 for queue in lengths} == lengths


def send(sorter: StreamSorter, batch: list[Message]) -> None:
    if len(batch) == 1:
        sorter.put(batch[0])
    else:
        assert sorter.put_many(batch).accepted == len(batch)


def figures(usage: Usage, count: int) -> dict[str, float]:
    return {
        "requests": usage.requests / count,
        "write units": usage.write_units / count,
        "read units": usage.read_units / count,
    }


def _message(queue: str, seq: int) -> Message:
    """A message of MESSAGE_BYTES as DynamoDB counts them: names, values, and half a byte a digit and one."""
    rest = len("queue") + len(queue) + len("seq") + len(str(seq)) // 2 + 2 + len("body")
    return {"queue": queue, "seq": seq, "body": "x" * (MESSAGE_BYTES - rest)}


def _shuffled(length: int, block: int, rng: random.Random) -> list[int]:
    seqs: list[int] = []
    for start in range(0, length, block):
        part = list(range(start, min(start + block, length)))
        rng.shuffle(part)
        seqs += part
    return seqs
