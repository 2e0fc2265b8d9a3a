"""To an SQS FIFO queue or an SNS FIFO topic: the message as JSON, group = queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import answered
from stream_sort.sinks.identity import attributes_size, fifo_labels, xml_safe
from stream_sort.sinks.progress import SinkEntry, SinkProgress, check_size, entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.batch import Batch

# What both can take; a queue or a topic may have a lower limit of its own, and AWS then says so.
MAX_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class FifoSink:
    """Sends one message a call, each after the one before was taken: order holds whatever fails.

    Their batch calls take ten, but report "a combination of successful and unsuccessful actions" and promise
    nothing of the entries behind a failed one. Were they taken, they would stand before it for good, and all of a
    batch is one group. So ten times the requests buy the order; queues go in parallel.

    A message whose answer was lost is sent again under the same deduplication id. AWS drops such repeats for 5
    minutes; after that the message stands twice. A queue that the same `sender` delivers anew within 5 minutes is
    dropped too; what another one sends is not.
    """

    where: str
    send: Callable[[str, dict[str, Any]], object]
    sender: str

    def __call__(self, batch: Batch) -> None:
        """Send the batch, or raise with the last seq that was taken."""
        with SinkProgress(batch, self.where) as progress:
            for entry in entries(batch):
                self._send(batch.queue, entry)
                progress.last_done = entry.seq

    def _send(self, queue: str, entry: SinkEntry) -> None:
        labels = fifo_labels(self.sender, queue, entry.seq)
        text = xml_safe(entry.text)
        check_size(len(text.encode()) + attributes_size(labels), MAX_BYTES)
        self.send(text, labels)


def sqs_fifo_sink(url: str, client: Any, sender: str) -> FifoSink:
    """Make a sink to a queue; one with FifoThroughputLimit perMessageGroupId takes thousands of calls a second."""

    def send(text: str, labels: dict[str, Any]) -> None:
        answered(client.send_message, "MessageId", QueueUrl=url, MessageBody=text, **labels)

    return FifoSink(f"SQS queue {url}", send, sender)


def sns_fifo_sink(arn: str, client: Any, sender: str) -> FifoSink:
    """Make a sink to a topic, and in the same order to each of its subscribers."""

    def publish(text: str, labels: dict[str, Any]) -> None:
        answered(client.publish, "MessageId", TopicArn=arn, Message=text, **labels)

    return FifoSink(f"SNS topic {arn}", publish, sender)
