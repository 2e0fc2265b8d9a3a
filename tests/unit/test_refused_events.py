"""Every wrapping in which an event that could not be stored is kept, taken off again."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.aws_lambda.refused_events import LEFT_OUT, StreamPlace, Wrapping, unwrap
from stream_sort.model.message import KeyNames

EVENTS = Path(__file__).parents[2] / "events"
KEYS = KeyNames()
ADA = {"queue": "ada", "seq": 0}
STREAM = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def sample(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def failed(payload: Any) -> str:
    """An asynchronous event as Lambda's destination keeps it."""
    return json.dumps(sample("enqueue_failed_event") | {"requestPayload": payload})


def set_aside(**attributes: str) -> dict[str, str]:
    told = {"source": "kinesis", "error": "InvalidMessage", "reason": "no field 'seq'", "stream": STREAM}
    return told | {"record": "shardId-000000000006:7", "encoding": "text"} | attributes


def seqs(body: str, attributes: dict[str, str] | None = None) -> list[int]:
    return [message["seq"] for message in unwrap(body, attributes or {}, KEYS).messages]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (ADA, [0]),
        ([ADA, {"queue": "ada", "seq": 1}], [0, 1]),
        ({"messages": [ADA]}, [0]),
        (sample("enqueue_sns"), [0]),
        (sample("enqueue_eventbridge"), None),
        (sample("enqueue_kinesis"), [1, 0, 2]),
        (sample("enqueue_sqs"), None),
        (sample("enqueue_http_one"), None),
        (sample("enqueue_rest_one"), None),
    ],
)
def test_an_event_wrapped_as_request_payload_is_not_refused(payload: Any, expected: list[int] | None) -> None:
    event = unwrap(failed(payload), {}, KEYS)
    assert event.wrapping is Wrapping.EVENT
    assert event.problem(KEYS) == ""
    assert event.messages
    assert expected is None or [message["seq"] for message in event.messages] == expected
    assert event.reason == (
        "StoreUnavailable: table 'stream-sort-items': PutItem did not succeed in 9 tries "
        "(RetriesExhausted after 3 tries)"
    )


@pytest.mark.parametrize("payload", [5, "text", None, {}, {"Records": []}, {"queue": "ada"}, []])
def test_what_holds_no_message_in_its_wrapping_says_so(payload: Any) -> None:
    assert unwrap(failed(payload), {}, KEYS).problem(KEYS)


def test_an_event_whose_payload_lambda_left_out_says_so() -> None:
    record = sample("enqueue_failed_event")
    del record["requestPayload"]
    event = unwrap(json.dumps(record), {}, KEYS)
    assert (event.wrapping, event.problem(KEYS)) == (Wrapping.EVENT, LEFT_OUT)


@pytest.mark.parametrize("encoding", ["text", "base64", "none"])
def test_a_body_whose_producer_names_kinesis_and_an_encoding_itself_is_a_body(encoding: str) -> None:
    event = unwrap(json.dumps(ADA), {"source": "kinesis", "encoding": encoding}, KEYS)
    assert (event.wrapping, event.problem(KEYS), event.messages) == (Wrapping.BODY, "", [ADA])


def test_an_event_of_a_functions_own_dead_letter_queue_is_taken() -> None:
    attributes = {"RequestID": "e4b46cbf", "ErrorCode": "200", "ErrorMessage": "out of time"}
    event = unwrap(json.dumps(sample("enqueue_sns")), attributes, KEYS)
    assert (event.wrapping, event.reason) == (Wrapping.EVENT, "200: out of time")
    assert [message["seq"] for message in event.messages] == [0]


def test_an_event_that_eventbridge_could_not_deliver_is_taken() -> None:
    attributes = {"RULE_ARN": "arn", "ERROR_CODE": "NO_PERMISSIONS", "ERROR_MESSAGE": "not allowed"}
    event = unwrap(json.dumps(sample("enqueue_eventbridge")), attributes, KEYS)
    assert event.reason == "NO_PERMISSIONS: not allowed"
    assert event.problem(KEYS) == ""
    assert event.messages


@pytest.mark.parametrize("body", [ADA, [ADA], {"messages": [ADA]}])
def test_a_body_that_came_from_the_queue_is_taken_as_it_is(body: Any) -> None:
    event = unwrap(json.dumps(body), {"trace": "of the producer"}, KEYS)
    assert (event.wrapping, event.reason, event.messages) == (Wrapping.BODY, "", [ADA])


@pytest.mark.parametrize("body", ["", "no JSON", '{"queue": "a", "queue": "b", "seq": 1}'])
def test_a_body_that_is_no_json_says_so(body: str) -> None:
    event = unwrap(body, {}, KEYS)
    assert event.messages == []
    assert "JSON" in event.problem(KEYS)


def test_a_message_is_a_message_whatever_fields_it_has() -> None:
    message = sample("enqueue_failed_event") | ADA
    event = unwrap(json.dumps(message), {}, KEYS)
    assert (event.wrapping, event.messages) == (Wrapping.BODY, [message])


def test_a_record_that_enqueue_set_aside_is_taken_with_its_reason() -> None:
    event = unwrap(json.dumps(ADA), set_aside(), KEYS)
    assert (event.wrapping, event.reason) == (Wrapping.RECORD, "InvalidMessage: no field 'seq'")
    assert event.messages == [ADA]
    assert seqs(b64encode(json.dumps(ADA).encode()).decode(), set_aside(encoding="base64")) == [0]
    assert unwrap("no base64", set_aside(encoding="base64"), KEYS).problem(KEYS) == "not base64 text"


def test_a_record_that_no_queue_takes_is_a_place_in_its_stream() -> None:
    event = unwrap('{"omitted_bytes": 1100000}', set_aside(encoding="none"), KEYS)
    assert event.place == StreamPlace(STREAM, "shardId-000000000006", "7", "7")
    assert event.place.is_kinesis


@pytest.mark.parametrize("as_text", [True, False])
def test_a_batch_of_kinesis_that_lambda_gave_up_on_is_taken_whole(*, as_text: bool) -> None:
    record = sample("enqueue_failed_batch")
    if not as_text:
        record["payload"] = json.loads(record["payload"])
    event = unwrap(json.dumps(record), {}, KEYS)
    assert event.wrapping is Wrapping.BATCH
    assert [message["seq"] for message in event.messages] == [1, 0, 2]
    assert event.reason == "Unhandled (RetryAttemptsExhausted after 1001 tries)"


def test_a_batch_without_its_records_is_a_place_in_a_stream() -> None:
    kinesis = unwrap(json.dumps(sample("enqueue_failed_batch_place")), {}, KEYS)
    table = unwrap(json.dumps(sample("advance_failed_batch_place")), {}, KEYS)
    assert kinesis.wrapping is table.wrapping is Wrapping.PLACE
    assert kinesis.place is not None
    assert table.place is not None
    assert (kinesis.place.is_kinesis, table.place.is_kinesis) == (True, False)
    assert kinesis.place.first.endswith("0001")
    assert kinesis.place.last.endswith("0003")


@given(JSON, st.dictionaries(st.sampled_from(["source", "encoding", "stream", "record", "error"]), st.text(max_size=9)))
def test_nothing_that_lies_in_a_queue_makes_it_raise(body: Any, attributes: dict[str, str]) -> None:
    for text in (json.dumps(body), failed(body), json.dumps(sample("enqueue_failed_batch") | {"payload": body})):
        for told in (attributes, set_aside(encoding="base64"), set_aside(encoding="base64") | attributes):
            event = unwrap(text, told, KEYS)
            event.problem(KEYS)


@given(st.text(max_size=30))
def test_no_text_makes_it_raise(body: str) -> None:
    for told in ({}, set_aside(), set_aside(encoding="base64"), set_aside(encoding="none")):
        unwrap(body, told, KEYS).problem(KEYS)
