"""Wakes that an SQS queue delivers when their time has come, on moto."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.parsers import ResponseParserError
from moto import mock_aws

from stream_sort import OrderedConsumer, StoreUnavailable, StreamSorter
from stream_sort.aws.sqs import RetryQueue
from stream_sort.aws_lambda.dead_letter_queue import TEXT
from stream_sort.consume.context import Nudger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("sqs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")
        yield client
        client.close()


@pytest.fixture
def url(sqs: Any) -> str:
    return str(sqs.create_queue(QueueName="retry")["QueueUrl"])


@pytest.mark.parametrize(("delay", "seconds"), [(0.0, 0), (-3.0, 0), (1.2, 2), (900.0, 900), (10_000.0, 900)])
def test_a_wake_comes_not_before_its_time_and_within_what_sqs_can_delay(
    sqs: Any, url: str, delay: float, seconds: int
) -> None:
    asked = []
    sqs.meta.events.register("provide-client-params.sqs.SendMessage", lambda params, **_: asked.append(params))
    RetryQueue(url, "billing", sqs).wake("naïve", delay)
    (request,) = asked
    assert (request["DelaySeconds"], request["QueueUrl"]) == (seconds, url)
    assert json.loads(request["MessageBody"]) == {"consumer": "billing", "queue": "naïve"}


def test_a_queue_whose_name_has_a_character_that_sqs_refuses_is_woken(sqs: Any, url: str) -> None:
    def refuse(params: dict[str, Any], **_: Any) -> None:
        if not TEXT.fullmatch(params["MessageBody"]):
            raise ClientError({"Error": {"Code": "InvalidMessageContents"}}, "SendMessage")

    sqs.meta.events.register("provide-client-params.sqs.SendMessage", refuse)
    RetryQueue(url, "billing", sqs).wake("odd\uffff\ufffe🚀", 0)
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert json.loads(message["Body"])["queue"] == "odd\uffff\ufffe🚀"


@pytest.mark.usefixtures("telemetries")
def test_what_is_sent_is_what_the_consumer_reads(sqs: Any, url: str) -> None:
    sorter = StreamSorter.in_memory()
    sorter.put({"queue": "q", "seq": 0})
    seen: list[Any] = []
    RetryQueue(url, "billing", sqs).wake("q", 0)
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    record = {"eventSource": "aws:sqs", "messageId": message["MessageId"], "body": message["Body"]}
    consumer = OrderedConsumer("billing", seen.extend, sorter=sorter)
    assert consumer.lambda_handler({"Records": [record]}, None) == {"batchItemFailures": []}
    assert seen == [{"queue": "q", "seq": 0}]


def test_its_own_client_gives_up_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    config = RetryQueue("https://sqs/1/retry", "billing")._sender.client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 3)


def test_a_wake_that_cannot_be_sent_says_so(sqs: Any, url: str) -> None:
    with pytest.raises(StoreUnavailable, match="the sweep wakes the queue instead"):
        RetryQueue(url + "-gone", "billing", sqs).wake("q", 0)

    def no_way(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://sqs")

    sqs.meta.events.register("before-send.sqs.SendMessage", no_way)
    with pytest.raises(StoreUnavailable, match="Could not connect"):
        RetryQueue(url, "billing", sqs).wake("q", 0)


def test_a_wake_that_a_page_of_a_proxy_answers_was_not_sent(sqs: Any, url: str) -> None:
    def page(**_: Any) -> None:
        raise ResponseParserError("<html>")

    sqs.meta.events.register("before-send.sqs.SendMessage", page)
    with pytest.raises(StoreUnavailable, match="the sweep wakes the queue instead"):
        RetryQueue(url, "billing", sqs).wake("q", 0)


def test_a_consumer_with_a_retry_queue_uses_it(sqs: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    sorter = StreamSorter.in_memory()
    sorter.put({"queue": "q", "seq": 0})
    consumer = OrderedConsumer("billing", lambda batch: batch.after, sorter=sorter, retry_queue_url=url)
    consumer.catch_up("q")
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes["ApproximateNumberOfMessagesDelayed"] == "1"


def test_without_a_retry_queue_a_nudge_wakes_now_and_the_sweep_later() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put({"queue": "q", "seq": 0})
    nudger = Nudger(sorter.queues)
    nudger.wake("q", 2.0)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.nudges == 0
    nudger.wake("q", 0.0)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.nudges == 1
