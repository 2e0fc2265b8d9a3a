"""`stream-sort dead-letters` on a whole stack: every shape that lands there, as the real enqueue leaves it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.client import BaseClient
from moto import mock_aws

from stream_sort import StreamSorter
from stream_sort.aws import accounts
from stream_sort.aws_lambda.dead_letter_queue import DeadLetterQueue
from stream_sort.aws_lambda.enqueue import EnqueueStep
from stream_sort.errors import StreamSortError
from tests.functional.command_line import Line, example_of
from tests.functional.conftest import EVENTS, TUNING, Table
from tests.functional.deployed_stack import DeployedStack, stand_in_for_aws
from tests.functional.test_enqueue_dead_letters import kinesis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context

WHERE = ("--stack", "orders")
ARN = "arn:aws:lambda:eu-west-1:123456789012:function:enqueue:$LATEST"


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeployedStack]:
    monkeypatch.setattr(accounts, "_local", lambda: None)
    for name in ("ITEMS_TABLE", "CURSOR_TABLE", "CONTROL_TABLE", "QUEUE_KEY", "SEQ_KEY", "CONSUMER"):
        monkeypatch.delenv(f"STREAM_SORT_{name}", raising=False)
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "STREAM_SORT_IN_FLIGHT": "1",
        "STREAM_SORT_DEADLINE": "0.05",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("stream_sort.cli.refused.WAIT", 0)
    with mock_aws():
        made = DeployedStack(mapped=False)
        with made.endpoint() as endpoint:
            yield stand_in_for_aws(made, endpoint, monkeypatch)


class DeadLetters:
    """The queues and the bucket of a stack, and the enqueue function that fills them."""

    def __init__(self, stack: DeployedStack, telemetry: Telemetry, context: Context) -> None:
        self.stack = stack
        self.sqs = stack.client("sqs")
        self.s3 = stack.client("s3")
        self.telemetry = telemetry
        self.context = context

    def url(self, name: str = "EnqueueDeadLetters") -> str:
        return self.stack.resources[name][0]

    def keep(self, body: Any, name: str = "EnqueueDeadLetters", **attributes: str) -> str:
        told = {key: {"DataType": "String", "StringValue": value} for key, value in attributes.items()}
        text = body if isinstance(body, str) else json.dumps(body)
        sent = self.sqs.send_message(QueueUrl=self.url(name), MessageBody=text, MessageAttributes=told)
        return str(sent["MessageId"])

    def visible(self, name: str = "EnqueueDeadLetters") -> list[str]:
        """The bodies that anybody could receive now."""
        answer = self.sqs.receive_message(QueueUrl=self.url(name), MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [one["Body"] for one in answer.get("Messages", [])]

    def fail(self, event: Any, condition: str = "RetriesExhausted") -> None:
        """Let enqueue fail on an event of SNS, EventBridge or an asynchronous invoke, and Lambda give up on it."""
        answer: dict[str, Any] = {"errorType": "none", "errorMessage": "it did not fail"}
        try:
            self.enqueue(event, outage=True)
        except StreamSortError as error:
            answer = {"errorType": type(error).__name__, "errorMessage": str(error)}
        assert answer["errorType"] == "StoreUnavailable"
        self.keep(
            {
                "version": "1.0",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "requestContext": {"functionArn": ARN, "condition": condition, "approximateInvokeCount": 3},
                "requestPayload": event,
                "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
                "responsePayload": answer,
            }
        )

    def enqueue(self, event: Any, *, outage: bool = False, **settings: Any) -> Any:
        """Run the function, with tables that may not answer."""
        client = self.stack.client("dynamodb")
        table = Table(client)
        client.meta.events.register("before-call.dynamodb", table.on_call)
        if outage:
            for operation in ("GetItem", "PutItem", "BatchGetItem", "BatchExecuteStatement"):
                table.fail(operation, "")
        sorter = StreamSorter(client=client, **TUNING, **settings)
        function = EnqueueStep(sorter, self.telemetry, DeadLetterQueue(self.url(), self.sqs))
        return function(event, self.context)

    def read(self, queue: str) -> list[int]:
        return [message["seq"] for message in self.stack.sorter.read(queue)]


@pytest.fixture
def dead(stack: DeployedStack, telemetries: dict[str, Telemetry], context: Context) -> DeadLetters:
    return DeadLetters(stack, telemetries["enqueue"], context)


def redrive(*words: str, code: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Line().json(
        "dead-letters", "redrive", *(words or ("--all",)), *WHERE, "-y", code=code
    )
    return found


def listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Line().json("dead-letters", "list", *WHERE)
    return found


@pytest.mark.parametrize(
    ("name", "queue", "stored"),
    [
        ("enqueue_sns", "orders-17", [0]),
        ("enqueue_eventbridge", "orders-17", [0]),
        ("enqueue_direct_one", "orders-17", [0]),
        ("enqueue_direct_list", "orders-17", [0, 1, 2]),
    ],
)
def test_what_sns_eventbridge_or_an_invoke_left_in_the_dead_letters_can_be_redriven(
    name: str, queue: str, stored: list[int], dead: DeadLetters, sample: Callable[[str], Any]
) -> None:
    dead.fail(sample(name))
    (one,) = listed()
    assert one["reason"].startswith("StoreUnavailable: ")
    assert one["reason"].endswith("(RetriesExhausted after 3 tries)")
    (tried,) = redrive()
    assert (tried["outcome"], tried["accepted"]) == ("stored", tried["messages"])
    assert dead.read(queue) == stored
    assert dead.visible() == []


def test_a_body_that_sqs_moved_aside_can_be_redriven(dead: DeadLetters) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    dead.keep([{"queue": "bob", "seq": 1}, {"queue": "bob", "seq": 2}])
    assert [one["outcome"] for one in redrive()] == ["stored", "stored"]
    assert dead.read("bob") == [0, 1, 2]
    assert dead.visible() == []


def test_a_record_of_kinesis_that_enqueue_set_aside_can_be_redriven_once_the_cause_is_mended(dead: DeadLetters) -> None:
    answer = dead.enqueue(kinesis({"queue": "bob", "seq": 0}), queue_key="lane", first_seq=5)
    assert answer == {"batchItemFailures": []}
    (one,) = listed()
    assert (one["what"], one["messages"]) == ("a Kinesis record set aside by enqueue", 1)
    assert one["reason"].startswith("InvalidMessage: ")
    assert redrive()[0]["outcome"] == "stored"
    assert dead.read("bob") == [0]


def test_an_event_of_a_functions_own_dead_letter_queue_can_be_redriven(
    dead: DeadLetters, sample: Callable[[str], Any]
) -> None:
    dead.keep(sample("enqueue_sns"), RequestID="r", ErrorCode="200", ErrorMessage="out of time")
    assert listed()[0]["reason"] == "200: out of time"
    assert redrive()[0]["outcome"] == "stored"
    assert dead.read("orders-17") == [0]


def kept_batch(dead: DeadLetters, event: dict[str, Any]) -> str:
    """Let Lambda give up on a batch of Kinesis: it is kept in the bucket, and noted in the queue."""
    with pytest.raises(StreamSortError):
        dead.enqueue(event, outage=True)
    record = json.loads((EVENTS / "enqueue_failed_batch.json").read_text()) | {"payload": json.dumps(event)}
    note = json.loads((EVENTS / "enqueue_failed_batch_note.json").read_text())
    key: str = note["detail"]["object"]["key"]
    dead.s3.put_object(Bucket="kept", Key=key, Body=json.dumps(record).encode())
    dead.keep(note, "KinesisFailures")
    return key


def test_a_batch_of_kinesis_that_lambda_gave_up_on_can_be_redriven_from_the_bucket(
    dead: DeadLetters, sample: Callable[[str], Any]
) -> None:
    dead.stack.read_kinesis()
    key = kept_batch(dead, sample("enqueue_kinesis"))
    (one,) = listed()
    assert (one["id"], one["source"], one["messages"]) == (key, "KinesisFailuresBucket", 3)
    assert len(dead.visible("KinesisFailures")) == 1
    (tried,) = redrive()
    assert (tried["outcome"], tried["accepted"]) == ("stored", 3)
    assert dead.read("orders-17") == [0, 1, 2]
    assert "Contents" not in dead.s3.list_objects_v2(Bucket="kept")
    assert dead.visible("KinesisFailures") == [], "the alarm would stay raised"


def test_the_note_of_a_batch_that_is_left_stays(dead: DeadLetters) -> None:
    dead.stack.read_kinesis()
    event = kinesis({"queue": "bob", "seq": 0})
    kept_batch(dead, event)
    dead.stack.sorter.put({"queue": "bob", "seq": 0, "other": True})
    assert redrive(code=1)[0]["error"].startswith("conflict: ")
    assert len(dead.visible("KinesisFailures")) == 1
    assert len(dead.s3.list_objects_v2(Bucket="kept")["Contents"]) == 1


def put_records(dead: DeadLetters, *seqs: int) -> list[str]:
    kinesis = dead.stack.client("kinesis")
    answers = [
        kinesis.put_record(
            StreamName="source", PartitionKey="any", Data=json.dumps({"queue": "bob", "seq": seq}).encode()
        )
        for seq in seqs
    ]
    return [answer["SequenceNumber"] for answer in answers]


def place(arn: str, first: str, last: str, kind: str = "Kinesis", shard: str = "shardId-000000000000") -> Any:
    record = json.loads((EVENTS / "enqueue_failed_batch_place.json").read_text())
    info = record.pop("KinesisBatchInfo")
    told = {"streamArn": arn, "shardId": shard, "startSequenceNumber": first, "endSequenceNumber": last}
    return record | {f"{kind}BatchInfo": info | told}


def test_a_batch_of_kinesis_that_an_older_stack_noted_by_its_place_is_read_from_the_stream(dead: DeadLetters) -> None:
    arn = dead.stack.read_kinesis()
    numbers = put_records(dead, 0, 1, 2, 3)
    dead.keep(place(arn, numbers[0], numbers[2]), "StreamFailures")
    assert listed()[0]["place"]["first"] == numbers[0]
    (tried,) = redrive()
    assert (tried["outcome"], tried["accepted"]) == ("stored", 3)
    assert dead.read("bob") == [0, 1, 2]
    assert dead.visible("StreamFailures") == []


def test_a_record_that_no_queue_takes_is_read_from_the_stream(dead: DeadLetters) -> None:
    arn = dead.stack.read_kinesis()
    (number,) = put_records(dead, 0)
    why = {"error": "MessageTooLarge", "reason": "it takes 1,100,000 bytes"}
    place = {"stream": arn, "record": f"shardId-000000000000:{number}"}
    dead.keep({"omitted_bytes": 1_100_000}, source="kinesis", encoding="none", **why, **place)
    assert redrive()[0]["accepted"] == 1


@pytest.mark.parametrize("shard", ["shardId-000000000000", "shardId-000000000009"])
def test_what_the_stream_has_dropped_is_left_and_told(shard: str, dead: DeadLetters) -> None:
    arn = dead.stack.read_kinesis()
    (number,) = put_records(dead, 0)
    before = str(int(number) - 1)
    dead.keep(place(arn, before, number, shard=shard), "StreamFailures")
    (tried,) = redrive(code=1)
    assert tried["outcome"] == "left"
    assert "the stream has dropped it" in tried["error"]
    assert len(dead.visible("StreamFailures")) == 1


def records_of(stack: DeployedStack, table: str) -> tuple[str, str, list[str]]:
    """The stream of a table, its shard, and the sequence numbers in it."""
    streams, arn = stack.client("dynamodbstreams"), stack.arns[table]
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
    start = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = streams.get_records(ShardIterator=start["ShardIterator"])["Records"]
    return arn, shard, [one["dynamodb"]["SequenceNumber"] for one in records]


def test_a_new_queue_that_advance_missed_is_released_by_a_redrive(dead: DeadLetters) -> None:
    stack = dead.stack
    item = {"queue": {"S": "eve"}, "seq": {"N": "0"}, "text": {"S": "written past us"}}
    stack.client("dynamodb").put_item(TableName="Items", Item=item)
    arn, shard, numbers = records_of(stack, "Items")
    dead.keep(place(arn, numbers[-1], numbers[-1], "DDBStream", shard), "StreamFailures")
    assert redrive()[0]["outcome"] == "woken"
    assert stack.sorter.position("eve") == 0
    assert dead.visible("StreamFailures") == []


def test_a_withdrawal_among_the_records_that_advance_missed_is_no_queue(dead: DeadLetters) -> None:
    stack = dead.stack
    stray = 1_700_000_000_000
    stack.sorter.put_many([{"queue": "ivy", "seq": 0}, {"queue": "ivy", "seq": stray}])
    stack.sorter.withdraw("ivy", stray, "a time in place of a seq")
    item = {"queue": {"S": "eve"}, "seq": {"N": "0"}, "text": {"S": "written past us"}}
    stack.client("dynamodb").put_item(TableName="Items", Item=item)
    arn, shard, numbers = records_of(stack, "Items")
    dead.keep(place(arn, numbers[0], numbers[-1], "DDBStream", shard), "StreamFailures")
    assert redrive()[0]["outcome"] == "woken"
    assert stack.sorter.position("eve") == 0
    assert dead.visible("StreamFailures") == []


def test_a_place_of_the_cursor_stream_wakes_its_queues_or_is_done_once_the_sweep_had_its_time(
    dead: DeadLetters,
) -> None:
    stack = dead.stack
    arn, shard, numbers = records_of(stack, "Cursor")
    before = len(numbers)
    dead.keep(place(arn, numbers[0], numbers[0], "DDBStream", shard), "StreamFailures")
    assert redrive()[0]["outcome"] == "woken"
    assert len(records_of(stack, "Cursor")[2]) == before + 1, "a nudge"
    dead.keep(place(arn, "1", "1", "DDBStream", "shard-gone"), "StreamFailures")
    assert redrive()[0]["outcome"] == "woken"
    dead.keep(place(stack.arns["Items"], "1", "1", "DDBStream", "shard-gone"), "StreamFailures")
    (left,) = redrive(code=1)
    assert "audit with --repair" in left["error"]


def test_what_still_cannot_be_stored_is_left_and_told_and_the_rest_is_stored(dead: DeadLetters) -> None:
    bad = [dead.keep("no JSON"), dead.keep({"queue": "bob"}), dead.keep({"queue": "ada", "seq": 0, "other": 1})]
    dead.keep({"queue": "bob", "seq": 0})
    dead.keep({"queue": "ada", "seq": 0})
    tried = {one["id"]: one for one in redrive(code=1)}
    assert {one: tried[one]["outcome"] for one in bad} == dict.fromkeys(bad, "left")
    assert [tried[one]["error"].partition(":")[0] for one in bad][2] == "conflict"
    assert sorted(one["outcome"] for one in tried.values()) == ["left", "left", "left", "stored", "stored"]
    assert sum(one["duplicates"] for one in tried.values()) == 1, "seq 0 of ada was there before"
    assert dead.read("bob") == [0]
    assert sorted(dead.visible()) == sorted(["no JSON", '{"queue": "bob"}', '{"queue": "ada", "seq": 0, "other": 1}'])
    assert {one["id"] for one in listed()} == set(bad)


def test_a_late_message_counts_as_stored(dead: DeadLetters) -> None:
    dead.stack.sorter.put({"queue": "bob", "seq": 1})
    dead.stack.sorter.skip("bob", 0)
    dead.keep({"queue": "bob", "seq": 0})
    assert [(one["outcome"], one["late"]) for one in redrive()] == [("stored", 1)]
    assert dead.visible() == []


def test_an_outage_during_a_redrive_loses_nothing(dead: DeadLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    real = BaseClient._make_api_call

    def call(client: Any, name: str, request: Any) -> Any:
        if name in {"PutItem", "BatchExecuteStatement"}:
            raise ConnectionError("no way to the tables")
        return real(client, name, request)

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", call)
        (left,) = redrive(code=1)
        assert left["outcome"] == "left"
        assert "no way to the tables" in left["error"]
    assert len(dead.visible()) == 1, "not hidden for long"
    assert redrive()[0]["outcome"] == "stored"


def test_ctrl_c_shows_again_what_was_hidden_and_tells_what_was_done(
    dead: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_sort.cli.refused_redrive.MOST_EVENTS", 1)
    for seq in range(3):
        dead.keep({"queue": "bob", "seq": seq})
    real = BaseClient._make_api_call
    deleted: list[int] = []

    def call(client: Any, name: str, request: Any) -> Any:
        answer = real(client, name, request)
        if name == "DeleteMessageBatch":
            deleted.append(1)
            if len(deleted) == 2:
                raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", call)
        stopped = Line().run("dead-letters", "redrive", "--all", *WHERE, "--yes", "--json", code=130)
    assert [one["outcome"] for one in json.loads(stopped.stdout)] == ["stored"]
    assert dead.visible() == ['{"queue": "bob", "seq": 2}']
    assert redrive()[0]["outcome"] == "stored"
    assert dead.read("bob") == [0, 1, 2]


def test_looking_changes_nothing_and_hides_nothing(dead: DeadLetters) -> None:
    ids = {dead.keep({"queue": "bob", "seq": seq}) for seq in range(12)}
    assert {one["id"] for one in listed()} == ids
    some = Line().run("dead-letters", "list", "--limit", "3", *WHERE)
    assert "more than 3" in some.stderr
    tried = redrive("--all", "--dry-run")
    assert {one["outcome"] for one in tried} == {"stored"}
    assert {one["id"] for one in listed()} == ids
    assert dead.stack.sorter.position("bob") == -1


def test_some_can_be_named_shown_and_discarded(dead: DeadLetters) -> None:
    good, bad = dead.keep({"queue": "bob", "seq": 0}), dead.keep("poison")
    shown = Line().run("dead-letters", "show", bad, good, *WHERE).stdout
    assert "poison" in shown
    assert '{"queue":"bob","seq":0}' in shown
    assert "cannot be stored as it is: not JSON" in shown
    refused = Line().runner.invoke(Line.app, ["dead-letters", "discard", bad, *WHERE], input="n\n")
    assert refused.exit_code == 1
    assert len(dead.visible()) == 2
    (gone,) = Line().json("dead-letters", "discard", bad, *WHERE, "--yes")
    assert (gone["id"], gone["body"]) == (bad, "poison")
    assert [one["id"] for one in redrive(good)] == [good]
    assert dead.visible() == []


def test_an_id_that_is_not_there_is_told(dead: DeadLetters) -> None:
    dead.keep("poison")
    told = Line().error("dead-letters", "show", "nobody", *WHERE, code=2)
    assert told == "no dead letter has the id 'nobody'; see stream-sort dead-letters list --stack orders"
    assert "which of them?" in Line().error("dead-letters", "redrive", *WHERE, code=2)
    assert len(dead.visible()) == 1


def test_a_queue_of_ones_own_can_be_named(dead: DeadLetters) -> None:
    url = dead.sqs.create_queue(QueueName="mine")["QueueUrl"]
    dead.sqs.send_message(QueueUrl=url, MessageBody='{"queue": "bob", "seq": 0}')
    tables = ("--items-table", "Items", "--cursor-table", "Cursor")
    (tried,) = Line().json("dead-letters", "redrive", "--all", "--queue-url", url, *tables, "--yes")
    assert (tried["source"], tried["outcome"]) == ("mine", "stored")
    assert "give --stack NAME" in Line().error("dead-letters", "list", *tables, code=2)


def test_nothing_is_nothing(stack: DeployedStack) -> None:
    assert listed() == []
    assert redrive() == []
    for words in (["dead-letters", "list", *WHERE], ["dead-letters", *WHERE]):
        assert Line().run(*words).stdout == "nothing is kept in EnqueueDeadLetters and StreamFailures\n"
    assert stack.client("sqs")


@pytest.mark.parametrize("command", ["list", "show", "redrive", "discard"])
def test_the_example_of_the_help_runs(command: str, dead: DeadLetters) -> None:
    number = dead.keep({"queue": "bob", "seq": 0})
    words = [number if len(word) == 36 else word for word in example_of("dead-letters", command)]
    assert Line().json(*words)
