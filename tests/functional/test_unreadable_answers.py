"""Where a proxy answers instead of AWS, nothing was delivered, kept or sent for, and no message is at fault."""

from __future__ import annotations

import io
from base64 import b64encode
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from stream_sort.aws.sqs import RetryQueue
from stream_sort.aws_lambda.dead_letter_queue import DeadLetterQueue
from stream_sort.errors import InvalidMessage, StoreUnavailable
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink
from stream_sort.sinks.choose import SINKS
from tests.consumers import Office, ends, wake
from tests.unit.test_sinks import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
PAGE = b"<html><body>upstream connect error</body></html>"
LINE = b"upstream connect error or disconnect/reset before headers"
# What a client answers with nothing, or fails at in ways of its own.
BODIES = [PAGE, LINE, b"", b"[]", b'"ok"', b"null", b'{"Entries": 5}', b'{"Entries": []}', b"\xff\xfe", b"<page/>"]


class Raw:
    """The body of an answer, as it comes over the wire."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self.read()

    def read(self, *_: Any, **__: Any) -> bytes:
        body, self._body = self._body, b""
        return body


@pytest.fixture
def proxied() -> Iterator[Callable[..., Any]]:
    """Make a client to whose requests a proxy answers."""
    clients = []

    def client_of(service: str, status: int, body: bytes) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        config = Config(retries={"total_max_attempts": 1})
        client = boto3.client(service, region_name="eu-west-1", config=config, **keys)
        client.meta.events.register("before-send", lambda request, **_: AWSResponse(request.url, status, {}, Raw(body)))
        clients.append(client)
        return client

    yield client_of
    for client in clients:
        client.close()


def check_nothing_is_given_up(sink: str, client: Any) -> None:
    office = Office()
    office.put(0, 1)
    handler = make_sink(SinkSettings(sink=sink, sink_target=TARGETS[sink]), client)
    consumer = office.hire(handler, max_attempts=2, on_poison="dead_letter")
    for _ in range(4):
        wake(consumer)
        office.clock.move(1_000)
    assert (consumer.dead_letters(), consumer.checkpoint("q")) == ([], -1)
    assert [(one.seq, one.attempts) for one in consumer.parked()] == [(0, 0)]
    assert consumer.parked()[0].error.startswith("TryLater: queue 'q', seq 0: ")


@pytest.mark.parametrize("sink", [sink for sink in TARGETS if sink != "log"])
@pytest.mark.parametrize("status", [403, 503])
@pytest.mark.parametrize("body", [PAGE, LINE, b"[]"], ids=repr)
def test_an_error_page_of_a_proxy_gives_no_message_up(proxied: Any, sink: str, status: int, body: bytes) -> None:
    check_nothing_is_given_up(sink, proxied(SINKS[sink].service, status, body))


@pytest.mark.parametrize("sink", ["sqs-fifo", "sns-fifo", "kinesis", "eventbridge"])
@pytest.mark.parametrize("body", BODIES, ids=repr)
def test_a_200_that_holds_no_answer_neither_delivers_a_message_nor_gives_it_up(
    proxied: Any, sink: str, body: bytes
) -> None:
    check_nothing_is_given_up(sink, proxied(SINKS[sink].service, 200, body))


@pytest.mark.parametrize("body", [PAGE, LINE, b"", b"\xff\xfe"], ids=repr)
def test_a_page_is_no_answer_of_a_function(proxied: Any, body: bytes) -> None:
    check_nothing_is_given_up("lambda", proxied("lambda", 200, body))


def test_what_is_no_json_is_an_answer_where_lambda_names_the_version_that_ran() -> None:
    office = Office()
    office.put(0)
    answer = {"StatusCode": 200, "ExecutedVersion": "$LATEST", "Payload": io.BytesIO(b"done")}
    client = SimpleNamespace(invoke=lambda **_: answer)
    consumer = office.hire(make_sink(SinkSettings(sink="lambda", sink_target="handle"), client))
    assert (ends(wake(consumer)), consumer.checkpoint("q")) == (["done"], 0)


@pytest.mark.parametrize(("status", "body"), [(503, PAGE), (503, b"[]"), *((200, body) for body in BODIES)], ids=repr)
def test_a_record_that_a_proxy_took_was_not_kept_and_comes_again(proxied: Any, status: int, body: bytes) -> None:
    record = {"eventID": "shard:1", "eventSourceARN": "arn", "kinesis": {"data": b64encode(b"poison").decode()}}
    with pytest.raises(StoreUnavailable, match="could not be kept"):
        DeadLetterQueue(URL, proxied("sqs", status, body)).keep(record, InvalidMessage("no message"))


@pytest.mark.parametrize(("status", "body"), [(503, PAGE), (503, b"[]"), *((200, body) for body in BODIES)], ids=repr)
def test_a_wake_that_a_proxy_took_was_not_sent(proxied: Any, status: int, body: bytes) -> None:
    with pytest.raises(StoreUnavailable, match="no wake could be sent"):
        RetryQueue(URL, "billing", proxied("sqs", status, body)).wake("q", 0)
