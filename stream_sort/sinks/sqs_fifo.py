"""To an SQS FIFO queue: body = the message as JSON, group = queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.sinks.identity import attributes_size, fifo_labels, xml_safe
from stream_sort.sinks.progress import Entry, Progress, check_size, entries

if TYPE_CHECKING:
    from stream_sort.core.batch import Batch

# What SQS can take; a queue's own MaximumMessageSize may be lower, and SQS then says so.
MAX_BYTES = 1_048_576


class SqsFifoSink:
    """Sends one message a call, each after the one before was taken: order holds whatever fails.

    SendMessageBatch takes ten, but it reports "a combination of successful and unsuccessful actions" and promises
    nothing of the entries behind a failed one. Were they taken, they would stand before it for good, and all of a
    batch is one group. So ten times the requests buy the order; queues go in parallel, and a FIFO queue with
    FifoThroughputLimit perMessageGroupId takes thousands of calls a second.

    A message whose answer was lost is sent again under the same deduplication id. SQS drops such repeats for 5
    minutes; after that the message stands twice. A queue that is delivered anew within 5 minutes is dropped too.
    """

    def __init__(self, target: str, client: Any) -> None:
        self._url = target
        self._client = client

    def __call__(self, batch: Batch) -> None:
        """Send the batch, or raise with the last seq that SQS has taken."""
        with Progress(batch, f"SQS queue {self._url}") as progress:
            for entry in entries(batch):
                self._send(batch.queue, entry)
                progress.last_done = entry.seq

    def _send(self, queue: str, entry: Entry) -> None:
        labels = fifo_labels(queue, entry.seq)
        body = xml_safe(entry.text)
        check_size(len(body.encode()) + attributes_size(labels), MAX_BYTES)
        self._client.send_message(QueueUrl=self._url, MessageBody=body, **labels)
