"""A user's own handler in the deployed app: effects that happen once, a message it never takes, and one it dies of."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.local.stack import LocalStack
from stream_sort.model.retries import ENDED
from tests.local_stack.app import App, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ministack

QUEUES, EACH, KILLS = 3, 80, 4
HANDLER = """
import os

ONE = {":one": 1}

def handle(batch):
    for message in batch:
        if message.get("deadly"):
            os._exit(1)
        if message.get("poison"):
            raise ValueError("this one never")
        key = {"id": f"{batch.queue}/{message['seq']}"}
        batch.transaction.update("Paid", key, "ADD times :one", ExpressionAttributeValues=ONE)
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    file = tmp_path_factory.mktemp("handler") / "pay.py"
    file.write_text(HANDLER)
    # The shortest run there is: after that time a run is known to be over, and may have died.
    parameters = {"MaxAttempts": "2", "OnPoison": "park", "ProcessTimeout": "10"}
    with LocalStack.leashed(handler=f"{file}:handle", parameters=parameters) as stack:
        with closing(stack.client("dynamodb")) as dynamodb:
            dynamodb.create_table(
                TableName="Paid",
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            )
        stack.allow("process", "dynamodb:UpdateItem")
        with App(stack) as app:
            yield app


def paid(app: App, queue: str) -> dict[int, int]:
    """How often the effect of each message of a queue happened."""
    pages = app._dynamodb.get_paginator("scan").paginate(TableName="Paid", ConsistentRead=True)
    rows = [row for page in pages for row in page["Items"]]
    places = [(*row["id"]["S"].rsplit("/", 1), int(row["times"]["N"])) for row in rows]
    return {int(seq): times for name, seq, times in places if name == queue}


def test_i4_effects_happen_exactly_once_though_the_function_is_killed_again_and_again(app: App) -> None:
    messages: list[dict[str, Any]] = [
        {"queue": f"pay-{number}", "seq": seq} for seq in range(EACH) for number in range(QUEUES)
    ]
    for start in range(0, len(messages), 30):
        app.put(*messages[start : start + 30])
        if len(app.killed) < KILLS:
            assert eventually(lambda: app.kill("process"), seconds=30, every=0.05)
    process = app.consumer("process")
    for number in range(QUEUES):
        queue = f"pay-{number}"
        assert eventually(lambda queue=queue: process.checkpoint(queue) == EACH - 1, seconds=120)
        assert paid(app, queue) == dict.fromkeys(range(EACH), 1)
    assert len(app.killed) == KILLS


def test_i7_a_message_that_is_never_taken_parks_its_queue_alone_until_it_is_discarded(app: App) -> None:
    app.put({"queue": "bad", "seq": 0}, {"queue": "bad", "seq": 1, "poison": True}, {"queue": "bad", "seq": 2})
    app.put({"queue": "good", "seq": 0}, {"queue": "good", "seq": 1})
    process = app.consumer("process")
    assert eventually(lambda: process.checkpoint("good") == 1)

    def stays() -> bool:
        return [(one.queue, one.seq, one.next_try) for one in process.parked()] == [("bad", 1, None)]

    assert eventually(stays, seconds=60)
    (parked,) = process.parked()
    assert (parked.attempts, parked.error) == (2, "ValueError: this one never")
    assert paid(app, "bad") == {0: 1}
    process.discard("bad", 1, reason="a test")
    assert eventually(lambda: process.checkpoint("bad") == 2)
    assert paid(app, "bad") == {0: 1, 2: 1}
    assert process.parked() == []


def test_the_function_says_in_its_logs_why_a_queue_is_parked(app: App) -> None:
    time.sleep(0.5)
    lines = [line.text for line in app.stack.logs("process") if "queue parked" in line.text]
    assert lines
    assert "ValueError: this one never" in lines[0]
    assert '"at":"pay.py:11 in handle"' in lines[0]
    assert Path(__file__).name not in lines[0]


def test_a_message_that_kills_its_process_parks_its_queue_in_the_end_and_the_rest_goes_on(app: App) -> None:
    app.put({"queue": "fatal", "seq": 0}, {"queue": "fatal", "seq": 1, "deadly": True}, {"queue": "fatal", "seq": 2})
    app.put({"queue": "well", "seq": 0}, {"queue": "well", "seq": 1})
    process = app.consumer("process")
    assert eventually(lambda: process.checkpoint("well") == 1, seconds=60)

    def stays() -> bool:
        # The schedule does so once a minute.
        app.stack.invoke("sweep", {})
        return [(one.queue, one.seq, one.next_try) for one in process.parked()] == [("fatal", 1, None)]

    assert eventually(stays, seconds=420, every=2.0)
    (parked,) = process.parked()
    assert (parked.attempts, parked.error) == (2, ENDED)
    assert paid(app, "fatal") == {0: 1}
    process.discard("fatal", 1, reason="a test")
    assert eventually(lambda: process.checkpoint("fatal") == 2)
    assert paid(app, "fatal") == {0: 1, 2: 1}
