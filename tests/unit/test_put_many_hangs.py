"""put_many beside slots that hang until the read timeout: what is healthy is stored, and the call ends in time."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from stream_sort import StreamSorter
from tests.unit.faulty import DUPLICATE
from tests.unit.queues import message
from tests.unit.test_put_many_in_time import Stopwatch, timed

if TYPE_CHECKING:
    from stream_sort import PutResult
    from tests.unit.faulty import Faulty

READ_TIMEOUT = 5.0
# Most tests make one call after the other: of several at once, nobody knows which one hangs first.


class Hanging:
    """Queues whose slots answer no write; batches are done as DynamoDB does them, which moto cannot."""

    def __init__(self, client: Faulty, watch: Stopwatch, *queues: str) -> None:
        self.queues = set(queues)
        self.calls: list[str] = []
        self._client = client
        self._watch = watch
        client.watch = self._hang
        client.answers["batch_execute_statement"] = [self._batch] * 1_000

    def _hang(self, method: str, request: dict[str, Any]) -> None:
        if method == "batch_execute_statement":
            touched = {_item(statement)["queue"]["S"] for statement in request["Statements"]}
        elif method == "put_item" and request["TableName"] == "Items":
            touched = {request["Item"]["queue"]["S"]}
        else:
            return
        if touched & self.queues:
            self.calls.append(method)
            ends = self._watch.now + READ_TIMEOUT
            # Meanwhile other threads may go on.
            time.sleep(0.1)
            self._watch.now = max(self._watch.now, ends)
            raise ReadTimeoutError(endpoint_url="https://dynamodb")

    def _batch(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"Responses": [self._insert(_item(statement)) for statement in request["Statements"]]}

    def _insert(self, item: dict[str, Any]) -> dict[str, Any]:
        try:
            self._client._client.put_item(
                TableName="Items",
                Item=item,
                ConditionExpression="attribute_not_exists(#q)",
                ExpressionAttributeNames={"#q": "queue"},
            )
        except ClientError:
            return DUPLICATE
        return {}


def _item(statement: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(re.findall(r"'([^']+)':\?", statement["Statement"]), statement["Parameters"], strict=True))


def rest_of(given: list[dict[str, Any]], result: PutResult) -> list[dict[str, Any]]:
    """Return what was not stored, as SQS gives it again."""
    return [document for document, outcome in zip(given, result.outcomes, strict=True) if not isinstance(outcome, str)]


@pytest.fixture
def watch() -> Stopwatch:
    return Stopwatch()


def beside(bad: int, many: int) -> list[dict[str, Any]]:
    """Return messages of 20 healthy queues, and every so many one of a queue that hangs, the first as well."""
    return [message(seq, "bad" if seq % bad == 0 else f"other{seq % 20}") for seq in range(many)]


@pytest.mark.parametrize("many", [100, 1_000])
def test_i7_a_slot_that_hangs_keeps_no_healthy_message_out(client: Faulty, watch: Stopwatch, many: int) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    hanging = Hanging(client, watch, "bad")
    result = sorter.put_many(beside(many, many), time_left=watch.left)
    assert [document["queue"] for document, _ in result.rejected] == ["bad"]
    assert result.accepted == many - 1
    # The batch is not sent whole again.
    assert hanging.calls == ["batch_execute_statement", "put_item"]
    assert watch.now < watch.whole - 5


def test_no_second_hang_is_begun_behind_the_first_when_the_time_is_over(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    hanging = Hanging(client, watch, "bad0", "bad1", "bad2", "bad3")
    sorter.put_many([message(0, "bad0"), *(message(0, f"a{number}") for number in range(24))], time_left=watch.left)
    watch.now = 0.0
    hanging.calls.clear()
    new = [message(0, f"b{number}" if number % 100 else f"bad{1 + number // 100}") for number in range(225)]
    result = sorter.put_many([*new, message(0, "bad0")], time_left=watch.left)
    assert result.accepted == 150
    assert watch.now < watch.whole - 3, "Lambda would have killed it"


def test_i7_slots_of_one_queue_that_hang_in_every_part_keep_no_healthy_message_out(
    client: Faulty, watch: Stopwatch
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    Hanging(client, watch, "bad")
    result = sorter.put_many([*beside(100, 500), message(0, "good")], time_left=watch.left)
    assert {document["queue"] for document, _ in result.rejected} == {"bad"}
    assert result.accepted == 496
    assert watch.now < watch.whole - 3


def test_i7_one_queue_of_ten_that_hangs_keeps_the_messages_of_the_others_out_of_no_second_try(
    client: Faulty, watch: Stopwatch
) -> None:
    sorter = timed(StreamSorter(client=client), watch)
    Hanging(client, watch, "q3")
    given = [message(number // 10, f"q{number % 10}") for number in range(500)]
    first = sorter.put_many(given, time_left=watch.left)
    assert first.accepted > 300
    watch.now = 0.0
    second = sorter.put_many(rest_of(given, first), time_left=watch.left)
    assert first.accepted + second.accepted == 450
    assert watch.now < watch.whole - 3


def test_i7_a_slot_that_hangs_keeps_no_healthy_message_out_of_two_tries_with_one_call_in_flight(
    client: Faulty, watch: Stopwatch
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    Hanging(client, watch, "bad")
    given = [message(0, "bad"), *(message(0, f"good{number}") for number in range(24))]
    for _ in range(2):
        watch.now = 0.0
        given = rest_of(given, sorter.put_many(given, time_left=watch.left))
        assert watch.now < watch.whole - 3
    assert given == [message(0, "bad")]


def test_a_call_ends_in_time_though_a_batch_hangs_and_then_its_messages_alone(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    hanging = Hanging(client, watch, *(f"bad{number}" for number in range(12)))
    queues = [f"bad{number // 60}" if number % 60 == 0 else f"other{number % 20}" for number in range(700)]
    given = [message(seq, queue) for seq, queue in enumerate(queues)]
    for _ in range(4):
        watch.now = 0.0
        given = rest_of(given, sorter.put_many(given, time_left=watch.left))
        assert watch.now < watch.whole
    assert {document["queue"] for document in given} == hanging.queues


def test_a_queue_that_answers_again_is_written_to_in_batches_again(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    hanging = Hanging(client, watch, "bad")
    given = beside(50, 50)
    sorter.put_many(given, time_left=watch.left)
    hanging.queues.clear()
    sorter.put_many(given)
    client.calls.clear()
    assert sorter.put_many([message(100, document["queue"]) for document in beside(50, 20)]).accepted == 20
    assert client.calls.count("batch_execute_statement") == 1
