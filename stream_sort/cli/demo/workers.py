"""The threads of the demo: some send its messages, others look at the tables and empty the sink; and what all cost."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stream_sort import StreamSorter
from stream_sort.cli.demo.traffic import POISON
from stream_sort.errors import LocalStackFailed, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from stream_sort.cli.demo.traffic import Board, DemoParcel, DemoTraffic, Message
    from stream_sort.local.stack import LocalStack

WRITERS = 3
SQS_BATCH = 10
# A function that is killed under a writer's hands fails its invoke; the writer sends the same again.
TRIES = 8
EVERY = 0.3
SINK_BATCH = 10
METRIC = "StoreRequests"
STEPS = ("enqueue", "process")


class Senders:
    """Several writers; whatever ends them early ends all of them."""

    def __init__(self, stack: LocalStack, board: Board) -> None:
        self._stack = stack
        self._board = board
        self._stop = threading.Event()

    def send(self, traffic: DemoTraffic, watch: Callable[[], None], every: float) -> None:
        """Send it all, calling `watch` now and then."""
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="writer") as pool:
            try:
                work = [pool.submit(self._write, traffic.parcels[number::WRITERS]) for number in range(WRITERS)]
                self._watch(work, watch, every)
            finally:
                self._stop.set()

    def send_poison(self) -> None:
        """Send a body that is no message."""
        with closing(self._stack.client("sqs")) as sqs:
            sqs.send_message(QueueUrl=self._stack.outputs["EnqueueQueueUrl"], MessageBody=POISON)

    def put(self, message: Message) -> dict[str, Any]:
        """Store one message by invoking the function; return its answer."""
        answer = self._invoke([message])
        self._board.note_sent(message["queue"], 1)
        return answer

    def _watch(self, work: list[Future[None]], watch: Callable[[], None], every: float) -> None:
        pending = set(work)
        while pending:
            done, pending = wait(pending, timeout=every)
            for writer in done:
                writer.result()
            watch()

    def _write(self, parcels: list[DemoParcel]) -> None:
        with closing(self._stack.client("sqs")) as sqs:
            for parcel in parcels:
                if self._stop.is_set():
                    return
                if parcel.by_invoke:
                    self._invoke(parcel.messages)
                else:
                    self._send(sqs, parcel.messages)
                self._board.note_sent(parcel.messages[0]["queue"], len(parcel.messages))

    def _send(self, sqs: Any, messages: list[Message]) -> None:
        for start in range(0, len(messages), SQS_BATCH):
            entries = [
                {"Id": str(number), "MessageBody": json.dumps(message)}
                for number, message in enumerate(messages[start : start + SQS_BATCH])
            ]
            answer = sqs.send_message_batch(QueueUrl=self._stack.outputs["EnqueueQueueUrl"], Entries=entries)
            if answer.get("Failed"):
                raise StreamSortError(f"SQS did not take a message: {answer['Failed'][0]}")

    def _invoke(self, messages: list[Message]) -> dict[str, Any]:
        for tries in range(1, TRIES + 1):
            try:
                answer: dict[str, Any] = self._stack.invoke("enqueue", messages)
            except LocalStackFailed:
                if tries == TRIES or self._stop.is_set():
                    raise
                continue
            if not answer["rejected"] and not answer["conflicts"]:
                return answer
            raise StreamSortError(f"enqueue did not take a message: {answer['rejected'] or answer['conflicts']}")
        raise StreamSortError("enqueue was not tried")


class Scout:
    """A thread that keeps the board up to date and takes everything out of the sink queue, in the order it comes."""

    def __init__(self, stack: LocalStack, board: Board) -> None:
        self._stack = stack
        self._board = board
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._watch_tables, self._drain)]
        self._error: BaseException | None = None
        self.delivered: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def check(self) -> None:
        """Raise what went wrong in the scout's threads."""
        if self._error is not None:
            raise self._error

    def _watch_tables(self) -> None:
        with closing(self._stack.client("dynamodb")) as client:
            outputs = self._stack.outputs
            sorter = StreamSorter(outputs["ItemsTable"], outputs["CursorTable"], client=client)
            try:
                while not self._stop.wait(EVERY):
                    self._look(sorter)
            except Exception as error:  # noqa: BLE001  # raised again by check
                self._error = error

    def _look(self, sorter: StreamSorter) -> None:
        page = sorter.sources().cursors.rows()
        for row in page.rows:
            if row.queue in self._board.counts:
                beyond = sorter.explain(row.queue).stored_beyond
                released = row.position + 1
                self._board.note_stored(row.queue, released + beyond, released)

    def _drain(self) -> None:
        url = self._stack.outputs["SinkQueueUrl"]
        with closing(self._stack.client("sqs")) as sqs:
            try:
                while not self._stop.is_set():
                    self._take(sqs, url)
            except Exception as error:  # noqa: BLE001  # raised again by check
                self._error = error

    def _take(self, sqs: Any, url: str) -> None:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=SINK_BATCH, WaitTimeSeconds=1)
        received = answer.get("Messages", [])
        if not received:
            return
        for one in received:
            message = json.loads(one["Body"])
            self.delivered[message["queue"]].append(message)
            self._board.note_delivered(message["queue"], len(self.delivered[message["queue"]]))
        entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(received)]
        sqs.delete_message_batch(QueueUrl=url, Entries=entries)


def costs_of(stack: LocalStack, messages: int) -> dict[str, str]:
    """Return the requests to the tables a message, for each function that every message passes."""
    told = {}
    for step in STEPS:
        requests = round(sum(_requests_in(line.text) for line in stack.logs(step)))
        told[step] = f"{requests:,} requests to the tables, {requests / messages:.3f} a message"
    return told


def _requests_in(line: str) -> float:
    """Return the count in one line, if it is a blob of metrics."""
    if METRIC not in line:
        return 0
    try:
        blob = json.loads(line[line.index("{") :])
    except ValueError:
        return 0
    value = blob.get(METRIC, 0)
    return float(sum(value) if isinstance(value, list) else value)
