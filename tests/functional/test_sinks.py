"""Sinks that keep the order, on moto with real clients: it holds whichever call is refused or loses its answer."""

from __future__ import annotations

import itertools
import json
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from moto import mock_aws

from stream_sort.errors import HandlerProblem, PartlyDone
from stream_sort.replay.backfill.targets.senders import SinkSender
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink
from tests.functional.batches import SEQS, batch_of, deliver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFUSED = SimpleNamespace(status_code=400), {"Error": {"Code": "Throttled", "Message": "not so fast"}}
FIFO = {"FifoQueue": "true"}


class Wire:
    """The way of one operation to AWS and back: some calls are refused, of some the answer is lost."""

    def __init__(self, client: Any, event: str) -> None:
        self.refused: set[int] = set()
        self.lost: set[int] = set()
        self.requests: list[dict[str, Any]] = []
        client.meta.events.register(f"provide-client-params.{event}", self._note)
        client.meta.events.register(f"before-call.{event}", self._before)
        client.meta.events.register(f"after-call.{event}", self._after)

    def restart(self, refused: set[int], lost: set[int]) -> None:
        self.refused, self.lost, self.requests = refused, lost, []

    def _note(self, params: dict[str, Any], **_: Any) -> None:
        self.requests.append(params)

    def _before(self, **_: Any) -> Any:
        return REFUSED if len(self.requests) - 1 in self.refused else None

    def _after(self, **_: Any) -> None:
        if len(self.requests) - 1 in self.lost:
            raise ReadTimeoutError(endpoint_url="https://aws")


@pytest.fixture
def aws() -> Iterator[Callable[[str], Any]]:
    clients = []

    def client_of(service: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        clients.append(boto3.client(service, region_name="eu-west-1", **keys))
        return clients[-1]

    with mock_aws():
        yield client_of
        for client in clients:
            client.close()


def received(sqs: Any, url: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    while got := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    ).get("Messages"):
        for message in got:
            messages.append(message)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return messages


class Outlet:
    """A sink, the wire to it, and what arrived there, in order."""

    def __init__(self, aws: Callable[[str], Any], name: str) -> None:
        self.sqs = aws("sqs")
        service = {"sqs-fifo": "sqs", "sns-fifo": "sns", "kinesis": "kinesis"}[name]
        self.client = aws(service)
        self.target, operation = getattr(self, f"_{service}")()
        self.wire = Wire(self.client, f"{service}.{operation}")
        self.sink = make_sink(SinkSettings(sink=name, sink_target=self.target), self.client)

    def _sqs(self) -> tuple[str, str]:
        self.url = self.sqs.create_queue(QueueName="out.fifo", Attributes=FIFO)["QueueUrl"]
        return self.url, "SendMessage"

    def _sns(self) -> tuple[str, str]:
        self._sqs()
        arn = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        topic: str = self.client.create_topic(Name="out.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
        raw = {"RawMessageDelivery": "true"}
        self.client.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=raw)
        return topic, "Publish"

    def _kinesis(self) -> tuple[str, str]:
        self.url = ""
        self.client.create_stream(StreamName="out", ShardCount=2)
        return "out", "PutRecord"

    def arrived(self) -> list[dict[str, Any]]:
        if self.url:
            return [json.loads(message["Body"]) for message in received(self.sqs, self.url)]
        records = []
        for shard in self.client.list_shards(StreamName="out")["Shards"]:
            start = self.client.get_shard_iterator(
                StreamName="out", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            records += self.client.get_records(ShardIterator=start["ShardIterator"])["Records"]
        return [json.loads(record["Data"]) for record in records]


@pytest.fixture(params=["sqs-fifo", "sns-fifo", "kinesis"])
def outlet(request: pytest.FixtureRequest, aws: Callable[[str], Any]) -> Outlet:
    return Outlet(aws, request.param)


def test_a_batch_arrives_whole_in_order_and_as_it_is(outlet: Outlet) -> None:
    batch = batch_of()
    assert outlet.sink(batch) is None
    assert outlet.arrived() == list(batch.messages)


def every_two_failures() -> Iterator[tuple[set[int], set[int]]]:
    for first, second in itertools.combinations_with_replacement(range(len(SEQS) + 1), 2):
        yield {first, second}, set()
        yield set(), {first, second}
        yield {first}, {second}
        yield {second}, {first}


def test_order_holds_whichever_two_calls_are_refused_or_lose_their_answer(outlet: Outlet) -> None:
    for number, (refused, lost) in enumerate(every_two_failures()):
        outlet.wire.restart(refused, lost - refused)
        deliver(outlet.sink, batch_of(f"queue-{number}"))
        seqs = [message["seq"] for message in outlet.arrived() if message["queue"] == f"queue-{number}"]
        if outlet.url:
            assert seqs == list(SEQS), "FIFO drops what is sent again"
        assert sorted(set(seqs)) == list(SEQS)
        assert seqs == sorted(seqs)


@pytest.mark.parametrize("index", range(len(SEQS)))
def test_the_error_says_how_far_the_batch_got_and_why_it_stopped(outlet: Outlet, index: int) -> None:
    outlet.wire.restart({index}, set())
    with pytest.raises(HandlerProblem) as stopped:
        outlet.sink(batch_of())
    problem = stopped.value
    assert isinstance(problem, PartlyDone) is (index > 0)
    if isinstance(problem, PartlyDone):
        assert problem.last_done == SEQS[index - 1]
    cause = problem.__cause__ if isinstance(problem, PartlyDone) else problem
    assert f"queue 'ada', seq {SEQS[index]}: " in str(cause)
    assert "was refused: Throttled: not so fast" in str(cause)
    assert "🚀" not in str(cause)
    assert cause is not None
    assert isinstance(cause.__cause__, ClientError)
    assert len(outlet.wire.requests) == index + 1


def test_messages_carry_group_deduplication_id_queue_and_seq(aws: Callable[[str], Any]) -> None:
    for name in ("sqs-fifo", "sns-fifo"):
        outlet = Outlet(aws, name)
        outlet.sink(batch_of("two words 🚀"))
        got = received(outlet.sqs, outlet.url)
        assert len({message["Attributes"]["MessageGroupId"] for message in got}) == 1
        assert len({message["Attributes"]["MessageDeduplicationId"] for message in got}) == len(SEQS)
        if name == "sqs-fifo":
            labels = [{key: of["StringValue"] for key, of in message["MessageAttributes"].items()} for message in got]
            assert labels == [{"queue": "two words 🚀", "seq": str(seq)} for seq in SEQS]
        outlet.sqs.delete_queue(QueueUrl=outlet.url)


def test_each_kinesis_record_is_told_the_number_of_the_one_before_also_across_batches(
    aws: Callable[[str], Any],
) -> None:
    outlet = Outlet(aws, "kinesis")
    outlet.sink(batch_of("a", (0, 1)))
    outlet.sink(batch_of("b", (0,)))
    outlet.sink(batch_of("a", (2,)))
    chained = ["SequenceNumberForOrdering" in request for request in outlet.wire.requests]
    assert chained == [False, True, False, True]
    outlet.wire.restart({0}, set())
    deliver(outlet.sink, batch_of("a", (3, 4)))
    chained = ["SequenceNumberForOrdering" in request for request in outlet.wire.requests]
    assert chained == [True, False, True], "a number that may be what was refused is not tried again"


def test_a_stream_that_was_made_anew_costs_no_message_an_attempt(aws: Callable[[str], Any]) -> None:
    outlet = Outlet(aws, "kinesis")
    outlet.sink(batch_of("a", (0,)))
    outlet.client.delete_stream(StreamName="out")
    outlet.client.create_stream(StreamName="out", ShardCount=1)

    def refuse_old_numbers(**_: Any) -> Any:
        unknown = {"Error": {"Code": "InvalidArgumentException", "Message": "Invalid SequenceNumberForOrdering"}}
        is_told = "SequenceNumberForOrdering" in outlet.wire.requests[-1]
        return (SimpleNamespace(status_code=400, headers={}), unknown) if is_told else None

    outlet.client.meta.events.register("before-call.kinesis.PutRecord", refuse_old_numbers)
    outlet.sink(batch_of("a", (1,)))
    assert [message["seq"] for message in outlet.arrived()] == [1]


OTHER_SENDERS = [
    {"items_table": "Other"},
    {"consumer": "billing"},
    {"items_arn": "arn:aws:dynamodb:eu-west-1:999999999999:table/Items"},
    {"items_arn": "arn:aws:dynamodb:us-east-1:123456789012:table/Items"},
]


@pytest.mark.parametrize("other", OTHER_SENDERS)
@pytest.mark.parametrize("name", ["sqs-fifo", "sns-fifo"])
def test_messages_of_a_second_stack_or_consumer_on_one_fifo_target_do_not_vanish(
    name: str, other: dict[str, str], aws: Callable[[str], Any]
) -> None:
    outlet = Outlet(aws, name)
    own = {"items_arn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Items"} if "items_arn" in other else {}
    first = make_sink(SinkSettings(sink=name, sink_target=outlet.target, **own), outlet.client)
    second = make_sink(SinkSettings(sink=name, sink_target=outlet.target, **other), outlet.client)
    first(batch_of("ada", (0, 1)))
    second(batch_of("ada", (0, 1)))
    first(batch_of("ada", (0, 1)))
    assert [message["seq"] for message in outlet.arrived()] == [0, 1, 0, 1], "each sender's, each once"


def test_what_a_backfill_sends_afresh_is_no_repeat_of_what_process_or_another_sending_sent(
    aws: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    outlet = Outlet(aws, "sqs-fifo")
    sender = SinkSender("sqs-fifo", outlet.target, region="eu-west-1")
    with closing(sender._client):
        for send in (outlet.sink, sender.handler("plan-0"), sender.handler("plan-0"), sender.handler("plan-1")):
            send(batch_of("ada", (0,)))
    assert [message["seq"] for message in outlet.arrived()] == [0, 0, 0]
