"""The partial batch response for SQS, by Powertools. Loaded when the first SQS event comes: it is heavy to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord


def partial_response(
    event: dict[str, Any], failures: Mapping[str, Exception], context: Any
) -> PartialItemFailureResponse:
    """Report the records in `failures`, by message id; SQS redelivers them and deletes all others.

    Powertools takes records one by one. To store one by one would cost three requests a message where one put_many
    for all costs a fraction of one; so all are stored before, and what Powertools calls here looks up the outcome.

    Failures are reported one by one for FIFO queues, too: those behind a failed one need not come again, because it
    is not the source's order that counts but the seq. And a batch that failed whole is reported, not raised: poison
    alone in its batch is no error of the function.
    """

    def recall(record: SQSRecord) -> None:
        if record.message_id in failures:
            raise failures[record.message_id]

    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=event, record_handler=recall, processor=processor, context=context)
