"""Which kind of event this is: known by all the marks of a kind, never by one that a message might have as well."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.message import KeyNames


class Shape(StrEnum):
    """The kinds of events, by the name an error gives them."""

    MESSAGE = "one message"
    MESSAGES = "a list of messages"
    SQS = "an SQS batch"
    KINESIS = "a Kinesis batch"
    SNS = "an SNS notification"
    DYNAMODB_STREAM = "a batch of a DynamoDB stream"
    EVENTBRIDGE = "an EventBridge event"
    HTTP = "a request of an HTTP API or a function URL"
    REST = "a request of a REST API"


def shape_of(event: object, keys: KeyNames) -> Shape:
    """Return the kind of an event; InvalidInput if it is none.

    A message with an int for its seq comes first: no event of AWS has a number at its top level, so such a message
    may have any other fields, those of an event included.
    """
    if is_message(event, keys):
        return Shape.MESSAGE
    shape = _aws_shape(event)
    if shape is None and _is_list(event):
        shape = Shape.MESSAGES
    if shape is None and isinstance(event, dict) and {keys.queue, keys.seq} & event.keys():
        # One field of the two shows what was meant; the put says which one is missing.
        shape = Shape.MESSAGE
    if shape is None:
        known = ", ".join(Shape)
        raise InvalidInput(
            f"an event of an unknown shape ({type(event).__name__}); known are {known}. A message is an object with "
            f"the fields {keys.queue!r} and {keys.seq!r}; many are a list of them, or {{'messages': [...]}}"
        )
    return shape


def is_message(document: object, keys: KeyNames) -> bool:
    """Return True if a document says itself where it belongs, by a queue and an int for its seq."""
    if not isinstance(document, dict):
        return False
    seq = document.get(keys.seq)
    return isinstance(document.get(keys.queue), str) and isinstance(seq, int) and not isinstance(seq, bool)


def messages_in(document: Any) -> list[Any]:
    """Return the messages of a list, of `{"messages": [...]}`, or the document as the only one.

    InvalidInput for an empty list, from wherever: most sources would never learn that nothing was stored.
    """
    if not _is_list(document):
        return [document]
    messages = list(document if isinstance(document, list) else document["messages"])
    if not messages:
        raise InvalidInput("an empty list, which holds no message; send one message, or a list of at least one")
    return messages


def is_sns_envelope(document: object) -> bool:
    """Return True for what SNS puts around a message on its way to SQS, unless delivery is raw."""
    return (
        isinstance(document, dict)
        and document.get("Type") == "Notification"
        and _has_text(document, "MessageId", "TopicArn", "Message")
    )


def is_eventbridge_event(document: object) -> bool:
    """Return True for what EventBridge puts around a message, to any target."""
    return isinstance(document, dict) and "detail" in document and _has_text(document, "detail-type", "source", "id")


def _is_list(document: object) -> bool:
    if isinstance(document, dict) and document.keys() == {"messages"}:
        document = document["messages"]
    return isinstance(document, list)


def _aws_shape(event: object) -> Shape | None:
    if not isinstance(event, dict):
        return None
    if event.keys() == {"Records"} and isinstance(event["Records"], list) and event["Records"]:
        found = {_record_shape(record) for record in event["Records"]}
        return found.pop() if len(found) == 1 else None
    if is_eventbridge_event(event):
        return Shape.EVENTBRIDGE
    return _http_shape(event)


def _record_shape(record: object) -> Shape | None:
    """Return the kind of one record: by its source, and by what a function needs of it."""
    if not isinstance(record, dict):
        return None
    source = record.get("eventSource") or record.get("EventSource")
    shape, is_whole = _RECORDS.get(source, (None, None)) if isinstance(source, str) else (None, None)
    return shape if is_whole and is_whole(record) else None


def _http_shape(event: dict[str, Any]) -> Shape | None:
    context = event.get("requestContext")
    if not isinstance(context, dict):
        return None
    if event.get("version") == "2.0" and _has_text(context.get("http"), "method"):
        return Shape.HTTP
    if _has_text(event, "httpMethod", "resource") and _has_text(context, "httpMethod"):
        return Shape.REST
    return None


def _has_text(document: object, *names: str) -> bool:
    return isinstance(document, dict) and all(isinstance(document.get(name), str) for name in names)


_RECORDS: dict[str, tuple[Shape, Callable[[dict[str, Any]], bool]]] = {
    "aws:sqs": (Shape.SQS, lambda record: _has_text(record, "messageId", "body")),
    "aws:kinesis": (Shape.KINESIS, lambda record: _has_text(record.get("kinesis"), "sequenceNumber", "data")),
    "aws:sns": (Shape.SNS, lambda record: _has_text(record.get("Sns"), "MessageId", "Message")),
    "aws:dynamodb": (Shape.DYNAMODB_STREAM, lambda record: _has_text(record.get("dynamodb"), "SequenceNumber")),
}
