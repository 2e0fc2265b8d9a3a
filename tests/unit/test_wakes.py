"""Which queues an event wakes, and what Lambda is told of those that failed. A record only wakes."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import InvalidInput, RowDamaged, StoreUnavailable
from stream_sort.aws_lambda.wakes import WakeReader, batch_response
from stream_sort.model.consumption import Served, Wake
from stream_sort.model.message import KeyNames

ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/{}/stream/2026-01-01T00:00:00.000"
READER = WakeReader("billing", "Cursor", KeyNames("author", "number"))


def stream(queue: Any = "q", position: Any = "5", *, number: str = "77", table: str = "Cursor", **body: Any) -> Any:
    """A record of the cursor table's stream; `body` replaces parts of it."""
    image = {"author": {"S": queue}, "number": {"N": position}, "_ss_first_seq": {"N": "0"}}
    told = {"Keys": {"author": {"S": queue}}, "NewImage": image, "OldImage": image, "SequenceNumber": number}
    return {
        "eventSource": "aws:dynamodb",
        "eventName": "MODIFY",
        "eventSourceARN": ARN.format(table),
        "dynamodb": told | body,
    }


def retry(body: str, name: str = "m-1") -> Any:
    return {"eventSource": "aws:sqs", "messageId": name, "body": body}


def read(*records: Any) -> tuple[list[Wake], list[str]]:
    found = READER.read({"Records": list(records)})
    return found.wakes, found.ignored


def test_a_stream_record_wakes_its_queue_with_the_position_as_a_hint() -> None:
    assert read(stream()) == ([Wake("q", 5, ("77",))], [])
    assert read(stream("naïve 🦄", "-1"))[0] == [Wake("naïve 🦄", -1, ("77",))]


def test_records_wake_in_their_order() -> None:
    wakes, _ = read(stream("b"), stream("a"), retry('{"consumer": "billing", "queue": "c"}'), stream("b"))
    assert [wake.queue for wake in wakes] == ["b", "a", "c", "b"]


@pytest.mark.parametrize("old", [None, {}, {"number": {"N": "9"}}, {"number": {"S": "x"}}, "nonsense"], ids=str)
def test_of_the_old_image_nothing_is_read(old: Any) -> None:
    assert read(stream(OldImage=old)) == read(stream())


@pytest.mark.parametrize(
    "new",
    [None, {}, [], {"number": "5"}, {"number": {"S": "5"}}, {"number": {"N": 5}}]
    + [{"number": {"N": text}} for text in ("", "-", "--5", "5.0", "1e3", "\u0665", "9" * 99)],
    ids=str,
)
def test_a_record_without_a_position_wakes_without_a_hint(new: Any) -> None:
    assert read(stream(NewImage=new)) == ([Wake("q", None, ("77",))], [])


def test_a_removed_cursor_row_wakes_its_queue() -> None:
    record = stream()
    record["eventName"] = "REMOVE"
    del record["dynamodb"]["NewImage"]
    assert read(record) == ([Wake("q", None, ("77",))], [])


def test_unknown_attributes_are_let_be() -> None:
    record = stream()
    record["dynamodb"]["NewImage"]["mood"] = {"S": "fine"}
    record["later"] = {"version": 2}
    assert read(record)[0] == [Wake("q", 5, ("77",))]


def test_records_of_other_tables_wake_nobody() -> None:
    wakes, ignored = read(stream(table="Items"), stream(table="Cursor2"), stream("mine"))
    assert [wake.queue for wake in wakes] == ["mine"]
    assert ignored == ["a record of table 'Items', not of 'Cursor'", "a record of table 'Cursor2', not of 'Cursor'"]


def test_without_an_arn_the_keys_decide() -> None:
    record = stream()
    del record["eventSourceARN"]
    assert len(read(record)[0]) == 1


@pytest.mark.parametrize(
    "record",
    [
        {},
        None,
        "text",
        {"eventSource": "aws:kinesis"},
        {"eventSource": "aws:dynamodb"},
        stream(Keys=None),
        stream(Keys={}),
        stream(Keys={"queue": {"S": "q"}}),
        stream(Keys={"author": {"N": "5"}}),
        stream(queue=""),
        stream(queue="\n"),
        {"eventSource": "aws:sqs", "messageId": "m"},
        retry(""),
        retry("[]"),
        retry("not json"),
        retry("[" * 100_000),
        retry('{"consumer": "billing"}'),
        retry('{"consumer": "billing", "queue": 7}'),
        retry('{"consumer": "audit", "queue": "q"}'),
    ],
    ids=lambda record: str(record)[:60],
)
def test_i9_a_record_that_wakes_nobody_is_named_and_affects_no_other(record: Any) -> None:
    wakes, ignored = read(stream("a"), record, stream("b"))
    assert [wake.queue for wake in wakes] == ["a", "b"]
    assert len(ignored) == 1
    assert ignored[0]


@pytest.mark.parametrize("event", [None, [], {}, {"Records": None}, {"queue": "q"}, "text"], ids=str)
def test_an_event_without_records_is_refused(event: Any) -> None:
    with pytest.raises(InvalidInput, match="no batch of records"):
        READER.read(event)


def test_a_message_of_the_retry_queue_wakes_its_queue() -> None:
    assert read(retry('{"consumer": "billing", "queue": "naïve"}')) == ([Wake("naïve", None, ("m-1",))], [])


WAKES = [Wake("a", 1, ("1",)), Wake("b", 1, ("2",)), Wake("a", 2, ("3",)), Wake("c", 1, ("4",))]
DOWN = StoreUnavailable("out of reach")


def served(**ends: str) -> list[Served]:
    return [Served(queue, ended=end, error=DOWN if end == "failed" else None) for queue, end in ends.items()]


def test_lambda_is_told_all_records_of_a_failed_queue_the_lowest_first() -> None:
    answer = batch_response(WAKES, served(a="failed", b="done", c="parked"))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "1"}, {"itemIdentifier": "3"}]}


@pytest.mark.parametrize("end", ["done", "parked", "waiting", "overtaken", "handed over"])
def test_only_what_could_not_be_recorded_comes_again(end: str) -> None:
    assert batch_response(WAKES, served(a=end, b="done", c=end)) == {"batchItemFailures": []}


def test_if_all_queues_failed_the_error_is_raised() -> None:
    with pytest.raises(StoreUnavailable):
        batch_response(WAKES, served(a="failed", b="failed", c="failed"))


def test_a_failed_record_without_a_name_fails_the_whole_batch() -> None:
    with pytest.raises(StoreUnavailable):
        batch_response([*WAKES, Wake("d")], served(a="done", b="done", c="done", d="failed"))


def test_a_queue_whose_row_cannot_be_read_is_not_sent_again_as_that_would_only_hold_up_its_shard() -> None:
    damaged = Served("a", ended="failed", error=RowDamaged("a row without version"))
    assert batch_response(WAKES, [damaged, *served(b="done", c="done")]) == {"batchItemFailures": []}
    assert batch_response([WAKES[0]], [damaged]) == {"batchItemFailures": []}
    assert batch_response([Wake("a")], [damaged]) == {"batchItemFailures": []}
    answer = batch_response(WAKES, [damaged, *served(b="failed", c="done")])
    assert answer == {"batchItemFailures": [{"itemIdentifier": "2"}]}


def test_an_event_of_nothing_fails_nothing() -> None:
    assert batch_response([], []) == {"batchItemFailures": []}
