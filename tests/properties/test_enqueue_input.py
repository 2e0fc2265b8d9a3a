"""I9 of enqueue and advance: whatever is given as an event or a body, nothing but a named error comes out."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_sort import StreamSorter, StreamSortError
from stream_sort.aws_lambda.advance import AdvanceStep
from stream_sort.aws_lambda.enqueue import EnqueueStep
from stream_sort.aws_lambda.telemetry import Telemetry

# Words that events and messages are made of, so that a random value is half an event now and then.
WORDS = [
    *("queue", "seq", "messages", "Records", "eventSource", "aws:sqs", "aws:kinesis", "aws:sns", "aws:dynamodb"),
    *("messageId", "body", "kinesis", "data", "sequenceNumber", "Sns", "MessageId", "Message", "Type", "Notification"),
    *("dynamodb", "Keys", "SequenceNumber", "S", "detail", "detail-type", "source", "id", "version", "2.0"),
    *("requestContext", "http", "method", "POST", "isBase64Encoded", "_ss_x"),
]
TEXTS = st.sampled_from(WORDS) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=12
)
MESSAGES = st.fixed_dictionaries({"queue": TEXTS | VALUES, "seq": st.integers(-2, 5) | VALUES}, optional={"x": VALUES})
DOCUMENTS = MESSAGES | st.lists(MESSAGES, max_size=4) | VALUES
BODIES = DOCUMENTS.map(json.dumps) | st.text(max_size=20)


@pytest.fixture(scope="module")
def telemetry() -> Telemetry:
    return Telemetry("input")


def enqueue(telemetry: Telemetry, event: Any) -> Any:
    """Answer as Lambda would: as JSON in UTF-8."""
    answer = EnqueueStep(StreamSorter.in_memory(), telemetry)(event, None)
    return json.loads(json.dumps(answer, ensure_ascii=False, allow_nan=False).encode())


def sqs(bodies: list[str]) -> dict[str, Any]:
    records = [
        {"messageId": str(index), "body": body, "eventSource": "aws:sqs", "attributes": {}}
        for index, body in enumerate(bodies)
    ]
    return {"Records": records}


@settings(deadline=None)
@given(event=DOCUMENTS)
@example(event={"queue": "\ud800", "seq": 0})
@example(event=[{"queue": "q", "seq": 0, "x": float("inf")}])
def test_i9_any_event_is_answered_or_refused_by_name(telemetry: Telemetry, event: Any) -> None:
    for function in (EnqueueStep, AdvanceStep):
        with suppress(StreamSortError):
            function(StreamSorter.in_memory(), telemetry)(event, None)


@settings(deadline=None)
@given(bodies=st.lists(BODIES, min_size=1, max_size=5))
@example(bodies=['{"queue": "\\ud800", "seq": 0}', "[" * 100_000, "9" * 5_000])
def test_i9_any_sqs_body_is_stored_or_reported_and_affects_no_other(telemetry: Telemetry, bodies: list[str]) -> None:
    good = json.dumps({"queue": "good queue", "seq": 0})
    answer = enqueue(telemetry, sqs([*bodies, good]))
    reported = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    assert reported <= {str(index) for index in range(len(bodies))}


@settings(deadline=None)
@given(data=BODIES.map(lambda body: body.encode("utf-8", "surrogatepass")) | st.binary(max_size=20))
def test_i9_no_kinesis_record_holds_its_shard_for_what_it_carries(telemetry: Telemetry, data: bytes) -> None:
    kinesis = {"sequenceNumber": "1", "data": b64encode(data).decode()}
    event = {"Records": [{"eventSource": "aws:kinesis", "kinesis": kinesis}]}
    assert enqueue(telemetry, event) == {"batchItemFailures": []}


@settings(deadline=None)
@given(body=BODIES | VALUES, encoded=st.booleans())
@example(body='{"queue": "q", "seq": "\\ud800", "\\ud800": 1}', encoded=False)
@example(body="\ud800", encoded=True)
def test_i9_any_request_is_answered(telemetry: Telemetry, body: Any, *, encoded: bool) -> None:
    context = {"http": {"method": "POST"}}
    event = {"version": "2.0", "requestContext": context, "body": body, "isBase64Encoded": encoded}
    response = enqueue(telemetry, event)
    assert response["statusCode"] in {200, 207, 400, 409}
    assert isinstance(json.loads(response["body"]), dict)
