"""What lies where failed events are kept: every wrapping that Lambda, EventBridge, SQS or `enqueue` puts around one.

Pure: it takes texts and attributes, and knows no queue and no bucket.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.http_api import request_body
from stream_sort.aws_lambda.parcels import RecordParcel, parcels_of, read_body
from stream_sort.aws_lambda.shapes import Shape, is_message, messages_in, shape_of
from stream_sort.errors import InvalidInput, InvalidMessage
from stream_sort.formats.json_text import loads
from stream_sort.model.message import check_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.model.message import KeyNames

# Attributes that say why: ours, of a function's dead-letter queue, of an EventBridge rule's or schedule's.
REASONS = (("error", "reason"), ("ErrorCode", "ErrorMessage"), ("ERROR_CODE", "ERROR_MESSAGE"))
ENCODINGS = frozenset({"text", "base64", "none"})
# `enqueue` notes all of these on a record; a producer may use some of the names for its own.
SET_ASIDE = ("error", "reason", "stream", "record")
BATCHES = ("KinesisBatchInfo", "DDBStreamBatchInfo")
LEFT_OUT = "Lambda left its payload out, as it was too large for a queue: send it again from its source"


class Wrapping(StrEnum):
    """What is around an event, by the name that people get to read."""

    BODY = "a body of a queue"
    RECORD = "a Kinesis record set aside by enqueue"
    EVENT = "an event that enqueue failed on"
    BATCH = "a Kinesis batch that Lambda gave up on"
    PLACE = "a place in a stream that Lambda gave up on"


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Where records stand in a stream, by its ARN: from the first sequence number to the last, both included."""

    stream: str
    shard: str
    first: str
    last: str

    @property
    def is_kinesis(self) -> bool:
        """Return True for a stream of Kinesis, False for that of a table."""
        return self.stream.split(":")[2:3] == ["kinesis"]


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """An event that could not be stored: why, as far as it was noted, and what it carried.

    With a `place`, it carried no more than that: the records are in their stream, if they still are.
    """

    wrapping: Wrapping
    reason: str
    parcels: tuple[RecordParcel, ...] = ()
    place: StreamPlace | None = None

    @property
    def messages(self) -> list[Any]:
        """All that could be read of it."""
        return [message for parcel in self.parcels for message in parcel.messages]

    def problem(self, keys: KeyNames) -> str:
        """Say why it can never be stored as it is; empty if nothing is known against it."""
        for parcel in self.parcels:
            if parcel.error is not None:
                return str(parcel.error)
            for message in parcel.messages:
                try:
                    check_message(message, keys)
                except InvalidMessage as error:
                    return str(error)
        return ""


def unwrap(body: str, attributes: Mapping[str, str], keys: KeyNames) -> RefusedEvent:
    """Return the event in a body, whatever is around it. Never raises: what cannot be read says so.

    A message that says itself where it belongs is a message, whatever other fields it has.
    """
    if _is_set_aside(attributes):
        return _set_aside(body, attributes, keys)
    why = _noted(attributes)
    try:
        document = loads(body)
    except InvalidInput as error:
        return RefusedEvent(Wrapping.BODY, why, (RecordParcel("body", error=error),))
    if not is_message(document, keys):
        if _is_invocation_record(document):
            return _invocation(document, keys)
        if isinstance(document, dict) and document.keys() == {"Records"}:
            # As a function's own dead-letter queue gets it.
            return RefusedEvent(Wrapping.EVENT, why, _parcels(document, keys))
    try:
        return RefusedEvent(Wrapping.BODY, why, (RecordParcel("body", read_body(body, keys)),))
    except InvalidInput as error:
        return RefusedEvent(Wrapping.BODY, why, (RecordParcel("body", error=error),))


def kinesis_event(stream: str, shard: str, records: list[tuple[str, bytes]]) -> dict[str, Any]:
    """Return the event that Lambda makes of records, each a sequence number and its data."""
    return {
        "Records": [
            {
                "eventSource": "aws:kinesis",
                "eventSourceARN": stream,
                "eventID": f"{shard}:{number}",
                "kinesis": {"sequenceNumber": number, "data": b64encode(data).decode()},
            }
            for number, data in records
        ]
    }


def _is_set_aside(attributes: Mapping[str, str]) -> bool:
    """Return True for what DeadLetterQueue noted beside a record."""
    noted = attributes.get("source") == "kinesis" and attributes.get("encoding") in ENCODINGS
    return noted and all(attributes.get(name) for name in SET_ASIDE)


def _set_aside(body: str, attributes: Mapping[str, str], keys: KeyNames) -> RefusedEvent:
    """Return what DeadLetterQueue kept."""
    stream = attributes.get("stream", "")
    shard, _, number = attributes.get("record", "").partition(":")
    if attributes["encoding"] == "none":
        place = StreamPlace(stream, shard, number, number)
        return RefusedEvent(Wrapping.RECORD, _noted(attributes), place=place)
    event = kinesis_event(stream, shard, [(number, body.encode())])
    if attributes["encoding"] == "base64":
        # As it came, and perhaps not even base64.
        event["Records"][0]["kinesis"]["data"] = body
    return RefusedEvent(Wrapping.RECORD, _noted(attributes), tuple(parcels_of(event, Shape.KINESIS, keys)))


def _is_invocation_record(document: Any) -> bool:
    """Return True for what Lambda sends to a destination of failures."""
    context = document.get("requestContext") if isinstance(document, dict) else None
    named = isinstance(context, dict) and all(
        isinstance(context.get(name), str) for name in ("functionArn", "condition")
    )
    # Without a payload and without a batch it was asynchronous, and its payload was left out.
    return named and isinstance(document.get("version"), str) and "timestamp" in document


def _invocation(document: dict[str, Any], keys: KeyNames) -> RefusedEvent:
    reason = _answered(document)
    info = next((document[name] for name in BATCHES if isinstance(document.get(name), dict)), None)
    if info is None:
        if "requestPayload" not in document:
            return RefusedEvent(Wrapping.EVENT, reason, (RecordParcel("event", error=InvalidInput(LEFT_OUT)),))
        return RefusedEvent(Wrapping.EVENT, reason, _parcels(document["requestPayload"], keys))
    if "payload" not in document:
        said = [str(info.get(name, "")) for name in ("shardId", "startSequenceNumber", "endSequenceNumber")]
        return RefusedEvent(Wrapping.PLACE, reason, place=StreamPlace(str(info.get("streamArn", "")), *said))
    payload = document["payload"]
    try:
        # S3 gets the event as text.
        event = loads(payload) if isinstance(payload, str) else payload
    except InvalidInput as error:
        return RefusedEvent(Wrapping.BATCH, reason, (RecordParcel("batch", error=error),))
    return RefusedEvent(Wrapping.BATCH, reason, _parcels(event, keys))


def _parcels(event: Any, keys: KeyNames) -> tuple[RecordParcel, ...]:
    """Return what `enqueue` would have stored of an event."""
    try:
        shape = shape_of(event, keys)
        match shape:
            case Shape.SQS | Shape.KINESIS | Shape.SNS | Shape.EVENTBRIDGE:
                return tuple(parcels_of(event, shape, keys))
            case Shape.MESSAGE:
                return (RecordParcel("event", [event]),)
            case Shape.MESSAGES:
                return (RecordParcel("event", messages_in(event)),)
            case Shape.HTTP | Shape.REST:
                return (RecordParcel("event", read_body(request_body(event), keys)),)
            case _:
                return (RecordParcel("event", error=InvalidInput(f"enqueue does not take {shape}")),)
    except InvalidInput as error:
        return (RecordParcel("event", error=error),)


def _noted(attributes: Mapping[str, str]) -> str:
    for names in REASONS:
        if said := [attributes[name] for name in names if attributes.get(name)]:
            return ": ".join(said)
    return ""


def _answered(document: dict[str, Any]) -> str:
    """Say what the function answered, and why Lambda tried no more."""
    answer, context = document.get("responsePayload"), document.get("responseContext")
    said = [answer.get("errorType"), answer.get("errorMessage")] if isinstance(answer, dict) else []
    if not any(said) and isinstance(context, dict):
        said = [context.get("functionError")]
    asked = document["requestContext"]
    tries = asked.get("approximateInvokeCount")
    ended = f"{asked['condition']} after {tries} tries" if isinstance(tries, int) else asked["condition"]
    return f"{': '.join(str(one) for one in said if one) or 'no answer'} ({ended})"
