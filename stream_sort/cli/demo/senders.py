"""Sends the demo's traffic with several writers at once: through SQS, and by invoking the function."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stream_sort.cli.demo.traffic import POISON
from stream_sort.errors import LocalStackFailed, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.cli.demo.board import Board
    from stream_sort.cli.demo.traffic import DemoParcel, DemoTraffic, Message
    from stream_sort.local.stack import LocalStack

WRITERS = 3
SQS_BATCH = 10
# A function that is killed under a writer's hands fails its invoke; the writer sends the same again.
TRIES = 8


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
        """Store one message by invoking the function; its answer."""
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
