"""Sends the demo's traffic with several writers at once, and counts what they are told."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.core.outcomes import Advance, PutResult, Status
from stream_sort.errors import StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.cli.demo.traffic import Message, Traffic
    from stream_sort.sorter import Sorter

WRITERS = 4


@dataclass(slots=True)
class Count:
    """What became of one queue's messages so far."""

    length: int
    sent: int = 0
    arrived: int = 0
    duplicates: int = 0
    released: int = 0
    requests: int = 0

    @property
    def waiting(self) -> int:
        """How many messages are stored beyond a gap."""
        return max(0, self.arrived - self.released)


class Board:
    """The counts of all queues. Safe to share by threads."""

    def __init__(self, lengths: dict[str, int]) -> None:
        self.counts = {queue: Count(length) for queue, length in lengths.items()}
        self._lock = threading.Lock()

    def note(self, queue: str, sent: int, outcome: Advance | PutResult) -> None:
        """Add what a call was told."""
        if isinstance(outcome, PutResult):
            arrived, duplicates = outcome.accepted, len(outcome.duplicates)
            released = outcome.released
        else:
            arrived, duplicates = outcome.status is Status.ACCEPTED, outcome.status is Status.DUPLICATE
            released = len(outcome)
        with self._lock:
            count = self.counts[queue]
            count.sent += sent
            count.arrived += arrived
            count.duplicates += duplicates
            count.released += released

    def count_request(self, params: Any, **_: Any) -> None:
        """Hook for a boto3 client: add a request to the queue that its parameters name."""
        queue = self._named_in(params)
        if queue is not None:
            with self._lock:
                self.counts[queue].requests += 1

    def _named_in(self, value: Any) -> str | None:
        if isinstance(value, str):
            return value if value in self.counts else None
        inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return next((found for found in map(self._named_in, inner) if found), None)


class Senders:
    """Several writers, each with a sorter of its own, as separate processes would have."""

    def __init__(self, make_sorter: Callable[[], Sorter], board: Board) -> None:
        self._make_sorter = make_sorter
        self._board = board
        self._stop = threading.Event()

    def send(self, traffic: Traffic, watch: Callable[[], None], every: float) -> None:
        """Send it all, calling `watch` now and then; whatever ends this early ends the writers too."""
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="writer") as pool:
            try:
                work = [pool.submit(self._write, traffic.calls[number::WRITERS]) for number in range(WRITERS)]
                self._watch(work, watch, every)
            finally:
                self._stop.set()

    def _watch(self, work: list[Future[None]], watch: Callable[[], None], every: float) -> None:
        pending = set(work)
        while pending:
            done, pending = wait(pending, timeout=every)
            for writer in done:
                writer.result()
            watch()

    def _write(self, calls: list[list[Message]]) -> None:
        sorter = self._make_sorter()
        for batch in calls:
            if self._stop.is_set():
                return
            outcome = sorter.put(batch[0]) if len(batch) == 1 else sorter.put_many(batch)
            if isinstance(outcome, PutResult):
                _check(outcome)
            self._board.note(batch[0]["queue"], len(batch), outcome)


def _check(result: PutResult) -> None:
    for _, error in [*result.rejected, *result.stalled]:
        raise error
    if result.conflicts:
        first = result.conflicts[0]
        raise StreamSortError(f"an unexpected conflict: queue {first['queue']!r}, seq {first['seq']}")
