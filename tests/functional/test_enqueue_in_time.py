"""enqueue in the time that Lambda gives it, and its figure of messages that came out of order."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable, StreamSorter, Sweeper
from stream_sort.aws_lambda.enqueue import EnqueueStep
from tests.functional.conftest import TUNING, LittleTime

if TYPE_CHECKING:
    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Table, Told


def message(seq: int, queue: str = "q") -> dict[str, Any]:
    return {"queue": queue, "seq": seq}


def sqs(*messages: dict[str, Any]) -> dict[str, Any]:
    return {
        "Records": [
            {"messageId": f"{one['queue']}-{one['seq']}", "body": json.dumps(one), "eventSource": "aws:sqs"}
            for one in messages
        ]
    }


@pytest.fixture
def sorter(dynamo: Table) -> StreamSorter:
    return StreamSorter(client=dynamo.client, max_advance=10, **TUNING)


@pytest.fixture
def enqueue(sorter: StreamSorter, telemetries: dict[str, Telemetry]) -> EnqueueStep:
    return EnqueueStep(sorter, telemetries["enqueue"])


def test_a_stored_message_is_not_given_up_because_its_backlog_takes_longer_than_lambda_allows(
    dynamo: Table, sorter: StreamSorter, enqueue: EnqueueStep, told: Told
) -> None:
    sorter.put_many(message(seq) for seq in range(1, 200))
    context = LittleTime(dynamo, 20)
    assert enqueue(sqs(message(0), message(0, "r")), context) == {"batchItemFailures": []}
    assert context.get_remaining_time_in_millis() > 0
    assert 0 < sorter.position("q") < 199
    (log,) = [log for log in told.logs() if "a sweep releases the rest" in log["text"]]
    assert (log["count"], log["queues"]) == (1, ["q"])
    Sweeper(sorter).sweep()
    assert (sorter.position("q"), sorter.position("r")) == (199, 0)


def test_a_caller_is_told_which_queues_a_sweep_will_release(
    dynamo: Table, sorter: StreamSorter, enqueue: EnqueueStep
) -> None:
    sorter.put_many(message(seq) for seq in range(1, 200))
    answer = enqueue([message(0), message(0, "r")], LittleTime(dynamo, 20))
    assert (answer["accepted"], answer["unreleased"]) == (2, ["q"])


def test_what_the_time_does_not_suffice_for_comes_again(
    dynamo: Table, sorter: StreamSorter, enqueue: EnqueueStep
) -> None:
    batch = [message(0, f"q{number:02}") for number in range(40)]
    answer = enqueue(sqs(*batch), LittleTime(dynamo, 20))
    failed = {one["itemIdentifier"] for one in answer["batchItemFailures"]}
    stored = {f"{one['queue']}-0" for one in batch if sorter.stores.items.highest(one["queue"]) is not None}
    assert failed | stored == {f"{one['queue']}-0" for one in batch}
    assert failed
    for _ in range(40):
        failed = {one["itemIdentifier"] for one in enqueue(sqs(*batch), LittleTime(dynamo, 20))["batchItemFailures"]}
    assert failed == set()


def test_a_list_sent_and_forgotten_loses_no_message_when_the_time_runs_short(
    dynamo: Table, sorter: StreamSorter, enqueue: EnqueueStep, told: Told
) -> None:
    batch = [message(0, f"q{number:02}") for number in range(40)]
    with pytest.raises(StoreUnavailable, match=r"of 40 messages .* the same call can be made again") as raised:
        enqueue(batch, LittleTime(dynamo, 20))
    stored = sum(sorter.slot(one["queue"], 0) is not None for one in batch)
    assert 0 < stored < 40
    assert f"{stored} of 40 messages are stored, {40 - stored} are not" in str(raised.value)
    assert told.metrics()["NotStored"] == 40 - stored
    # As Lambda does with an asynchronous event that raised.
    while stored < 40:
        with suppress(StoreUnavailable):
            enqueue(batch, LittleTime(dynamo, 20))
        stored = sum(sorter.slot(one["queue"], 0) is not None for one in batch)
    assert enqueue(batch, None)["rejected"] == []


def test_messages_that_came_out_of_order_are_counted_and_their_queues_logged(enqueue: EnqueueStep, told: Told) -> None:
    enqueue(sqs(message(0), message(2), message(1), message(0, "r"), message(1, "r")), None)
    assert told.metrics()["OutOfOrder"] == 1
    enqueue(sqs(message(5), message(7), message(6), message(3), message(5, "r"), message(4, "r")), None)
    assert told.metrics()["OutOfOrder"] == 3
    logs = [(log["count"], log["queues"]) for log in told.logs() if log["text"] == "out of order"]
    assert logs == [(1, {"q": 1}), (3, {"q": 2, "r": 1})]


def test_a_message_behind_one_that_somebody_else_stored_is_out_of_order(
    enqueue: EnqueueStep, dynamo: Table, told: Told
) -> None:
    other = StreamSorter(client=dynamo.client, **TUNING)
    other.put(message(1))
    enqueue([message(0)], None)
    other.put(message(5))
    # Behind a gap nobody looks, as a look costs: it is not seen that 5 was there before.
    enqueue([message(3)], None)
    enqueue([message(2)], None)
    assert [log["queues"] for log in told.logs() if log["text"] == "out of order"] == [{"q": 1}, {"q": 1}]


def test_a_message_behind_a_duplicate_of_the_same_call_is_out_of_order(enqueue: EnqueueStep, told: Told) -> None:
    enqueue([message(10)], None)
    enqueue([message(10), message(1)], None)
    assert [log["queues"] for log in told.logs() if log["text"] == "out of order"] == [{"q": 1}]


def test_duplicates_and_gaps_are_not_out_of_order(enqueue: EnqueueStep, told: Told) -> None:
    enqueue([message(0), message(1), message(4), message(9)], None)
    enqueue([message(1), message(0), message(12)], None)
    assert "OutOfOrder" not in told.metrics()
