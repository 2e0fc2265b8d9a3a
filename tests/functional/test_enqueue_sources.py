"""What enqueue does with Kinesis batches, SNS notifications and EventBridge events."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import CursorLost, InvalidInput, StoreUnavailable, StreamSorter
from stream_sort.aws_lambda.enqueue import EnqueueStep
from tests.functional.conftest import TUNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table, Told

PLACED = {"queue": "orders-17", "seq": 0, "event": "placed", "total": 49.9}
POISON = ["not JSON", '{"queue": "orders-17"}', '{"queue": "orders-17", "seq": 1, "seq": 2}']


@pytest.fixture
def enqueue(sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context) -> Callable[[Any], Any]:
    function = EnqueueStep(sorter, telemetries["enqueue"])
    return lambda event: json.loads(json.dumps(function(event, context)))


def kinesis(*bodies: Any) -> dict[str, Any]:
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {
        "Records": [
            {
                "eventSource": "aws:kinesis",
                "kinesis": {"sequenceNumber": f"number-{index}", "data": b64encode(text.encode()).decode()},
            }
            for index, text in enumerate(texts)
        ]
    }


def message(seq: int, queue: str) -> dict[str, Any]:
    return {"queue": queue, "seq": seq}


def test_a_kinesis_batch_is_stored_and_released(enqueue: Any, sample: Any, sorter: StreamSorter, told: Told) -> None:
    assert enqueue(sample("enqueue_kinesis")) == {"batchItemFailures": []}
    assert [one["event"] for one in sorter.read("orders-17")] == ["placed", "paid", "packed"]
    assert told.metrics() == {"MessagesAccepted": 3, "CursorAdvanced": 3, "OutOfOrder": 1}


def test_i7_poison_does_not_hold_a_shard_and_is_logged_with_its_number(
    enqueue: Any, sorter: StreamSorter, told: Told
) -> None:
    event = kinesis(PLACED, *POISON)
    event["Records"][3]["kinesis"]["data"] = "no base64"
    assert enqueue(event) == {"batchItemFailures": []}
    assert sorter.position("orders-17") == 0
    assert told.metrics() == {"MessagesAccepted": 1, "Rejected": 3, "CursorAdvanced": 1}
    logged = told.logs(logging.ERROR)
    assert [record["record"] for record in logged] == ["number-1", "number-2", "number-3"]
    assert "not base64" in logged[2]["reason"]


def test_a_shard_goes_on_at_the_first_record_that_may_yet_be_stored(
    enqueue: Any, dynamo: Table, sorter: StreamSorter
) -> None:
    dynamo.fail("PutItem", '"bad"')
    event = kinesis("poison", message(0, "good"), message(0, "bad"), message(1, "bad"), message(1, "good"))
    assert enqueue(event) == {"batchItemFailures": [{"itemIdentifier": "number-2"}]}
    assert sorter.position("good") == 1


def test_a_record_of_several_messages_comes_again_for_any_that_may_yet_be_stored(enqueue: Any, dynamo: Table) -> None:
    dynamo.fail("PutItem", '"bad"')
    event = kinesis(message(0, "good"), [{"poison": True}, message(0, "bad")])
    assert enqueue(event) == {"batchItemFailures": [{"itemIdentifier": "number-1"}]}


def test_a_kinesis_batch_that_failed_whole_is_raised(enqueue: Any, dynamo: Table) -> None:
    dynamo.fail("PutItem", '"bad"')
    with pytest.raises(StoreUnavailable):
        enqueue(kinesis(message(0, "bad"), message(1, "bad")))


def test_i5_a_message_that_waits_for_a_lost_cursor_is_never_dropped(
    dynamo: Table, sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context, sample: Any
) -> None:
    sorter.put(PLACED)
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "orders-17"}})
    fresh = EnqueueStep(StreamSorter(client=dynamo.client, **TUNING), telemetries["enqueue"])
    event = kinesis(message(0, "good"), message(1, "orders-17"))
    assert fresh(event, context) == {"batchItemFailures": [{"itemIdentifier": "number-1"}]}
    with pytest.raises(CursorLost):
        fresh(sample("enqueue_eventbridge"), context)


@pytest.mark.parametrize("name", ["enqueue_sns", "enqueue_eventbridge"])
def test_a_notification_is_stored(enqueue: Any, sample: Any, sorter: StreamSorter, name: str) -> None:
    assert enqueue(sample(name)) is None
    assert list(sorter.read("orders-17")) == [PLACED]


@pytest.mark.parametrize("name", ["enqueue_sns", "enqueue_eventbridge"])
def test_a_notification_that_may_yet_be_stored_is_raised_so_that_lambda_retries(
    enqueue: Any, sample: Any, dynamo: Table, name: str
) -> None:
    dynamo.fail("PutItem", "orders-17")
    with pytest.raises(StoreUnavailable):
        enqueue(sample(name))


@pytest.mark.parametrize("body", POISON)
def test_a_poison_notification_is_logged_and_counted_and_raised_so_that_lambda_keeps_it(
    enqueue: Any, sample: Any, told: Told, body: str
) -> None:
    event = sample("enqueue_sns")
    event["Records"][0]["Sns"]["Message"] = body
    with pytest.raises(InvalidInput):
        enqueue(event)
    assert told.metrics() == {"Rejected": 1}
    assert [record["record"] for record in told.logs(logging.ERROR)] == ["95df01b4-ee98-5cb9-9903-4c221d41eb5e"]


@pytest.mark.parametrize("detail", [{}, {"queue": "", "seq": 0}, "text", 5, None])
def test_a_poison_event_is_logged_and_counted_and_raised_so_that_lambda_keeps_it(
    enqueue: Any, sample: Any, told: Told, detail: Any
) -> None:
    with pytest.raises(InvalidInput):
        enqueue(sample("enqueue_eventbridge") | {"detail": detail})
    assert told.metrics() == {"Rejected": 1}


def test_an_event_may_come_through_sns_and_its_detail_may_be_text(
    enqueue: Any, sample: Any, sorter: StreamSorter
) -> None:
    event = sample("enqueue_sns")
    inner = sample("enqueue_eventbridge") | {"detail": json.dumps(PLACED)}
    event["Records"][0]["Sns"]["Message"] = json.dumps(inner)
    enqueue(event)
    assert list(sorter.read("orders-17")) == [PLACED]
