"""Direct invokes of enqueue, and its SQS batches."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidInput, StoreError, StoreUnavailable, StreamSorter, TableNotFound
from stream_sort.aws_lambda.enqueue import EnqueueStep
from tests.functional.conftest import TUNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table, Told


@pytest.fixture
def enqueue(sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context) -> Callable[[Any], Any]:
    function = EnqueueStep(sorter, telemetries["enqueue"])
    # Lambda sends the answer as JSON
    return lambda event: json.loads(json.dumps(function(event, context)))


def message(seq: Any, queue: str = "orders-17", **fields: Any) -> dict[str, Any]:
    return {"queue": queue, "seq": seq, **fields}


def sqs(*bodies: Any) -> dict[str, Any]:
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {
        "Records": [
            {"messageId": f"id-{number}", "body": text, "attributes": {}, "eventSource": "aws:sqs"}
            for number, text in enumerate(texts)
        ]
    }


def failed(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_single_message_is_answered_with_its_status(enqueue: Any, sample: Any, sorter: StreamSorter) -> None:
    assert enqueue(sample("enqueue_direct_one")) == {
        "status": "accepted",
        "accepted": 1,
        "duplicates": [],
        "conflicts": [],
        "late": [],
        "rejected": [],
        "stalled": [],
        "unreleased": [],
        "advances": [{"queue": "orders-17", "old": -1, "new": 0, "released": 1}],
    }
    assert list(sorter.read("orders-17")) == [sample("enqueue_direct_one")]


@pytest.mark.parametrize("wrap", [lambda messages: messages, lambda messages: {"messages": messages}])
def test_a_list_of_messages_is_answered_with_its_advances(enqueue: Any, sample: Any, wrap: Any) -> None:
    answer = enqueue(wrap(sample("enqueue_direct_list")))
    assert answer["accepted"] == 3
    assert answer["advances"] == [{"queue": "orders-17", "old": -1, "new": 2, "released": 3}]
    assert "status" not in answer


def test_every_outcome_is_told_with_its_place_and_every_refusal_with_its_index(
    enqueue: Any, sorter: StreamSorter, told: Told
) -> None:
    sorter.put(message(0))
    sorter.skip("orders-17", 1)
    again = message(2)
    answer = enqueue(
        [message(0), message(0, body="other"), message(1), again, again, message(0) | {"seq": True}, "text", message(3)]
    )
    assert answer["accepted"] == 2
    assert answer["duplicates"] == [message(0), message(2)]
    assert answer["conflicts"] == [message(0)]
    assert answer["late"] == [message(1)]
    assert [(one["message"], one["error"], one["retryable"]) for one in answer["rejected"]] == [
        (5, "InvalidMessage", False),
        (6, "InvalidMessage", False),
    ]
    assert "a seq is an int, not bool" in answer["rejected"][0]["reason"]
    assert told.metrics() == {
        "MessagesAccepted": 2,
        "Duplicates": 2,
        "Conflicts": 1,
        "Late": 1,
        "Rejected": 2,
        "CursorAdvanced": 2,
    }
    warned = {record["text"]: record["places"] for record in told.logs(logging.WARNING) if "places" in record}
    assert warned == {"conflicts": [message(0)], "late": [message(1)]}


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [({}, {}, "duplicate"), ({}, {"body": 1}, "conflict"), ({"seq": 1}, {"seq": "x"}, "rejected")],
)
def test_the_status_of_a_single_message_is_its_outcome(enqueue: Any, first: Any, second: Any, status: str) -> None:
    enqueue(message(0) | first)
    assert enqueue(message(0) | second)["status"] == status


@pytest.mark.parametrize(
    "fields",
    [
        {"Records": [{"eventSource": "aws:sqs", "messageId": "1", "body": "{}"}]},
        {"version": "2.0", "requestContext": {"http": {"method": "POST"}}, "body": "{}"},
        {"detail-type": "x", "source": "y", "id": "z", "detail": {"queue": "other", "seq": 0}},
        {"messages": [{"queue": "other", "seq": 0}]},
        {"Type": "Notification", "MessageId": "1", "TopicArn": "2", "Message": "{}"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_message_with_the_fields_of_an_event_is_a_message(enqueue: Any, sorter: StreamSorter, fields: Any) -> None:
    assert enqueue(message(0, **fields))["status"] == "accepted"
    assert failed(enqueue(sqs(message(1, **fields)))) == []
    assert list(sorter.read("orders-17")) == [message(0, **fields), message(1, **fields)]


@pytest.mark.parametrize("event", [None, 5, "text", {}, {"Records": []}, {"detail": {}}], ids=repr)
def test_i9_an_event_of_no_known_shape_is_told_the_shapes_there_are(enqueue: Any, event: Any) -> None:
    with pytest.raises(InvalidInput, match=r"known are one message, a list .*an SQS batch.*'queue' and 'seq'"):
        enqueue(event)


@pytest.mark.parametrize(("given", "missing"), [({"queue": "q"}, "seq"), ({"seq": 0}, "queue")])
def test_i9_a_message_without_its_queue_or_seq_is_refused_alone_as_in_a_list(
    enqueue: Any, given: Any, missing: str
) -> None:
    (alone,) = enqueue(given)["rejected"]
    assert [alone] == enqueue([given])["rejected"]
    assert f"no field {missing!r}" in alone["reason"]


def test_what_a_caller_may_never_read_is_logged_without_its_payload(enqueue: Any, told: Told) -> None:
    refused = [message("x", text="secret"), {"seq": 5, "text": "secret"}, ["secret"]]
    enqueue([message(0), *refused])
    (logged,) = told.logs(logging.WARNING)
    assert (logged["text"], logged["count"]) == ("messages were refused", 3)
    places = [(one["message"], one.get("queue"), one.get("seq")) for one in logged["refused"]]
    assert places == [(1, "orders-17", "x"), (2, None, 5), (3, None, None)]
    assert all(one["error"] == "InvalidMessage" for one in logged["refused"])
    assert "secret" not in told.everything()


def test_a_batch_of_a_table_stream_is_sent_to_advance(enqueue: Any, sample: Any) -> None:
    with pytest.raises(InvalidInput, match="is for advance"):
        enqueue(sample("advance_items_stream"))


def test_a_direct_invoke_raises_when_a_retry_may_help_any_of_it(
    enqueue: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    dynamo.fail("PutItem", "orders-17")
    with pytest.raises(StoreUnavailable, match="0 of 2 messages are stored, 2 are not"):
        enqueue([message(0), message(1)])
    assert told.metrics() == {"NotStored": 2}
    event = [message(0), message(0, "orders-18"), {}]
    with pytest.raises(StoreUnavailable) as raised:
        enqueue(event)
    text = str(raised.value)
    assert "1 of 3 messages are stored, 1 are not, and 1 are refused for good" in text
    assert "the same call can be made again: what is stored is then a duplicate. The first error: PutItem" in text
    assert sorter.position("orders-18") == 0
    dynamo.faults.clear()
    answer = enqueue(event)
    assert (answer["accepted"], answer["duplicates"]) == (1, [message(0, "orders-18")])
    assert [(one["message"], one["retryable"]) for one in answer["rejected"]] == [(2, False)]


def test_i5_a_message_sent_and_forgotten_to_a_queue_that_must_be_put_right_is_kept_by_lambda(
    dynamo: Table, sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context
) -> None:
    sorter.put(message(0))
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "orders-17"}})
    fresh = EnqueueStep(StreamSorter(client=dynamo.client, **TUNING), telemetries["enqueue"])
    with pytest.raises(StoreError, match="0 of 1 messages are stored, 1 are not") as raised:
        fresh(message(1), context)
    assert "can be made again once somebody has put this right" in str(raised.value)
    assert "stream-sort recover" in str(raised.value)
    assert not raised.value.retryable
    event = [message(1), message(0, "orders-18"), {}]
    with pytest.raises(StoreError, match="1 of 3 messages are stored, 1 are not, and 1 are refused for good"):
        fresh(event, context)
    sorter.recover("orders-17", control_table=None)
    answer = fresh(event, context)
    assert (answer["accepted"], answer["duplicates"]) == (1, [message(0, "orders-18")])


def test_a_direct_invoke_raises_when_aws_answers_with_a_code_that_nobody_knows(enqueue: Any, dynamo: Table) -> None:
    def refuse(**_: Any) -> Any:
        body = {"Error": {"Code": "Unheard", "Message": "?"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
        return SimpleNamespace(status_code=400), body

    dynamo.client.meta.events.register("before-call.dynamodb.PutItem", refuse)
    with pytest.raises(StoreError, match="Unheard"):
        enqueue(message(0))


def test_a_direct_invoke_raises_when_the_tables_are_not_there(enqueue: Any, dynamo: Table) -> None:
    dynamo.client.delete_table(TableName="Items")
    with pytest.raises(TableNotFound, match="is the stack deployed there"):
        enqueue([message(0)])


def test_a_missing_items_table_is_met_once_and_not_once_a_record(enqueue: Any, dynamo: Table) -> None:
    dynamo.client.delete_table(TableName="Items")
    dynamo.calls.clear()
    with pytest.raises(TableNotFound, match="no table 'Items' in eu-west-1"):
        enqueue(sqs(*(message(0, f"queue-{number}") for number in range(10))))
    assert dynamo.calls == ["Query"]


def test_conflicts_are_refused_where_they_are_to_be_raised(
    dynamo: Table, telemetries: dict[str, Telemetry], context: Context, told: Told
) -> None:
    enqueue = EnqueueStep(StreamSorter(client=dynamo.client, on_conflict="raise", **TUNING), telemetries["enqueue"])
    event = sqs(message(0), message(0, body="other"), message(1))
    assert failed(enqueue(event, context)) == ["id-1"]
    assert told.metrics() == {"MessagesAccepted": 2, "Conflicts": 1, "CursorAdvanced": 2}
    answer = enqueue([message(0, body="other")], context)
    assert [one["error"] for one in answer["rejected"]] == ["SequenceConflict"]
    assert answer["conflicts"] == []


def test_an_sqs_batch_is_unwrapped_and_stored(enqueue: Any, sample: Any, sorter: StreamSorter, told: Told) -> None:
    assert enqueue(sample("enqueue_sqs")) == {"batchItemFailures": []}
    assert [one["event"] for one in sorter.read("orders-17")] == ["placed", "paid", "packed", "sent"]
    assert sorter.position("orders-18") == 0
    assert told.metrics() == {"MessagesAccepted": 5, "CursorAdvanced": 5, "OutOfOrder": 1}


def test_an_sqs_batch_is_put_at_once_so_that_its_queue_moves_once(enqueue: Any, dynamo: Table) -> None:
    enqueue(sqs(*(message(seq) for seq in reversed(range(100)))))
    assert dynamo.calls.count("UpdateItem") == 1


def test_i9_a_poison_body_is_reported_and_blocks_nothing(
    enqueue: Any, sample: Any, sorter: StreamSorter, told: Told
) -> None:
    event = sample("enqueue_sqs_poison")
    good, *poison, last = [record["messageId"] for record in event["Records"]]
    assert failed(enqueue(event)) == poison
    assert [one["event"] for one in sorter.read("orders-17")] == ["placed", "paid"]
    assert told.metrics() == {"MessagesAccepted": 2, "Rejected": len(poison), "CursorAdvanced": 2}
    logged = told.logs(logging.ERROR)
    assert [record["record"] for record in logged] == poison
    assert good not in poison
    assert last not in poison
    assert "the field 'seq' is given twice" in logged[2]["reason"]


def test_a_batch_of_poison_alone_is_reported_and_not_raised(enqueue: Any) -> None:
    assert failed(enqueue(sqs("poison", "", "[[]]"))) == ["id-0", "id-1", "id-2"]


@pytest.mark.parametrize("nothing", [[], {"messages": []}], ids=str)
def test_i9_an_empty_list_is_refused_wherever_it_comes_from(
    enqueue: Any, sorter: StreamSorter, told: Told, nothing: Any
) -> None:
    with pytest.raises(InvalidInput, match="holds no message"):
        enqueue(nothing)
    assert failed(enqueue(sqs(nothing, message(0)))) == ["id-0"]
    assert sorter.position("orders-17") == 0
    assert told.metrics() == {"MessagesAccepted": 1, "Rejected": 1, "CursorAdvanced": 1}
    assert [(log["record"], "holds no message" in log["reason"]) for log in told.logs(logging.ERROR)] == [
        ("id-0", True)
    ]


def test_a_body_of_several_messages_fails_with_any_of_them(enqueue: Any, sorter: StreamSorter) -> None:
    assert failed(enqueue(sqs([message(0), message(1)], [message(2), {"queue": "orders-17"}]))) == ["id-1"]
    assert sorter.position("orders-17") == 2


def test_duplicates_conflicts_and_late_messages_are_not_delivered_again(enqueue: Any, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    sorter.skip("orders-17", 1)
    assert failed(enqueue(sqs(message(0), message(0, body="other"), message(1)))) == []


def test_i7_what_is_not_stored_comes_again_and_delays_no_other_queue(
    enqueue: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    dynamo.fail("PutItem", '"bad"')
    assert failed(enqueue(sqs(message(0, "bad"), message(0, "good"), message(1, "bad")))) == ["id-0", "id-2"]
    assert sorter.position("good") == 0
    assert told.metrics() == {"MessagesAccepted": 1, "NotStored": 2, "CursorAdvanced": 1}
    dynamo.faults.clear()
    assert failed(enqueue(sqs(message(0, "bad"), message(1, "bad")))) == []


def test_i8_a_message_that_is_stored_in_a_queue_that_did_not_advance_comes_again(
    enqueue: Any, dynamo: Table, sorter: StreamSorter
) -> None:
    dynamo.fail("UpdateItem", '"bad"')
    event = sqs(message(0, "bad"), message(0, "good"))
    assert failed(enqueue(event)) == ["id-0"]
    with pytest.raises(StoreUnavailable, match=r"2 of 2 messages are stored.*1 queues could not be advanced"):
        enqueue([message(1, "bad"), message(1, "good")])
    dynamo.faults.clear()
    assert failed(enqueue(event)) == []
    assert (sorter.position("bad"), sorter.position("good")) == (1, 1)


def test_no_payload_is_logged_above_debug(enqueue: Any, dynamo: Table, sorter: StreamSorter, told: Told) -> None:
    sorter.skip("orders-17", 1)
    dynamo.fail("PutItem", '"bad"')
    queues = ["orders-17", "bad"]
    bodies = [message(seq, queue, text=f"secret {extra}") for queue in queues for seq in (0, 1) for extra in (1, 2)]
    enqueue(sqs(*bodies, 'secret {"', '"secret"', '{"secret": 1e999}', message(None, text="secret")))
    text = told.everything()
    assert "orders-17" in text
    assert "secret" not in text
