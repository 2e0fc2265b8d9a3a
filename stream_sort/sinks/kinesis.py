"""To a Kinesis data stream: data = the message as JSON, partition key = queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from stream_sort.aws.clients import answered
from stream_sort.aws.errors import code_of
from stream_sort.sinks.identity import partition_key
from stream_sort.sinks.progress import SinkEntry, SinkProgress, check_size, entries

if TYPE_CHECKING:
    from stream_sort.model.batch import Batch

# What Kinesis can take, key included; a stream takes 1 MiB unless its own limit was raised, and Kinesis then says so.
MAX_BYTES = 10_485_760
QUEUES_REMEMBERED = 10_000
INVALID = "InvalidArgumentException"


class KinesisSink:
    """Puts one record a call, each with the sequence number of the one before: the order that Kinesis guarantees.

    PutRecords takes 500, but goes on behind a failed record and so loses the order. Kinesis drops no repeats: a
    message whose answer was lost may stand twice. The numbers live in this process only. Where one is not known, as
    after a cold start, Kinesis goes by time of arrival, and each record is put after the answer to the one before.
    """

    def __init__(self, target: str, client: Any) -> None:
        self._stream = {"StreamARN" if target.startswith("arn:") else "StreamName": target}
        self._client = client
        self._where = f"Kinesis stream {target}"
        self._numbers: dict[str, str] = {}

    def __call__(self, batch: Batch) -> None:
        """Put the batch, or raise with the last seq that Kinesis has taken."""
        key = partition_key(batch.queue)
        with SinkProgress(batch, self._where) as progress:
            for entry in entries(batch):
                self._put(key, entry)
                progress.last_done = entry.seq

    def _put(self, key: str, entry: SinkEntry) -> None:
        check_size(entry.size + len(key.encode()), MAX_BYTES)
        after = {"SequenceNumberForOrdering": self._numbers[key]} if key in self._numbers else {}
        try:
            record = {**self._stream, **after, "PartitionKey": key, "Data": entry.text.encode()}
            answer = answered(self._client.put_record, "SequenceNumber", **record)
        except ClientError as error:
            # The number itself may be what is refused, when the stream was made anew: the next try goes without. It is
            # no fault of the message, so it is made at once.
            had_number = self._numbers.pop(key, None) is not None
            if not had_number or code_of(error) != INVALID:
                raise
            self._put(key, entry)
            return
        if len(self._numbers) >= QUEUES_REMEMBERED:
            self._numbers.clear()
        self._numbers[key] = answer["SequenceNumber"]
