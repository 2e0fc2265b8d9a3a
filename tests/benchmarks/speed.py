"""How fast: rounds of stream_sort, of a bare loop that only stores, and of the classic algorithm, in turn.

Speeds depend on the machine and on who else uses it; ratios within one round do not, much.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.settings import Settings
from tests.benchmarks.workloads import Bench, Message, Workload, send

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
MESSAGES = 2_000
CLASSIC_MESSAGES = 100
BATCHES = Workload("batches of 500, shuffled by 10", 500, 1, 10, {})
CALLS_A_BATCH = 500 // 25
IMPORT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


@dataclass(frozen=True, slots=True)
class Speeds:
    """Messages a second, and the medians of the ratios within each round."""

    sorter: float
    bare: float
    classic: float
    against_classic: float
    against_bare: float


def measure_speeds(bench: Bench) -> Speeds:
    """Five rounds of all three, and one before them that does not count."""
    tape = Tape(bench.client)
    rounds = [_round(bench, tape) for _ in range(ROUNDS + 1)][1:]
    sorter, bare, classic = (statistics.median(column) for column in zip(*rounds, strict=True))
    return Speeds(
        sorter,
        bare,
        classic,
        against_classic=statistics.median(ours / theirs for ours, _, theirs in rounds),
        against_bare=statistics.median(theirs / ours for ours, theirs, _ in rounds),
    )


class Tape:
    """Keeps the statements of every batched insert that a client sends."""

    def __init__(self, client: Any) -> None:
        self.calls: list[list[dict[str, Any]]] = []
        client.meta.events.register("provide-client-params.dynamodb.BatchExecuteStatement", self._keep)

    def _keep(self, params: dict[str, Any], **_: Any) -> None:
        self.calls.append(params["Statements"])

    def take(self, queue: str) -> list[list[dict[str, Any]]]:
        """The calls since the last time, as if they had been made for another queue."""
        calls, self.calls = self.calls, []
        return [
            [{**one, "Parameters": [{"S": queue}, *one["Parameters"][1:]]} for one in statements]
            for statements in calls
        ]


def _round(bench: Bench, tape: Tape) -> tuple[float, float, float]:
    """Three rates: ours; a bare loop that makes the very same store calls and nothing else; the classic one."""
    sorter, classic = bench.sorter(), bench.classic()

    def sort(messages: list[Message]) -> None:
        for batch in BATCHES.batches(messages):
            send(sorter, batch)

    def sort_classic(messages: list[Message]) -> None:
        for message in messages:
            classic.put(message)

    tape.take("")
    ours = _rate(sort, MESSAGES)
    calls = tape.take(BATCHES.messages(1)[0]["queue"])
    bare = _rate(lambda _: _only_store(bench.client, calls), MESSAGES)
    return ours, bare, _rate(sort_classic, CLASSIC_MESSAGES)


def _rate(work: Callable[[list[Message]], None], count: int) -> float:
    messages = BATCHES.messages(count)
    began = time.perf_counter()
    work(messages)
    return count / (time.perf_counter() - began)


def _only_store(client: Any, calls: list[list[dict[str, Any]]]) -> None:
    """The same inserts in the same calls, as many at once, batch by batch: the least that storing them can take."""

    def insert(statements: list[dict[str, Any]]) -> None:
        client.batch_execute_statement(Statements=statements)

    with ThreadPoolExecutor(Settings().in_flight) as pool:
        for start in range(0, len(calls), CALLS_A_BATCH):
            list(pool.map(insert, calls[start : start + CALLS_A_BATCH]))


def import_seconds(module: str) -> float:
    """How long a fresh interpreter takes to import a module; the median of a few."""
    command = [sys.executable, "-c", IMPORT.format(module)]
    times = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(ROUNDS)]
    return statistics.median(times)
