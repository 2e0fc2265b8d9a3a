"""Records of Kinesis that can never be stored are kept in the dead letters of enqueue, with the reason."""

from __future__ import annotations

import json
from base64 import b64encode
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ReadTimeoutError

from stream_sort import StoreError, StoreUnavailable, StreamSorter, StreamSortError
from stream_sort.aws_lambda.dead_letter_queue import DeadLetterQueue
from stream_sort.aws_lambda.enqueue import EnqueueStep
from tests.functional.conftest import TUNING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table

STREAM = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"


@pytest.fixture
def sqs(dynamo: Table) -> Iterator[Any]:  # noqa: ARG001  # moto is on
    client = boto3.client("sqs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
    client.create_queue(QueueName="dead")
    yield client
    client.close()


@pytest.fixture
def enqueue(
    sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context, sqs: Any
) -> Callable[[Any], Any]:
    queue = DeadLetterQueue(sqs.get_queue_url(QueueName="dead")["QueueUrl"], sqs)
    function = EnqueueStep(sorter, telemetries["enqueue"], queue)
    return lambda event: function(event, context)


def kinesis(*bodies: Any) -> dict[str, Any]:
    datas = [body if isinstance(body, bytes) else json.dumps(body).encode() for body in bodies]
    return {
        "Records": [
            {
                "eventID": f"shardId-000000000000:{number}",
                "eventSource": "aws:kinesis",
                "eventSourceARN": STREAM,
                "kinesis": {"sequenceNumber": f"{number}", "data": b64encode(data).decode()},
            }
            for number, data in enumerate(datas)
        ]
    }


def kept(sqs: Any) -> list[tuple[str, dict[str, str]]]:
    """The bodies in the dead letters, each with what is told of it."""
    answer = sqs.receive_message(
        QueueUrl=sqs.get_queue_url(QueueName="dead")["QueueUrl"],
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        VisibilityTimeout=0,
    )
    return [
        (one["Body"], {name: value["StringValue"] for name, value in one["MessageAttributes"].items()})
        for one in answer.get("Messages", [])
    ]


def failed(answer: Any) -> list[str]:
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]


def test_a_poison_record_is_kept_as_it_came_with_the_reason(enqueue: Any, sqs: Any, sorter: StreamSorter) -> None:
    assert failed(enqueue(kinesis({"queue": "q", "seq": 0}, {"queue": "q"}))) == []
    assert sorter.position("q") == 0
    ((body, told),) = kept(sqs)
    assert json.loads(body) == {"queue": "q"}
    assert "seq" in told.pop("reason")
    assert told == {
        "source": "kinesis",
        "stream": STREAM,
        "record": "shardId-000000000000:1",
        "error": "InvalidMessage",
        "encoding": "text",
    }


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\x00", b"a\x1bb"])
def test_a_record_that_is_no_text_is_kept_as_base64(enqueue: Any, sqs: Any, data: bytes) -> None:
    enqueue(kinesis(data))
    ((body, told),) = kept(sqs)
    assert (body, told["encoding"]) == (b64encode(data).decode(), "base64")


@pytest.mark.parametrize("data", [b"", b"x" * 1_100_000])
def test_a_record_that_sqs_does_not_take_is_named(enqueue: Any, sqs: Any, data: bytes) -> None:
    enqueue(kinesis(data))
    ((body, told),) = kept(sqs)
    assert json.loads(body) == {"omitted_bytes": len(data), "stream": STREAM, "record": "shardId-000000000000:0"}
    assert told["encoding"] == "none"


def test_a_record_that_is_too_large_for_a_request_holds_up_no_shard(enqueue: Any, sqs: Any) -> None:
    def refuse(params: Any, **_: Any) -> Any:
        if len(params["body"]) > 5_000:
            return SimpleNamespace(status_code=413, headers={}), {
                "Error": {"Code": "413", "Message": "Request Entity Too Large"},
                "ResponseMetadata": {"HTTPStatusCode": 413},
            }
        return None

    sqs.meta.events.register("before-call.sqs.SendMessage", refuse)
    assert failed(enqueue(kinesis(b"x" * 6_000, {"queue": "q", "seq": 0}))) == []
    ((body, told),) = kept(sqs)
    assert (json.loads(body)["omitted_bytes"], told["encoding"]) == (6_000, "none")


def test_a_record_that_could_not_be_kept_comes_again(enqueue: Any, sqs: Any, sorter: StreamSorter) -> None:
    def fail(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://sqs")

    sqs.meta.events.register("before-call.sqs.SendMessage", fail)
    assert failed(enqueue(kinesis({"queue": "q", "seq": 0}, b"poison", {"queue": "q", "seq": 1}))) == ["1"]
    assert sorter.position("q") == 1
    with pytest.raises(StoreUnavailable, match="could not be kept"):
        enqueue(kinesis(b"poison"))


def test_i7_a_queue_that_lost_its_cursor_row_holds_up_no_shard(
    enqueue: Any, sqs: Any, sorter: StreamSorter, dynamo: Table
) -> None:
    StreamSorter(client=dynamo.client, **TUNING).put_many({"queue": "lost", "seq": seq} for seq in range(3))
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "lost"}})
    event = kinesis({"queue": "lost", "seq": 3}, {"queue": "good", "seq": 0})
    assert failed(enqueue(event)) == []
    assert sorter.position("good") == 0
    ((body, told),) = kept(sqs)
    assert (json.loads(body), told["error"]) == ({"queue": "lost", "seq": 3}, "CursorLost")


@pytest.mark.parametrize("queues", [("lost", "throttled"), ("throttled", "lost")])
def test_a_record_comes_again_for_a_message_that_may_be_stored_beside_one_of_a_lost_queue(
    enqueue: Any, sqs: Any, dynamo: Table, queues: tuple[str, str]
) -> None:
    StreamSorter(client=dynamo.client, **TUNING).put_many({"queue": "lost", "seq": seq} for seq in range(3))
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "lost"}})
    for operation in ("BatchExecuteStatement", "PutItem"):
        dynamo.fail(operation, "throttled")
    event = kinesis([{"queue": queue, "seq": 3} for queue in queues], {"queue": "good", "seq": 0})
    assert failed(enqueue(event)) == ["0"]
    assert kept(sqs) == []


def test_a_record_that_may_yet_be_stored_comes_again_where_no_queue_takes_it(
    enqueue: Any, sqs: Any, dynamo: Table
) -> None:
    StreamSorter(client=dynamo.client, **TUNING).put_many({"queue": "lost", "seq": seq} for seq in range(3))
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "lost"}})
    large = [{"queue": "lost", "seq": seq, "text": "x" * 390_000} for seq in (3, 4, 5)]
    assert failed(enqueue(kinesis({"queue": "good", "seq": 0}, large))) == ["1"]
    assert kept(sqs) == []


def test_what_somebody_must_put_right_for_all_queues_comes_again(enqueue: Any, sqs: Any, dynamo: Table) -> None:
    dynamo.client.delete_table(TableName="Items")
    with pytest.raises(StreamSortError):
        enqueue(kinesis({"queue": "q", "seq": 0}))
    assert kept(sqs) == []


@pytest.mark.parametrize("operation", ["PutItem", "GetItem"])
@pytest.mark.parametrize(
    "code", ["KMSDisabledException", "KMSThrottlingException", "ResourceInUseException", "Unheard"]
)
def test_a_code_that_nobody_knows_does_not_drain_the_stream_into_the_dead_letters(
    enqueue: Any, sqs: Any, dynamo: Table, code: str, operation: str
) -> None:
    def refuse(**_: Any) -> Any:
        body = {"Error": {"Code": code, "Message": "the key is disabled"}}
        return SimpleNamespace(status_code=400), body | {"ResponseMetadata": {"HTTPStatusCode": 400}}

    name = f"before-call.dynamodb.{operation}"
    dynamo.client.meta.events.register(name, refuse)
    event = kinesis({"queue": "q", "seq": 0}, {"queue": "r", "seq": 0})
    with pytest.raises(StoreError, match=code):
        enqueue(event)
    assert kept(sqs) == []
    dynamo.client.meta.events.unregister(name, refuse)
    assert (failed(enqueue(event)), kept(sqs)) == ([], [])


def test_i7_a_row_that_somebody_changed_holds_up_no_shard(
    enqueue: Any, sqs: Any, sorter: StreamSorter, dynamo: Table
) -> None:
    odd = {"queue": {"S": "odd"}, "seq": {"N": "2"}, "_ss_moved_at": {"S": "yesterday"}}
    dynamo.client.put_item(TableName="Cursor", Item=odd)
    assert failed(enqueue(kinesis({"queue": "odd", "seq": 3}, {"queue": "good", "seq": 0}))) == []
    assert sorter.position("good") == 0
    ((body, told),) = kept(sqs)
    assert (json.loads(body), told["error"]) == ({"queue": "odd", "seq": 3}, "RowDamaged")


def test_i7_a_queue_that_is_full_in_a_table_with_a_local_index_holds_up_no_shard(
    enqueue: Any, sqs: Any, sorter: StreamSorter, dynamo: Table
) -> None:
    code = "ItemCollectionSizeLimitExceededException"

    def refuse(params: dict[str, Any], **_: Any) -> Any:
        if b'"full"' not in params["body"] or b'"Items"' not in params["body"]:
            return None
        body = {"Error": {"Code": code, "Message": "full"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        return SimpleNamespace(status_code=400), body

    dynamo.client.meta.events.register("before-call.dynamodb.PutItem", refuse)
    assert failed(enqueue(kinesis({"queue": "full", "seq": 0}, {"queue": "good", "seq": 0}))) == []
    assert sorter.position("good") == 0
    ((body, told),) = kept(sqs)
    assert (json.loads(body), told["error"]) == ({"queue": "full", "seq": 0}, "StoreError")


def test_what_comes_again_anyway_is_not_kept_twice(enqueue: Any, sqs: Any, dynamo: Table) -> None:
    dynamo.fail("PutItem", '"bad"')
    event = kinesis(b"first", {"queue": "bad", "seq": 0}, b"second", {"queue": "good", "seq": 0})
    assert failed(enqueue(event)) == ["1"]
    assert [body for body, _ in kept(sqs)] == ["first"]
