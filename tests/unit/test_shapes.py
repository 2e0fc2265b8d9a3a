from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stream_sort import InvalidInput
from stream_sort.aws_lambda.redrives import RedriveRequest, wanted_by
from stream_sort.aws_lambda.refused_events import Wrapping, unwrap
from stream_sort.aws_lambda.shapes import Shape, shape_of
from stream_sort.model.message import KeyNames

EVENTS = Path(__file__).parents[2] / "events"
SHAPES = {
    "advance_items_stream": Shape.DYNAMODB_STREAM,
    "enqueue_direct_list": Shape.MESSAGES,
    "enqueue_direct_one": Shape.MESSAGE,
    "enqueue_eventbridge": Shape.EVENTBRIDGE,
    # The note of S3 that a failed batch was kept: an event like any other of EventBridge.
    "enqueue_failed_batch_note": Shape.EVENTBRIDGE,
    "enqueue_http_mixed": Shape.HTTP,
    "enqueue_http_one": Shape.HTTP,
    "enqueue_kinesis": Shape.KINESIS,
    "enqueue_rest_one": Shape.REST,
    "enqueue_sns": Shape.SNS,
    "enqueue_sqs": Shape.SQS,
    "enqueue_sqs_poison": Shape.SQS,
    "process_cursor_stream": Shape.DYNAMODB_STREAM,
    "process_retry_queue": Shape.SQS,
    "sweep_schedule": Shape.EVENTBRIDGE,
}

# What Lambda keeps of an event it gave up on: read by `stream-sort dead-letters`, and sent to no function.
GIVEN_UP = {
    "advance_failed_batch_place": Wrapping.PLACE,
    "enqueue_failed_batch": Wrapping.BATCH,
    "enqueue_failed_batch_place": Wrapping.PLACE,
    "enqueue_failed_event": Wrapping.EVENT,
}


def sample(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


def test_every_sample_has_a_shape() -> None:
    # A redrive is what nobody but an operator sends, and to process only: it has a mark of its own.
    assert {path.stem for path in EVENTS.glob("*.json")} == {*SHAPES, *GIVEN_UP, "process_redrive"}
    assert wanted_by(sample("process_redrive")) == RedriveRequest("orders-17")
    assert not any(wanted_by(sample(name)) for name in SHAPES)


@pytest.mark.parametrize(("name", "wrapping"), GIVEN_UP.items())
def test_a_sample_that_lambda_gave_up_on_is_no_event_of_a_function(name: str, wrapping: Wrapping) -> None:
    with pytest.raises(InvalidInput, match="unknown shape"):
        shape_of(sample(name), KeyNames())
    assert unwrap(json.dumps(sample(name)), {}, KeyNames()).wrapping is wrapping


@pytest.mark.parametrize(("name", "shape"), SHAPES.items())
def test_every_sample_is_known_by_its_marks(name: str, shape: Shape) -> None:
    assert shape_of(sample(name), KeyNames()) is shape


@pytest.mark.parametrize("keys", [KeyNames("source", "id"), KeyNames("body", "Records"), KeyNames("version", "http")])
@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape is not Shape.MESSAGE])
def test_an_event_of_aws_is_known_whatever_the_key_names(name: str, keys: KeyNames) -> None:
    assert shape_of(sample(name), keys) is SHAPES[name]


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape is not Shape.MESSAGES])
def test_an_event_with_a_queue_and_a_seq_is_a_message(name: str) -> None:
    assert shape_of(sample(name) | {"queue": "q", "seq": 1}, KeyNames()) is Shape.MESSAGE


@pytest.mark.parametrize("seq", [True, "1", 1.0, None, {}])
def test_a_message_with_a_bad_seq_is_still_a_message(seq: Any) -> None:
    assert shape_of({"queue": "q", "seq": seq}, KeyNames()) is Shape.MESSAGE


@pytest.mark.parametrize(
    "event",
    [
        {"Records": [sample("enqueue_sqs")["Records"][0], sample("enqueue_kinesis")["Records"][0]]},
        {"Records": [{"eventSource": "aws:sqs"}]},
        {"Records": [{"eventSource": "aws:s3", "s3": {}}]},
        {"Records": "text"},
        {"version": "2.0", "requestContext": {}},
        {"detail-type": "x", "source": "y", "detail": {}},
        {"messages": {}},
        b"bytes",
    ],
    ids=lambda event: str(event)[:40],
)
def test_i9_half_of_the_marks_are_not_enough(event: Any) -> None:
    with pytest.raises(InvalidInput, match="unknown shape"):
        shape_of(event, KeyNames())
