"""What each source of enqueue is told of a message for which it is too late: its queue is trimmed beyond it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.aws_lambda.enqueue import EnqueueStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import StreamSorter
    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Told


@pytest.fixture
def enqueue(
    sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context
) -> Callable[[dict[str, Any]], Any]:
    sorter.put_many(message(seq) for seq in range(4))
    sorter.trim("q", 2, control_table=None)
    function = EnqueueStep(sorter, telemetries["enqueue"])
    return lambda event: json.loads(json.dumps(function(event, context)))


def message(seq: int) -> dict[str, Any]:
    return {"queue": "q", "seq": seq}


def test_a_caller_is_told_which_message_is_refused_and_why(enqueue: Any) -> None:
    answer = enqueue(message(1))
    assert answer["status"] == "rejected"
    (refused,) = answer["rejected"]
    assert (refused["error"], refused["retryable"]) == ("Trimmed", False)


def test_sqs_delivers_it_again_until_it_is_a_dead_letter(enqueue: Any, sorter: StreamSorter, told: Told) -> None:
    records = [
        {"messageId": f"id-{seq}", "body": json.dumps(message(seq)), "attributes": {}, "eventSource": "aws:sqs"}
        for seq in (1, 4)
    ]
    assert enqueue({"Records": records}) == {"batchItemFailures": [{"itemIdentifier": "id-1"}]}
    assert (sorter.position("q"), told.metrics()["Rejected"]) == (4, 1)


def test_kinesis_is_not_held_up_by_it(enqueue: Any, sorter: StreamSorter) -> None:
    records = [
        {
            "eventSource": "aws:kinesis",
            "kinesis": {"sequenceNumber": str(seq), "data": b64encode(json.dumps(message(seq)).encode()).decode()},
        }
        for seq in (1, 4)
    ]
    assert enqueue({"Records": records}) == {"batchItemFailures": []}
    assert sorter.position("q") == 4


def test_http_calls_it_a_bad_request(enqueue: Any) -> None:
    request = {"version": "2.0", "requestContext": {"http": {"method": "POST"}}, "body": json.dumps(message(1))}
    answer = enqueue(request)
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["rejected"][0]["error"] == "Trimmed"
