"""The advance function: wakes by the items table's stream and advances the queues whose items it carries.

For users who write to the items table themselves, and the durable trigger behind a writer that died.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda import telemetry as names
from stream_sort.aws_lambda.receipts import error_facts, is_of_one_queue, is_own_fault
from stream_sort.aws_lambda.shapes import Shape, shape_of
from stream_sort.aws_lambda.telemetry import Telemetry, time_left_of
from stream_sort.errors import InvalidInput
from stream_sort.model.withdrawal import is_kept_aside
from stream_sort.release.advancer import Reach

if TYPE_CHECKING:
    from typing import Self

    from stream_sort.errors import StreamSortError
    from stream_sort.sorter import Sorter


class AdvanceStep:
    """Advances each queue of a batch once, as far as it goes; a queue that fails delays no other."""

    def __init__(self, sorter: Sorter, telemetry: Telemetry) -> None:
        self._sorter = sorter
        self._keys = sorter.options.keys
        self._telemetry = telemetry

    @classmethod
    def of(cls, sorter: Sorter) -> Self:
        """Wire the function to a sorter."""
        return cls(sorter, Telemetry("advance", sorter.requests))

    def __call__(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle one batch of the stream; everything from the first record of a queue that failed comes again.

        A queue that no retry will advance is logged, and not reported: it must not hold the shard.
        """
        with self._telemetry.invocation(context):
            shape = shape_of(event, self._keys)
            if shape is not Shape.DYNAMODB_STREAM:
                raise InvalidInput(f"advance takes {Shape.DYNAMODB_STREAM}, that of the items table; not {shape}")
            first_records = self._first_records(event["Records"])
            failures = self._advance(list(first_records), context)
            if failures and len(failures) == len(first_records):
                # The same to AWS; an emulator that ignores partial failures then retries as well.
                raise next(iter(failures.values()))
            # Records come in the order of their sequence numbers: the first is the lowest.
            lowest = [number for queue, number in first_records.items() if queue in failures][:1]
            return {"batchItemFailures": [{"itemIdentifier": number} for number in lowest]}

    def _first_records(self, records: list[dict[str, Any]]) -> dict[str, str]:
        """Return the queues of new items, each with the sequence number of its first record.

        Only a slot that is filled can make a queue contiguous: what is changed or removed wakes nobody.
        """
        first: dict[str, str] = {}
        strange = 0
        for record in records:
            keys = record["dynamodb"].get("Keys")
            queue = self._queue_of(keys)
            if queue is None:
                strange += 1
            elif is_kept_aside(queue):
                # A withdrawal: it fills no slot, it has just emptied one.
                continue
            elif record.get("eventName") == "INSERT" and self._is_in_a_slot(queue, keys):
                first.setdefault(queue, record["dynamodb"]["SequenceNumber"])
        if strange:
            self._telemetry.logger.warning(
                "records without our keys were ignored; is this the items table's stream?",
                count=strange,
                wanted=[self._keys.queue, self._keys.seq],
                stream=records[0].get("eventSourceARN"),
            )
        return first

    def _queue_of(self, keys: object) -> str | None:
        if not isinstance(keys, dict) or keys.keys() != {self._keys.queue, self._keys.seq}:
            return None
        value, seq = keys[self._keys.queue], keys[self._keys.seq]
        queue = value.get("S") if isinstance(value, dict) and isinstance(seq, dict) else None
        return queue if isinstance(queue, str) else None

    def _is_in_a_slot(self, queue: str, keys: dict[str, Any]) -> bool:
        """Return True if the seq of an item is a whole number; nobody else would ever speak of one that is not."""
        number = keys[self._keys.seq].get("N")
        if number is None or _is_whole(number):
            return True
        self._telemetry.count(names.REJECTED)
        self._telemetry.logger.error(
            "an item whose seq is no whole number will never be released; delete it, and mend its writer",
            queue=queue,
            seq=number,
        )
        return False

    def _advance(self, queues: list[str], context: Any) -> dict[str, StreamSortError]:
        """Advance queues; the errors of those for which a retry may help.

        What the time does not suffice for is marked, and a sweep goes on with it.
        """
        failures: dict[str, StreamSortError] = {}
        for queue, reached in self._sorter.advance_many(queues, time_left=time_left_of(context)).items():
            if isinstance(reached, Reach):
                self._telemetry.count(names.CURSOR_ADVANCED, len(reached.advance))
                if not reached.complete:
                    self._telemetry.logger.warning("the time was over; a sweep releases the rest", queue=queue)
            elif is_own_fault(reached) or is_of_one_queue(reached):
                self._telemetry.count(names.REJECTED)
                self._telemetry.logger.error("a queue cannot be advanced", queue=queue, **error_facts(reached))
            else:
                # Also an unknown code of AWS: nobody else would look for a queue that has no cursor row yet.
                failures[queue] = reached
                self._telemetry.logger.warning("a queue was not advanced", queue=queue, **error_facts(reached))
        return failures


def _is_whole(number: object) -> bool:
    """Return True if a number of a stream record is whole; it may have more digits than arithmetic keeps."""
    try:
        value = Decimal(number) if isinstance(number, str) else Decimal("NaN")
        return value.is_finite() and value == value.to_integral_value()
    except InvalidOperation:
        return False
