"""What advance does with the items table's stream."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidInput, StoreError, StoreUnavailable, StreamSorter, Sweeper, TableNotFound
from stream_sort.aws_lambda.advance import AdvanceStep
from tests.functional.conftest import TUNING, LittleTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from tests.functional.conftest import Context, Table, Told


@pytest.fixture
def advance(sorter: StreamSorter, telemetries: dict[str, Telemetry], context: Context) -> Callable[[Any], Any]:
    function = AdvanceStep(sorter, telemetries["advance"])
    return lambda event: function(event, context)


def write(dynamo: Table, queue: str, *seqs: int) -> None:
    """Write items past the sorter, as a user or a writer that died would."""
    for seq in seqs:
        dynamo.client.put_item(TableName="Items", Item={"queue": {"S": queue}, "seq": {"N": str(seq)}})


def stream(*queues: str, event: str = "INSERT") -> dict[str, Any]:
    return {
        "Records": [
            {
                "eventName": event,
                "eventSource": "aws:dynamodb",
                "dynamodb": {"Keys": {"queue": {"S": queue}, "seq": {"N": "0"}}, "SequenceNumber": f"number-{index}"},
            }
            for index, queue in enumerate(queues)
        ]
    }


def test_items_that_others_wrote_are_released(
    advance: Any, sample: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    write(dynamo, "orders-17", 0, 1, 3)
    write(dynamo, "orders-18", 0)
    assert advance(sample("advance_items_stream")) == {"batchItemFailures": []}
    assert (sorter.position("orders-17"), sorter.position("orders-18")) == (1, 0)
    assert told.metrics() == {"CursorAdvanced": 3}


def test_a_withdrawal_wakes_nobody_and_is_no_rejected_item(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, 5))
    sorter.withdraw("q", 5)
    (aside,) = [item for item in dynamo.client.scan(TableName="Items")["Items"] if item["queue"]["S"] != "q"]
    before = len(dynamo.calls)
    assert advance(stream(aside["queue"]["S"])) == {"batchItemFailures": []}
    assert (len(dynamo.calls), told.metrics()) == (before, {})


@pytest.mark.parametrize("number", ["9" * 38, "1.5", "x"])
def test_i7_an_item_at_no_seq_holds_up_no_other_queue(
    number: str, advance: Any, dynamo: Table, sorter: StreamSorter
) -> None:
    write(dynamo, "q", 0)
    event = stream("strange", "q")
    event["Records"][0]["dynamodb"]["Keys"]["seq"]["N"] = number
    assert advance(event) == {"batchItemFailures": []}
    assert sorter.position("q") == 0


def test_i8_what_a_dead_writer_stored_is_released(advance: Any, dynamo: Table, sorter: StreamSorter) -> None:
    sorter.put({"queue": "q", "seq": 0})
    write(dynamo, "q", 1)
    advance(stream("q"))
    assert sorter.position("q") == 1


def test_each_queue_of_a_batch_is_advanced_once(advance: Any, dynamo: Table) -> None:
    write(dynamo, "q", *range(10))
    advance(stream(*"qqqqqqqqqq"))
    assert dynamo.calls.count("GetItem") == 1


@pytest.mark.parametrize("event", ["MODIFY", "REMOVE"])
def test_only_a_new_item_wakes_its_queue(advance: Any, dynamo: Table, event: str) -> None:
    write(dynamo, "q", 0)
    dynamo.calls.clear()
    assert advance(stream("q", event=event)) == {"batchItemFailures": []}
    assert dynamo.calls == []


@pytest.mark.parametrize("keys", [None, {}, {"queue": {"S": "q"}}, {"id": {"S": "q"}}, {"queue": {"N": "1"}, "seq": 1}])
def test_records_of_other_tables_are_ignored_with_a_warning(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told, keys: Any
) -> None:
    write(dynamo, "good", 0)
    event = stream("q", "good")
    event["Records"][0]["dynamodb"]["Keys"] = keys
    assert advance(event) == {"batchItemFailures": []}
    assert sorter.position("good") == 0
    (warning,) = told.logs(logging.WARNING)
    assert "is this the items table's stream?" in warning["text"]


def test_i7_a_queue_that_fails_comes_again_from_its_first_record_and_delays_no_other(
    advance: Any, dynamo: Table, sorter: StreamSorter
) -> None:
    for queue in ("good", "bad", "worse"):
        write(dynamo, queue, 0)
    dynamo.fail("Query", '"bad"')
    dynamo.fail("Query", '"worse"')
    event = stream("good", "bad", "worse", "bad", "good")
    assert advance(event) == {"batchItemFailures": [{"itemIdentifier": "number-1"}]}
    assert sorter.position("good") == 0
    dynamo.faults.clear()
    assert advance(event) == {"batchItemFailures": []}
    assert (sorter.position("bad"), sorter.position("worse")) == (0, 0)


def test_a_batch_that_failed_whole_is_raised(advance: Any, dynamo: Table) -> None:
    write(dynamo, "bad", 0)
    dynamo.fail("Query", '"bad"')
    with pytest.raises(StoreUnavailable):
        advance(stream("bad", "bad"))


def test_i7_a_queue_that_no_retry_will_advance_does_not_hold_the_shard(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    sorter.put({"queue": "lost", "seq": 0})
    dynamo.client.delete_item(TableName="Cursor", Key={"queue": {"S": "lost"}})
    write(dynamo, "good", 0)
    assert advance(stream("lost", "good")) == {"batchItemFailures": []}
    assert sorter.position("good") == 0
    assert told.metrics() == {"Rejected": 1, "CursorAdvanced": 1}
    assert [(record["queue"], record["error"]) for record in told.logs(logging.ERROR)] == [("lost", "CursorLost")]


def test_a_code_that_nobody_knows_does_not_leave_a_new_queue_without_a_row(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    def refuse(**_: Any) -> Any:
        body = {"Error": {"Code": "KMSDisabledException", "Message": "the key is disabled"}}
        return SimpleNamespace(status_code=400), body | {"ResponseMetadata": {"HTTPStatusCode": 400}}

    write(dynamo, "new", 0)
    dynamo.client.meta.events.register("before-call.dynamodb.PutItem", refuse)
    with pytest.raises(StoreError, match="KMSDisabledException"):
        advance(stream("new"))
    assert told.metrics() == {}
    dynamo.client.meta.events.unregister("before-call.dynamodb.PutItem", refuse)
    assert advance(stream("new")) == {"batchItemFailures": []}
    assert sorter.position("new") == 0


@pytest.mark.parametrize("number", ["1.5", "-0.5", "1E-3"])
def test_an_item_with_a_seq_that_is_no_whole_number_is_told_and_holds_up_nobody(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told, number: str
) -> None:
    write(dynamo, "q", 0, 1)
    dynamo.client.put_item(TableName="Items", Item={"queue": {"S": "q"}, "seq": {"N": number}})
    event = stream("q", "q", "q")
    event["Records"][1]["dynamodb"]["Keys"]["seq"]["N"] = number
    assert advance(event) == {"batchItemFailures": []}
    assert sorter.position("q") == 1
    assert told.metrics() == {"Rejected": 1, "CursorAdvanced": 2}
    (logged,) = told.logs(logging.ERROR)
    assert (logged["queue"], logged["seq"]) == ("q", number)
    assert "will never be released" in logged["text"]


def test_i7_an_unforeseen_error_in_one_queue_stops_no_other_and_does_not_hold_the_shard(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    for queue in ("a", "bad", "c"):
        write(dynamo, queue, 0)
    look = sorter.stores.items.look

    def failing(queue: str, *args: Any) -> Any:
        if queue == "bad":
            raise ZeroDivisionError("in the middle")
        return look(queue, *args)

    monkeypatch.setattr(sorter.stores.items, "look", failing)
    assert advance(stream("a", "bad", "c")) == {"batchItemFailures": []}
    monkeypatch.undo()
    assert (sorter.position("a"), sorter.position("c"), sorter.position("bad")) == (0, 0, -1)
    (line,) = told.logs(logging.ERROR)
    assert (line["queue"], line["error"], "in the middle" in line["reason"]) == ("bad", "InternalError", True)


def test_a_missing_table_is_raised_until_somebody_puts_it_right(advance: Any, dynamo: Table) -> None:
    dynamo.client.delete_table(TableName="Cursor")
    with pytest.raises(TableNotFound):
        advance(stream("q"))


@pytest.mark.parametrize("name", ["enqueue_sqs", "enqueue_direct_one", "sweep_schedule"])
def test_i9_another_event_is_refused_by_name(advance: Any, sample: Any, name: str) -> None:
    with pytest.raises(InvalidInput, match="advance takes a batch of a DynamoDB stream"):
        advance(sample(name))


def test_a_backlog_that_takes_longer_than_lambda_allows_is_left_to_the_sweep(
    dynamo: Table, telemetries: dict[str, Telemetry], told: Told
) -> None:
    sorter = StreamSorter(client=dynamo.client, max_advance=10, **TUNING)
    write(dynamo, "q", *range(200))
    context = LittleTime(dynamo, 20)
    assert AdvanceStep(sorter, telemetries["advance"])(stream("q"), context) == {"batchItemFailures": []}
    assert context.get_remaining_time_in_millis() > 0
    assert 0 < sorter.position("q") < 199
    assert "a sweep releases the rest" in told.everything()
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 199


def test_a_bug_of_ours_in_one_queue_stops_no_other(
    advance: Any, dynamo: Table, sorter: StreamSorter, told: Told
) -> None:
    look = sorter.stores.items.look

    def failing(queue: str, after: int, limit: int) -> Any:
        if queue == "bad":
            raise ZeroDivisionError
        return look(queue, after, limit)

    sorter.stores.items.look = failing  # type: ignore[method-assign]
    write(dynamo, "q", 0)
    assert advance(stream("bad", "q")) == {"batchItemFailures": []}
    assert sorter.position("q") == 0
    assert "ZeroDivisionError" in told.everything()
