"""What enqueue answers to HTTP requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.aws_lambda.enqueue import EnqueueStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import StreamSorter
    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table

LARGE = {"queue": "orders-17", "seq": 0, "body": "secret" * 100_000}
BAD = {"queue": "orders-17", "seq": 0.5, "body": "secret"}


@pytest.fixture
def enqueue(sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context) -> Callable[[Any], Any]:
    function = EnqueueStep(sorter, telemetries["enqueue"])
    return lambda event: function(event, context)


@pytest.fixture
def post(enqueue: Any, sample: Any) -> Callable[[Any], tuple[int, Any]]:
    """Posts a body, answers status and parsed body."""

    def post(body: Any) -> tuple[int, Any]:
        text = body if isinstance(body, str) else json.dumps(body)
        response = enqueue(sample("enqueue_http_one") | {"body": text})
        assert response["headers"]["content-type"] == "application/json"
        assert "secret" not in response["body"]
        return response["statusCode"], json.loads(response["body"])

    return post


def message(seq: int, queue: str = "orders-17", **fields: Any) -> dict[str, Any]:
    return {"queue": queue, "seq": seq, **fields}


@pytest.mark.parametrize("name", ["enqueue_http_one", "enqueue_rest_one"])
def test_a_stored_message_is_answered_with_200_and_its_outcome(
    enqueue: Any, sample: Any, sorter: StreamSorter, name: str
) -> None:
    response = enqueue(sample(name))
    assert response["statusCode"] == 200
    assert json.loads(response["body"])["accepted"] == 1
    assert sorter.position("orders-17") == 0


def test_messages_that_fare_differently_are_answered_with_207(enqueue: Any, sample: Any, sorter: StreamSorter) -> None:
    response = enqueue(sample("enqueue_http_mixed"))
    body = json.loads(response["body"])
    assert response["statusCode"] == 207
    assert body["accepted"] == 2
    assert [(one["message"], one["error"]) for one in body["rejected"]] == [(1, "InvalidMessage")]
    assert sorter.position("orders-17") == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([message(0), message(1)], 200),
        ([], 400),
        ({"messages": []}, 400),
        ("not JSON", 400),
        ('{"queue": "orders-17", "seq": 0, "seq": 1}', 400),
        ({"no": "message"}, 400),
        ("5", 400),
        (BAD, 400),
        ([BAD, "text"], 400),
        ([BAD, LARGE], 400),
        (LARGE, 413),
        ([message(0), LARGE], 207),
    ],
    ids=lambda value: str(value)[:40],
)
def test_the_status_tells_what_became_of_the_whole_request(post: Any, body: Any, status: int) -> None:
    assert post(body)[0] == status


def test_i9_a_refusal_says_what_and_where(post: Any) -> None:
    assert post('{"queue": "q", "seq": NaN}') == (
        400,
        {
            "error": "InvalidInput",
            "reason": "not usable JSON: NaN is not a JSON number; use null or text: line 1 column 23 (char 22)",
            "retryable": False,
        },
    )
    status, body = post(BAD)
    assert (status, body["rejected"][0]["message"]) == (400, 0)
    assert "field 'seq': a seq is an int, not float" in body["rejected"][0]["reason"]


def test_a_duplicate_is_welcome_and_a_conflict_is_answered_with_409(post: Any) -> None:
    assert post(message(0))[0] == 200
    assert post(message(0))[0] == 200
    status, body = post(message(0, text="secret"))
    assert (status, body["conflicts"]) == (409, [message(0)])
    assert post([message(0, text="secret"), message(1)])[0] == 207


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem"])
def test_a_request_that_may_succeed_later_is_told_when_to_come_again(
    enqueue: Any, sample: Any, dynamo: Table, operation: str
) -> None:
    dynamo.fail(operation, "orders-17")
    response = enqueue(sample("enqueue_http_one"))
    assert (response["statusCode"], response["headers"]["retry-after"]) == (503, "1")
    dynamo.faults.clear()
    assert enqueue(sample("enqueue_http_one"))["statusCode"] == 200


def test_only_post_is_allowed(enqueue: Any, sample: Any) -> None:
    event = sample("enqueue_http_one")
    event["requestContext"]["http"]["method"] = "GET"
    response = enqueue(event)
    assert (response["statusCode"], response["headers"]["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"body": None}, "no body"),
        ({"body": ""}, "no body"),
        ({"body": "=secret=", "isBase64Encoded": True}, "not base64"),
        ({"body": "/w==", "isBase64Encoded": True}, "not UTF-8"),
    ],
    ids=["null", "empty", "no base64", "no UTF-8"],
)
def test_a_body_that_cannot_be_read_is_answered_with_400(enqueue: Any, sample: Any, change: Any, reason: str) -> None:
    response = enqueue(sample("enqueue_http_one") | change)
    assert response["statusCode"] == 400
    assert reason in response["body"]
    assert "secret" not in response["body"]


def test_a_request_without_a_body_is_answered_with_400(enqueue: Any, sample: Any) -> None:
    event = sample("enqueue_rest_one")
    del event["body"]
    assert enqueue(event)["statusCode"] == 400
