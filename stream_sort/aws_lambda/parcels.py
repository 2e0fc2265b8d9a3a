"""From records to messages: what each record of an event carries, unwrapped and read as strict JSON."""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.shapes import Shape, is_eventbridge_event, is_message, is_sns_envelope, messages_in
from stream_sort.errors import InvalidInput
from stream_sort.formats.json_text import loads

if TYPE_CHECKING:
    from stream_sort.model.message import KeyNames


@dataclass(frozen=True, slots=True)
class RecordParcel:
    """What one record carried: messages, or the error that kept them from being read.

    `name` is what its source calls it: a message id, a sequence number.
    """

    name: str
    messages: list[Any] = field(default_factory=list)
    error: InvalidInput | None = None


def parcels_of(event: dict[str, Any], shape: Shape, keys: KeyNames) -> list[RecordParcel]:
    """Return the parcels of an event, in its order; one that cannot be read keeps no other from being read."""
    records = [event] if shape is Shape.EVENTBRIDGE else event["Records"]
    return [_parcel(record, shape, keys) for record in records]


def read_body(body: str | bytes, keys: KeyNames) -> list[Any]:
    """Return the messages of a body: one, a list of them, or either in an envelope of SNS or EventBridge."""
    return _messages(loads(body), keys)


def from_base64(text: str) -> bytes:
    """Return the bytes of a base64 text, or InvalidInput."""
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("not base64 text") from None


def _parcel(record: dict[str, Any], shape: Shape, keys: KeyNames) -> RecordParcel:
    name = _name(record, shape)
    try:
        return RecordParcel(name, _messages(_document(record, shape), keys))
    except InvalidInput as error:
        return RecordParcel(name, error=error)


def _name(record: dict[str, Any], shape: Shape) -> str:
    match shape:
        case Shape.SQS:
            return str(record["messageId"])
        case Shape.SNS:
            return str(record["Sns"]["MessageId"])
        case Shape.KINESIS:
            return str(record["kinesis"]["sequenceNumber"])
        case _:
            return str(record["id"])


def _document(record: dict[str, Any], shape: Shape) -> Any:
    match shape:
        case Shape.SQS:
            return loads(record["body"])
        case Shape.SNS:
            return loads(record["Sns"]["Message"])
        case Shape.KINESIS:
            return loads(from_base64(record["kinesis"]["data"]))
        case _:
            return record


def _messages(document: Any, keys: KeyNames) -> list[Any]:
    """Return what stands in the envelopes; EventBridge may send through SNS, so there may be one in the other."""
    if is_sns_envelope(document) and not is_message(document, keys):
        document = loads(document["Message"])
    if is_eventbridge_event(document) and not is_message(document, keys):
        # The scheduler gives its detail as text.
        detail = document["detail"]
        document = loads(detail) if isinstance(detail, str) else detail
    return messages_in(document)
