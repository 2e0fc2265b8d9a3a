"""To an SNS FIFO topic: message = the message as JSON, group = queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.sinks.identity import attributes_size, fifo_labels, xml_safe
from stream_sort.sinks.progress import Entry, Progress, check_size, entries

if TYPE_CHECKING:
    from stream_sort.core.batch import Batch

# What SNS can take; a topic takes 256 KiB unless its MaximumMessageSize says more, and SNS then says so.
MAX_BYTES = 1_048_576


class SnsFifoSink:
    """Publishes one message a call, each after the one before was taken: order holds whatever fails.

    PublishBatch takes ten, but promises nothing of the entries behind a failed one; were they taken, their order
    would be lost for every subscriber. What is published again under the same deduplication id is dropped for 5
    minutes.
    """

    def __init__(self, target: str, client: Any) -> None:
        self._arn = target
        self._client = client

    def __call__(self, batch: Batch) -> None:
        """Publish the batch, or raise with the last seq that SNS has taken."""
        with Progress(batch, f"SNS topic {self._arn}") as progress:
            for entry in entries(batch):
                self._publish(batch.queue, entry)
                progress.last_done = entry.seq

    def _publish(self, queue: str, entry: Entry) -> None:
        labels = fifo_labels(queue, entry.seq)
        text = xml_safe(entry.text)
        check_size(len(text.encode()) + attributes_size(labels), MAX_BYTES)
        self._client.publish(TopicArn=self._arn, Message=text, **labels)
