"""The deployed app in a test's hands: send to it, watch what comes out, kill what runs, switch its mappings."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from stream_sort import OrderedConsumer, StreamSorter
from tests.local_stack.history import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

    from stream_sort.local.stack import LocalStack

SQS_BATCH = 10


class App:
    """One deployed stack, and the history of what went through it."""

    def __init__(self, stack: LocalStack) -> None:
        self.stack = stack
        self.history = History()
        self.killed: list[str] = []
        self._dynamodb = stack.client("dynamodb")
        self._sqs = stack.client("sqs")
        outputs = stack.outputs
        self.sorter = StreamSorter(outputs["ItemsTable"], outputs["CursorTable"], client=self._dynamodb)
        self._stop = threading.Event()
        self._drain = threading.Thread(target=self._take_all, daemon=True)

    def __enter__(self) -> Self:
        if "SinkQueueUrl" in self.stack.outputs:
            self._drain.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._drain.is_alive():
            self._drain.join()
        self._dynamodb.close()
        self._sqs.close()

    def consumer(self, name: str, handler: Callable[[Any], Any] = lambda _: None, **options: Any) -> OrderedConsumer:
        """A consumer on the stack's tables, run by the test itself."""
        table = self.stack.outputs["ControlTable"]
        return OrderedConsumer(name, handler, sorter=self.sorter, control_table=table, **options)

    def send(self, messages: list[dict[str, Any]], in_a_body: int = 1) -> None:
        """Send through SQS, as many bodies at once as it takes; a body holds one message, or a list of them."""
        url = self.stack.outputs["EnqueueQueueUrl"]
        parts = [messages[start : start + in_a_body] for start in range(0, len(messages), in_a_body)]
        for start in range(0, len(parts), SQS_BATCH):
            bodies = [json.dumps(part if len(part) > 1 else part[0]) for part in parts[start : start + SQS_BATCH]]
            entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
            assert not self._sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
        for message in messages:
            self.history.sent[message["queue"]].add(message["seq"])

    def put(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """Send by a direct invoke."""
        answer: dict[str, Any] = self.stack.invoke("enqueue", list(messages))
        for message in messages:
            self.history.sent[message["queue"]].add(message["seq"])
        return answer

    def kill(self, step: str) -> bool:
        """Kill one process of a function, if one runs."""
        for pid in self.stack.workers(step):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(step)
                return True
        return False

    def note_checkpoints(self) -> None:
        """Read where `process` is in every queue."""
        queues = list(self.history.sent)
        control = self.sorter.stores.control(self.stack.outputs["ControlTable"])
        for queue, row in control.checkpoints.of_queues("process", queues).whole().items():
            self.history.checkpoints[queue].append(row.seq)

    def is_delivered(self, queue: str, count: int) -> bool:
        return len(set(self.history.delivered[queue])) >= count

    def all_delivered(self) -> bool:
        sent, delivered = self.history.sent, self.history.delivered
        return all(len(set(delivered[queue])) >= len(seqs) for queue, seqs in sent.items())

    @contextmanager
    def stream_lost(self) -> Iterator[None]:
        """Take the mapping from the cursor table's stream away; the new one does not see what came meanwhile."""
        with closing(self.stack.client("lambda")) as client:
            found = client.list_event_source_mappings(FunctionName=self.stack.function("process"))
            (mapping,) = [one for one in found["EventSourceMappings"] if ":dynamodb:" in one["EventSourceArn"]]
            client.delete_event_source_mapping(UUID=mapping["UUID"])
            yield
            client.create_event_source_mapping(
                EventSourceArn=mapping["EventSourceArn"],
                FunctionName=self.stack.function("process"),
                BatchSize=mapping["BatchSize"],
                StartingPosition="LATEST",
            )

    def _take_all(self) -> None:
        url = self.stack.outputs["SinkQueueUrl"]
        with closing(self.stack.client("sqs")) as sqs:
            while not self._stop.is_set():
                received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
                entries = []
                for number, one in enumerate(received.get("Messages", [])):
                    message = json.loads(one["Body"])
                    self.history.delivered[message["queue"]].append(message["seq"])
                    entries.append({"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]})
                if entries:
                    sqs.delete_message_batch(QueueUrl=url, Entries=entries)


def eventually(question: Callable[[], bool], seconds: float = 60.0, every: float = 0.2) -> bool:
    deadline = time.monotonic() + seconds
    while not question():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True
