"""`stream-sort dead-letters` where AWS refuses, or somebody else is at work: nothing is lost, and all is told."""

from __future__ import annotations

import gc
import json
import signal
import sys
from errno import ENOSPC
from typing import TYPE_CHECKING, Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from stream_sort.cli import refused
from stream_sort.errors import StoreUnavailable
from stream_sort.sorter import Sorter
from tests.functional.command_line import Line
from tests.functional.test_cli_dead_letters import (
    WHERE,
    DeadLetters,
    dead,
    kept_batch,
    listed,
    place,
    put_records,
    records_of,
    redrive,
    stack,
)
from tests.functional.test_enqueue_dead_letters import kinesis

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["dead", "stack"]

# Calls of AWS by name, and what answers each: it gets the request, and a function that calls AWS.
Answers = dict[str, Any]


def denied(name: str, code: str = "AccessDenied") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"{name} is not for you"}}, name)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Answer calls of AWS with something else."""
    real = BaseClient._make_api_call
    answers: Answers = {}

    def call(client: Any, name: str, request: Any) -> Any:
        def go_on() -> Any:
            return real(client, name, request)

        return answers[name](request, go_on) if name in answers else go_on()

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return answers


def refuse(name: str, code: str = "AccessDenied") -> Callable[..., Any]:
    def answer(_request: Any, _go_on: Any) -> Any:
        raise denied(name, code)

    return answer


def keep_all(request: Any, _go_on: Any) -> Any:
    """Delete nothing, and say so, as SQS does: the call itself goes well."""
    told = {"SenderFault": True, "Code": "ReceiptHandleIsInvalid"}
    return {"Successful": [], "Failed": [{"Id": one["Id"]} | told for one in request["Entries"]]}


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_discard_deletes_nothing_that_it_could_not_print(
    more: tuple[str, ...], dead: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = dead.keep("poison")

    def full(_: Any) -> None:
        raise OSError(ENOSPC, "no space left on device")

    for name in ("say", "print_json"):
        monkeypatch.setattr(f"stream_sort.cli.dead_letters.{name}", full)
    Line().run("dead-letters", "discard", bad, *WHERE, "--yes", *more, code=1)
    assert dead.visible() == ["poison"]


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_discard_has_written_out_what_it_deletes_before_it_deletes_it(
    more: tuple[str, ...], dead: DeadLetters, aws: Answers
) -> None:
    bad = dead.keep("poison")
    printed: list[bytes] = []

    def look(_request: Any, go_on: Any) -> Any:
        # The buffer below the text: what is there has left the program's own buffers.
        printed.append(sys.stdout.buffer.getvalue())  # type: ignore[attr-defined]
        return go_on()

    aws["DeleteMessageBatch"] = look
    Line().run("dead-letters", "discard", bad, *WHERE, "--yes", *more)
    assert b"poison" in printed[0]


def test_discard_does_not_say_discarded_of_what_sqs_kept(dead: DeadLetters, aws: Answers) -> None:
    bad = dead.keep("poison")
    aws["DeleteMessageBatch"] = keep_all
    told = Line().run("dead-letters", "discard", bad, *WHERE, "--yes", code=1)
    assert "discarded" not in told.stdout
    assert f"not discarded: {bad}: ReceiptHandleIsInvalid" in told.stderr
    assert dead.visible() == ["poison"]


def test_a_discard_that_is_denied_for_one_goes_on_with_the_others(dead: DeadLetters, aws: Answers) -> None:
    bad = [dead.keep(f"poison {number}") for number in range(3)]
    calls: list[Any] = []

    def once(request: Any, go_on: Any) -> Any:
        calls.append(request)
        if len(calls) == 2:
            raise denied("DeleteMessageBatch", "RequestThrottled")
        return go_on()

    aws["DeleteMessageBatch"] = once
    told = Line().run("dead-letters", "discard", *bad, *WHERE, "--yes", code=1)
    assert told.stdout.count("discarded: ") == 2
    assert told.stderr.count("not discarded: ") == 1
    assert len(dead.visible()) == 1


def test_a_redrive_does_not_say_stored_of_a_letter_that_sqs_kept(dead: DeadLetters, aws: Answers) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    aws["DeleteMessageBatch"] = keep_all
    (tried,) = redrive(code=1)
    assert (tried["outcome"], tried["accepted"]) == ("left", 1)
    assert tried["error"].startswith("all of it is stored, but it could not be deleted (ReceiptHandleIsInvalid")
    assert "duplicate" in tried["error"]
    assert dead.read("bob") == [0]
    assert len(dead.visible()) == 1


def test_a_batch_that_could_not_be_deleted_from_the_bucket_is_told(dead: DeadLetters, aws: Answers) -> None:
    dead.stack.read_kinesis()
    kept_batch(dead, kinesis({"queue": "bob", "seq": 0}))
    aws["DeleteObject"] = refuse("DeleteObject")
    (tried,) = redrive(code=1)
    assert (tried["outcome"], tried["accepted"]) == ("left", 1)
    assert "AccessDenied" in tried["error"]
    del aws["DeleteObject"]
    assert redrive()[0]["duplicates"] == 1


def test_an_object_of_the_bucket_that_cannot_be_read_stops_no_other_letter(dead: DeadLetters, aws: Answers) -> None:
    dead.stack.read_kinesis()
    key = kept_batch(dead, kinesis({"queue": "bob", "seq": 0}))
    dead.keep({"queue": "ada", "seq": 0})
    aws["GetObject"] = refuse("GetObject", "InvalidObjectState")
    assert {one["source"] for one in listed()} == {"EnqueueDeadLetters", "KinesisFailuresBucket"}
    tried = {one["source"]: one for one in redrive(code=1)}
    assert tried["EnqueueDeadLetters"]["outcome"] == "stored"
    left = tried["KinesisFailuresBucket"]
    assert (left["outcome"], "InvalidObjectState" in left["error"]) == ("left", True)
    told = Line().run("dead-letters", "discard", key, *WHERE, "--yes", code=1)
    assert "it cannot be read, so what would be lost is not known" in told.stderr
    del aws["GetObject"]
    assert redrive()[0]["outcome"] == "stored"
    assert (dead.read("ada"), dead.read("bob")) == ([0], [0])


def test_letters_before_a_bucket_that_cannot_be_listed_are_stored(dead: DeadLetters, aws: Answers) -> None:
    dead.stack.read_kinesis()
    dead.keep({"queue": "ada", "seq": 0})
    aws["ListObjectsV2"] = refuse("ListObjectsV2")
    Line().run("dead-letters", "redrive", "--all", *WHERE, "--yes", code=1)
    assert dead.read("ada") == [0]


@pytest.mark.parametrize(
    ("operation", "code"),
    [("GetShardIterator", "AccessDeniedException"), ("GetRecords", "ProvisionedThroughputExceededException")],
)
def test_one_letter_that_kinesis_does_not_answer_for_stops_no_other(
    operation: str, code: str, dead: DeadLetters, aws: Answers
) -> None:
    arn = dead.stack.read_kinesis()
    (number,) = put_records(dead, 0)
    old = dead.keep(place(arn, number, number), "StreamFailures")
    good = dead.keep({"queue": "ada", "seq": 0})
    aws[operation] = refuse(operation, code)
    assert {one["outcome"] for one in redrive("--all", "--dry-run", code=1)} == {"left", "stored"}
    tried = {one["id"]: one for one in redrive(code=1)}
    assert (tried[good]["outcome"], tried[old]["outcome"]) == ("stored", "left")
    assert code in tried[old]["error"]
    assert "its stream could not be read" in tried[old]["error"]
    assert dead.read("ada") == [0]
    assert len(dead.visible("StreamFailures")) == 1


def test_one_letter_whose_table_stream_does_not_answer_stops_no_other(dead: DeadLetters, aws: Answers) -> None:
    item = {"queue": {"S": "eve"}, "seq": {"N": "0"}}
    dead.stack.client("dynamodb").put_item(TableName="Items", Item=item)
    arn, shard, numbers = records_of(dead.stack, "Items")
    old = dead.keep(place(arn, numbers[-1], numbers[-1], "DDBStream", shard), "StreamFailures")
    good = dead.keep({"queue": "ada", "seq": 0})
    aws["GetShardIterator"] = refuse("GetShardIterator", "AccessDeniedException")
    tried = {one["id"]: one for one in redrive(code=1)}
    assert (tried[good]["outcome"], tried[old]["outcome"]) == ("stored", "left")


def test_one_failing_queue_of_a_place_keeps_no_other_from_being_advanced(
    dead: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = dead.stack.client("dynamodb")
    for queue in ("bad", "eve", "worse", "fay"):
        client.put_item(TableName="Items", Item={"queue": {"S": queue}, "seq": {"N": "0"}})
    arn, shard, numbers = records_of(dead.stack, "Items")
    dead.keep(place(arn, numbers[-4], numbers[-1], "DDBStream", shard), "StreamFailures")
    real = Sorter.advance

    def advance(sorter: Sorter, queue: str, *rest: Any, **more: Any) -> Any:
        if queue in {"bad", "worse"}:
            raise StoreUnavailable("the table does not answer")
        return real(sorter, queue, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Sorter, "advance", advance)
        (tried,) = redrive(code=1)
    assert tried["error"] == "queue 'bad': the table does not answer; and 1 more queue"
    assert [dead.stack.sorter.position(queue) for queue in ("eve", "fay")] == [0, 0]


HIDDEN = "1 more is hidden now, as another command works on it or was interrupted; look again in 5 minutes"


def hide(dead: DeadLetters, name: str = "EnqueueDeadLetters") -> None:
    """Receive what a queue has, as a redrive does that is still at work."""
    dead.sqs.receive_message(QueueUrl=dead.url(name), MaxNumberOfMessages=10, VisibilityTimeout=300)


def test_what_is_hidden_is_not_called_nothing(dead: DeadLetters) -> None:
    number = dead.keep({"queue": "bob", "seq": 0})
    hide(dead)
    told = Line().run("dead-letters", "list", *WHERE)
    assert told.stdout == "nothing can be seen in EnqueueDeadLetters and StreamFailures\n"
    assert told.stderr == f"{HIDDEN}\n"
    told = Line().run("dead-letters", "redrive", "--all", *WHERE, "--yes")
    assert told.stdout == "nothing can be redriven now\n"
    assert HIDDEN in told.stderr
    told = Line().run("dead-letters", "show", number, *WHERE, code=2)
    assert HIDDEN in told.stderr


def test_what_is_hidden_is_told_beside_what_is_not(dead: DeadLetters) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    hide(dead)
    dead.keep({"queue": "bob", "seq": 1})
    told = Line().run("dead-letters", "list", *WHERE, "--json")
    assert len(json.loads(told.stdout)) == 1
    assert told.stderr == f"{HIDDEN}\n"


def test_what_is_hidden_cannot_be_counted_without_the_right_and_that_is_told(dead: DeadLetters, aws: Answers) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    aws["GetQueueAttributes"] = refuse("GetQueueAttributes")
    told = Line().run("dead-letters", "list", *WHERE, "--json")
    assert len(json.loads(told.stdout)) == 1
    assert "whether more is hidden in EnqueueDeadLetters is not known: " in told.stderr


def test_ctrl_c_while_a_page_is_received_hides_nothing(dead: DeadLetters, aws: Answers) -> None:
    dead.keep({"queue": "bob", "seq": 0})

    def stop(_request: Any, go_on: Any) -> Any:
        answer = go_on()
        signal.raise_signal(signal.SIGINT)
        return answer

    aws["ReceiveMessage"] = stop
    Line().run("dead-letters", "redrive", "--all", *WHERE, "--yes", code=130)
    del aws["ReceiveMessage"]
    assert len(dead.visible()) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_failure_to_show_letters_again_does_not_swallow_what_was_done(dead: DeadLetters, aws: Answers) -> None:
    dead.keep({"queue": "bob", "seq": 0})
    dead.keep("poison")
    aws["ChangeMessageVisibilityBatch"] = refuse("ChangeMessageVisibilityBatch")
    told = Line().run("dead-letters", "redrive", "--all", *WHERE, "--yes", "--json", code=1)
    assert sorted(one["outcome"] for one in json.loads(told.stdout)) == ["left", "stored"]
    assert "1 of EnqueueDeadLetters will be hidden for up to 5 minutes: " in told.stderr
    dead.keep("more poison")
    told = Line().run("dead-letters", "list", *WHERE)
    assert "EnqueueDeadLetters" in told.stdout
    assert "will be hidden for up to a minute" in told.stderr


def test_a_command_that_an_error_names_leads_to_the_same_stack(dead: DeadLetters) -> None:
    dead.keep("poison")
    told = Line().error("dead-letters", "show", "nobody", *WHERE, code=2)
    assert told == "no dead letter has the id 'nobody'; see stream-sort dead-letters list --stack orders"
    assert "stream-sort dead-letters list --stack orders" in Line().error("dead-letters", "redrive", *WHERE, code=2)


def test_listing_keeps_no_more_than_the_rows(dead: DeadLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event is gone before the next but one is read, whatever its size."""
    dead.stack.read_kinesis()
    for number in range(5):
        dead.s3.put_object(Bucket="kept", Key=f"batch-{number}", Body=b'{"queue": "bob", "seq": 0}')
    real = refused.BucketSource._text
    most: list[int] = []

    def text(source: Any, key: str) -> Any:
        gc.collect()
        most.append(sum(type(one) is refused.Kept for one in gc.get_objects()))
        return real(source, key)

    monkeypatch.setattr(refused.BucketSource, "_text", text)
    assert len(listed()) == 5
    assert max(most) <= 1


def test_a_bucket_that_no_stack_names_any_more_can_be_named(dead: DeadLetters) -> None:
    dead.s3.create_bucket(Bucket="retained", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    dead.s3.put_object(Bucket="retained", Key="batch", Body=b'{"queue": "bob", "seq": 0}')
    tables = ("--items-table", "Items", "--cursor-table", "Cursor")
    (tried,) = Line().json("dead-letters", "redrive", "--all", "--bucket", "retained", *tables, "--yes")
    assert (tried["source"], tried["outcome"]) == ("retained", "stored")
    assert "Contents" not in dead.s3.list_objects_v2(Bucket="retained")


def test_a_stream_that_has_not_come_to_a_place_yet_is_not_said_to_have_dropped_it(
    dead: DeadLetters, aws: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream_sort.cli.stream_places.MOST_ANSWERS", 3)
    arn = dead.stack.read_kinesis()
    (number,) = put_records(dead, 0)
    dead.keep(place(arn, number, number), "StreamFailures")
    nothing = {"Records": [], "NextShardIterator": "next", "MillisBehindLatest": 60_000}
    aws["GetRecords"] = lambda _request, _go_on: nothing
    (tried,) = redrive(code=1)
    assert tried["error"] == "its stream could not be read: 3 answers, and none of them came to it; try it again"
    nothing["MillisBehindLatest"] = 0
    assert "the stream has dropped it" in redrive(code=1)[0]["error"]
    del aws["GetRecords"]
    assert redrive()[0]["outcome"] == "stored"
