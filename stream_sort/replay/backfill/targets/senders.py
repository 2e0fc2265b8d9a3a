"""What a queue's messages are delivered to: a sink, or another pair of tables through the ordering core.

A sender has a handler of batches. It is picklable, and makes its clients where it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.errors import QueueExists, SequenceConflict, SettingsError
from stream_sort.replay.origins.access import check_keys
from stream_sort.settings import SinkSettings
from stream_sort.sinks.choose import SINKS, make_client, make_sink, region_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.model.batch import Batch
    from stream_sort.replay.origins.access import TableAccess

NO_TARGET = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ResourceNotFoundException"})


class Sender(Protocol):
    """Where messages go in order."""

    def check(self, queue: str) -> None:
        """Raise, before anything is read, if it is known that nothing can go there."""

    def open(self, queue: str, first_seq: int) -> None:
        """Prepare for a queue that is about to come, from this seq on."""

    def handler(self, sending: str) -> Callable[[Batch], int | None]:
        """Return what delivers a batch, or says how far it got; see the sinks.

        What comes twice in one `sending` may be dropped as a repeat; what came in another one may not.
        """

    def skip(self, queue: str, seqs: Sequence[int], reason: str) -> None:
        """Take note that these seqs were skipped, and hold no message."""

    def late(self, queue: str, messages: Sequence[dict[str, Any]]) -> None:
        """Deliver messages that came after their seqs had been skipped, and were never released."""


@dataclass(frozen=True)
class SinkSender:
    """One of the sinks that `process` knows, too; skipped seqs just do not come."""

    sink: str
    target: str
    region: str | None = None
    endpoint_url: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def check(self, queue: str) -> None:  # noqa: ARG002  # the same for all queues
        """See Sender: a target that does not exist; whether it may be written to shows when it is."""
        _ = self._send
        ask, asked = _question(self.sink, self.target)
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # tables do without

        try:
            getattr(self._client, ask)(**asked)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in NO_TARGET:
                raise SettingsError(f"--target {self.target}: no {self.sink} is there; {error}") from error
        except BotoCoreError:
            # Who may write need not be allowed to ask, and what is out of reach now may not be so then.
            return

    def open(self, queue: str, first_seq: int) -> None:
        """See Sender."""

    def handler(self, sending: str) -> Callable[[Batch], int | None]:
        """See Sender; only FIFO queues drop repeats."""
        from stream_sort.sinks.fifo import FifoSink  # noqa: PLC0415  # tables do without

        send = self._send
        return replace(send, sender=f"backfill {sending}") if isinstance(send, FifoSink) else send

    def skip(self, queue: str, seqs: Sequence[int], reason: str) -> None:
        """See Sender."""

    def late(self, queue: str, messages: Sequence[dict[str, Any]]) -> None:
        """See Sender."""

    @cached_property
    def _send(self) -> Callable[[Batch], int | None]:
        return make_sink(SinkSettings(sink=self.sink, sink_target=self.target), self._client)

    @cached_property
    def _client(self) -> Any:
        region = region_of(self.target) or self.region
        return make_client(SINKS[self.sink].service, region=region, endpoint_url=self.endpoint_url)


@dataclass(frozen=True)
class TableSender:
    """Another pair of tables: messages are put and released anew; what was skipped or came late is so there, too.

    What is there already, and the same, is left as it is: delivering twice changes nothing. What others stored as
    sets arrives as lists.
    """

    access: TableAccess

    def check(self, queue: str) -> None:
        """See Sender: a table that is not there, or has other keys."""
        check_keys(self.access)
        self.access.sorter.position(queue)

    def open(self, queue: str, first_seq: int) -> None:
        """Start the queue where the replay starts, unless it is there and has got as far."""
        try:
            self.access.sorter.open(queue, first_seq=first_seq)
        except QueueExists as begun:
            if not begun.first_seq <= first_seq <= begun.position + 1:
                raise SettingsError(
                    f"queue {queue!r} began at {begun.first_seq} in the target tables and stands at {begun.position}: "
                    f"what starts at {first_seq} would not be released there; take another range, or new tables"
                ) from begun

    def handler(self, sending: str) -> Callable[[Batch], int | None]:  # noqa: ARG002  # what is there is compared
        """See Sender."""
        return self._put

    def _put(self, batch: Batch) -> None:
        result = self.access.sorter.put_many(batch)
        for _, error in (*result.rejected, *result.stalled):
            raise error
        # Late: the target skipped what the source has.
        for other in (*result.conflicts, *result.late):
            raise SequenceConflict(batch.queue, other[self.access.seq_key])

    def skip(self, queue: str, seqs: Sequence[int], reason: str) -> None:
        """See Sender."""
        self.access.sorter.skip(queue, seqs, reason)

    def late(self, queue: str, messages: Sequence[dict[str, Any]]) -> None:
        """See Sender."""
        result = self.access.sorter.put_many(messages)
        for _, error in (*result.rejected, *result.stalled):
            raise error
        for other in result.conflicts:
            raise SequenceConflict(queue, other[self.access.seq_key])


def _question(sink: str, target: str) -> tuple[str, dict[str, Any]]:
    """Return the call that tells whether a target exists, and its arguments."""
    if sink == "sqs-fifo":
        return "get_queue_attributes", {"QueueUrl": target, "AttributeNames": ["QueueArn"]}
    if sink == "kinesis":
        return "describe_stream_summary", {"StreamARN" if target.startswith("arn:") else "StreamName": target}
    return "get_function_configuration", {"FunctionName": target}
