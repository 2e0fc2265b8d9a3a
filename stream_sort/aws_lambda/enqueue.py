"""The enqueue function: takes messages from any source, puts them, and answers with what failed."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda import telemetry as names
from stream_sort.aws_lambda.dead_letter_queue import DeadLetterQueue
from stream_sort.aws_lambda.http_api import answer_request
from stream_sort.aws_lambda.parcels import RecordParcel, parcels_of
from stream_sort.aws_lambda.receipts import Receipts, error_facts, is_of_one_queue, is_own_fault, put
from stream_sort.aws_lambda.shapes import Shape, messages_in, shape_of
from stream_sort.aws_lambda.telemetry import Telemetry, time_left_of
from stream_sort.errors import InvalidInput, SequenceConflict, StreamSortError
from stream_sort.settings import EnqueueSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

    from stream_sort.sorter import Sorter

MOST_PLACES_LOGGED = 20


class EnqueueStep:
    """Stores every message of an event with one put_many, and answers as the event's source wants it.

    Whatever is not stored is put again by its source, or named to the caller; a message that can never be stored
    keeps no other from being stored. Duplicates, conflicts and late messages are outcomes, not failures.
    `dead_letters` keeps what Kinesis would drop.
    """

    def __init__(self, sorter: Sorter, telemetry: Telemetry, dead_letters: DeadLetterQueue | None = None) -> None:
        self._sorter = sorter
        self._keys = sorter.options.keys
        self._telemetry = telemetry
        self._dead_letters = dead_letters

    @classmethod
    def of(cls, sorter: Sorter) -> Self:
        """Wire the function to a sorter, as the environment says."""
        url = EnqueueSettings.from_env().dead_letters_url
        return cls(sorter, Telemetry("enqueue", sorter.requests), DeadLetterQueue(url) if url else None)

    def __call__(self, event: Any, context: Any) -> Any:
        """Handle one event."""
        with self._telemetry.invocation(context):
            shape = shape_of(event, self._keys)
            match shape:
                case Shape.MESSAGE | Shape.MESSAGES:
                    return self._answer_caller(event, shape, context)
                case Shape.HTTP | Shape.REST:
                    return answer_request(event, shape, self._keys, partial(self._put_for_caller, context))
                case Shape.SQS:
                    return self._answer_sqs(event, context)
                case Shape.KINESIS:
                    return self._answer_kinesis(event, context)
                case Shape.SNS | Shape.EVENTBRIDGE:
                    return self._answer_async(event, shape, context)
                case _:
                    raise InvalidInput(f"enqueue does not take {shape}; that of the items table is for advance")

    def _answer_caller(self, event: Any, shape: Shape, context: Any) -> dict[str, Any]:
        """Return the outcomes, or raise if the same call, made again now or later, may store any of its messages.

        Nothing in the event says if it was sent asynchronously. If so, nobody reads an answer, but Lambda tries an
        event that raised twice more, and then keeps it in the dead letters. A message at fault itself is in the log.
        """
        receipts = self._put_for_caller(context, [event] if shape is Shape.MESSAGE else messages_in(event))
        if error := receipts.again():
            raise error
        answer = receipts.answer()
        if shape is Shape.MESSAGE:
            outcome = receipts.outcome(0)
            answer["status"] = "rejected" if isinstance(outcome, StreamSortError) else str(outcome)
        return answer

    def _answer_sqs(self, event: dict[str, Any], context: Any) -> Any:
        """Let come again what failed; what always fails ends in the dead-letter queue after maxReceiveCount."""
        return _partial_response(event, self._deliver(parcels_of(event, Shape.SQS, self._keys), context), context)

    def _answer_kinesis(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Let everything come again from the first record on that may yet be stored.

        A record that never will be, or not before somebody has put its queue right, must not hold its shard, and
        Kinesis has no place for it: it is kept in the dead letters. Without any, all that is left of one that never
        will be is its sequence number in the log.
        """
        parcels = parcels_of(event, Shape.KINESIS, self._keys)
        failures = self._deliver(parcels, context)
        again = {name: error for name, error in failures.items() if not self._may_be_set_aside(error)}
        # What lies behind the first of them comes again anyway.
        passed = takewhile(lambda one: one[0].name not in again, zip(parcels, event["Records"], strict=True))
        again |= self._set_aside({one.name: record for one, record in passed if one.name in failures}, failures)
        if len(again) == len(parcels):
            # The same to AWS; an emulator that ignores partial failures then retries as well.
            raise again[parcels[0].name]
        first = next((parcel.name for parcel in parcels if parcel.name in again), None)
        return {"batchItemFailures": [] if first is None else [{"itemIdentifier": first}]}

    def _may_be_set_aside(self, error: StreamSortError) -> bool:
        """Return True where to try a record again is no use, and would only hold up other queues.

        That is known of the message's own faults and of what is wrong with one queue. Any other error, an unknown code
        of AWS included, may be met by every record: they wait in the stream until somebody has put it right.
        """
        if is_own_fault(error):
            return True
        return self._dead_letters is not None and is_of_one_queue(error)

    def _set_aside(self, records: dict[str, Any], failures: dict[str, StreamSortError]) -> dict[str, StreamSortError]:
        """Keep records in the dead letters; the errors of those that could not be kept."""

        def keep(name: str) -> StreamSortError | None:
            try:
                if self._dead_letters is not None:
                    self._dead_letters.keep(records[name], failures[name])
            except StreamSortError as error:
                return error
            return None

        answers = zip(records, self._sorter.in_flight.map(keep, list(records)), strict=True)
        lost = {name: error for name, error in answers if error is not None}
        for name, error in lost.items():
            self._telemetry.logger.error("a record could not be set aside", record=name, **error_facts(error))
        return lost

    def _answer_async(self, event: dict[str, Any], shape: Shape, context: Any) -> None:
        """Raise what was not stored: Lambda tries the event again, and in the end keeps it in the dead letters."""
        failures = self._deliver(parcels_of(event, shape, self._keys), context).values()
        for error in sorted(failures, key=is_own_fault):
            raise error

    def _deliver(self, parcels: list[RecordParcel], context: Any) -> dict[str, StreamSortError]:
        """Put the messages of all parcels at once; the failure of each parcel that has one, by its name."""
        receipts = self._put(context, [message for parcel in parcels for message in parcel.messages])
        failures: dict[str, StreamSortError] = {}
        start = 0
        for parcel in parcels:
            indexes = range(start, start + len(parcel.messages))
            start = indexes.stop
            found = [error for error in map(receipts.failure, indexes) if error is not None]
            error = parcel.error or self._worst(found)
            if parcel.error is not None:
                self._telemetry.count(names.REJECTED)
            if error is not None:
                failures[parcel.name] = error
                log = self._telemetry.logger.warning if error.retryable else self._telemetry.logger.error
                log("a record failed", record=parcel.name, failed=len(found) or 1, **error_facts(error))
        return failures

    def _worst(self, errors: list[StreamSortError]) -> StreamSortError | None:
        """Return the error that decides for a record of several messages: one for which it must come again, if any."""
        comes_again = (error for error in errors if not self._may_be_set_aside(error))
        is_of_others = (error for error in errors if not is_own_fault(error))
        return next(comes_again, next(is_of_others, errors[0] if errors else None))

    def _put_for_caller(self, context: Any, messages: list[Any]) -> Receipts:
        """Put, and log what was refused: the caller gets an answer, but need not be there any more."""
        receipts = self._put(context, messages)
        if refused := receipts.refused():
            some = refused[:MOST_PLACES_LOGGED]
            self._telemetry.logger.warning("messages were refused", count=len(refused), refused=some)
        return receipts

    def _put(self, context: Any, messages: list[Any]) -> Receipts:
        receipts = put(self._sorter, messages, time_left_of(context))
        result, telemetry = receipts.result, self._telemetry
        raised = sum(isinstance(error, SequenceConflict) for _, error in result.rejected)
        for name, count in (
            (names.MESSAGES_ACCEPTED, result.accepted),
            (names.DUPLICATES, len(result.duplicates)),
            (names.CONFLICTS, len(result.conflicts) + raised),
            (names.LATE, len(result.late)),
            (names.REJECTED, sum(not error.retryable for _, error in result.rejected) - raised),
            (names.NOT_STORED, sum(error.retryable for _, error in result.rejected)),
            (names.CURSOR_ADVANCED, result.released),
            (names.OUT_OF_ORDER, sum(result.out_of_order.values())),
        ):
            telemetry.count(name, count)
        self._log(receipts)
        return receipts

    def _log(self, receipts: Receipts) -> None:
        result, logger = receipts.result, self._telemetry.logger
        for kind, some, log in (
            # Every source repeats itself now and then; that two messages claim one place, somebody should know.
            ("duplicates", result.duplicates, logger.info),
            ("conflicts", result.conflicts, logger.warning),
            ("late", result.late, logger.warning),
        ):
            if some:
                log(kind, count=len(some), places=receipts.places(some[:MOST_PLACES_LOGGED]))
        for queue, error in result.stalled:
            logger.warning("a queue was not advanced", queue=queue, **error_facts(error))
        if result.unreleased:
            queues = result.unreleased[:MOST_PLACES_LOGGED]
            logger.warning("the time was over; a sweep releases the rest", count=len(result.unreleased), queues=queues)
        if result.out_of_order:
            # A metric for each queue would cost more than all the rest: the log has the queues, the metric the sum.
            worst = Counter(result.out_of_order).most_common(MOST_PLACES_LOGGED)
            logger.info("out of order", count=sum(result.out_of_order.values()), queues=dict(worst))


def _partial_response(
    event: dict[str, Any], failures: Mapping[str, Exception], context: Any
) -> PartialItemFailureResponse:
    """Report the records in `failures`, by message id; SQS redelivers them and deletes all others.

    Powertools takes records one by one. To store one by one would cost three requests a message where one put_many
    for all costs a fraction of one; so all are stored before, and what Powertools calls here looks up the outcome.

    Failures are reported one by one for FIFO queues, too: those behind a failed one need not come again, because it
    is not the source's order that counts but the seq. And a batch that failed whole is reported, not raised: poison
    alone in its batch is no error of the function.
    """
    # Heavy to import, and for SQS only.
    from aws_lambda_powertools.utilities.batch import (  # noqa: PLC0415
        BatchProcessor,
        EventType,
        process_partial_response,
    )

    def recall(record: SQSRecord) -> None:
        if record.message_id in failures:
            raise failures[record.message_id]

    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=event, record_handler=recall, processor=processor, context=context)
