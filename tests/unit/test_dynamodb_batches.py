"""Batches of which a part fails, on a real table of moto's."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from botocore.parsers import ResponseParserError

from stream_sort import (
    AccessDenied,
    CredentialsError,
    InvalidMessage,
    MessageTooLarge,
    RowDamaged,
    StoreError,
    StoreUnavailable,
    StreamSorter,
)
from stream_sort.model.message import KeyNames, Message
from stream_sort.model.records import Arrival
from stream_sort.ports.in_flight import InFlight
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.inserts import Inserts
from stream_sort.stores.dynamodb.tables import TableNames
from tests.unit.faulty import DUPLICATE, THROTTLE, THROTTLED, Faulty, arrival, message, refusal, statements


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    return StreamSorter(client=client, deadline=0.5, in_flight=1)


def test_statements_that_were_throttled_are_sent_again_and_the_others_are_not(
    client: Faulty, sorter: StreamSorter
) -> None:
    client.answers["batch_execute_statement"] = [
        lambda request: statements(request, {}, THROTTLED, {}),
        lambda request: statements(request, {}),
    ]
    result = sorter.put_many(message(seq) for seq in range(3))
    assert result.accepted == 3


def test_what_stays_throttled_is_reported_and_the_rest_is_stored(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))

    def one_through(request: dict[str, Any]) -> dict[str, Any]:
        answers = [{} if statement["Parameters"][1] == {"N": "1"} else THROTTLED for statement in request["Statements"]]
        return {"Responses": answers}

    client.answers["batch_execute_statement"] = [one_through] * 1_000
    # What failed is tried again by itself.
    client.before = {"put_item": [refusal(THROTTLE)] * 1_000}
    result = sorter.put_many([message(1), message(2)])
    assert result.accepted == 1
    assert [(document["seq"], type(error)) for document, error in result.rejected] == [(2, StoreUnavailable)]


def silent(client: Faulty, queue: str) -> None:
    """No write that touches this queue is answered."""

    def watcher(method: str, request: dict[str, Any]) -> None:
        if method in {"batch_execute_statement", "put_item"} and f"'{queue}'" in str(request):
            raise ReadTimeoutError(endpoint_url="https://dynamodb")

    client.watch = watcher


@pytest.mark.parametrize("time_left", [None, lambda: 3.0])
def test_i7_a_slot_that_does_not_answer_keeps_no_other_message_of_its_batch_out(
    client: Faulty, sorter: StreamSorter, time_left: Any
) -> None:
    queues = [*(f"good{number}" for number in range(24)), "silent"]
    for queue in queues:
        sorter.put({"queue": queue, "seq": 0})
    silent(client, "silent")
    result = sorter.put_many([{"queue": queue, "seq": 1} for queue in queues], time_left=time_left)
    assert result.accepted == 24
    assert [document["queue"] for document, _ in result.rejected] == ["silent"]


def test_one_answer_that_cannot_be_read_does_not_end_batching(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    client.before = {"batch_execute_statement": [ResponseParserError("<html>")]}
    client.answers["batch_execute_statement"] = [lambda request: statements(request, {}, {})] * 2
    assert sorter.put_many([message(1), message(2)]).accepted == 2
    sorter.stores.items.put_many([arrival(3), arrival(4)], 0.0)
    assert client.calls.count("batch_execute_statement") == 3


def test_an_answer_that_cannot_be_read_is_an_error_of_ours(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"get_item": [ResponseParserError("<html>")]}
    assert sorter.put(message(0)).status == "accepted"
    client.before = {"put_item": [ResponseParserError("<html>")] * 1_000}
    with pytest.raises(StoreUnavailable, match="<html>"):
        sorter.put(message(1))


def test_a_key_that_may_not_be_used_is_told_as_such(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"get_item": [refusal("KMSAccessDeniedException")]}
    with pytest.raises(AccessDenied, match="not allowed to use the KMS key of table 'Cursor'") as raised:
        sorter.put(message(0))
    assert "dynamodb:" not in str(raised.value)


def test_a_batch_that_is_throttled_whole_is_not_taken_apart(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    client.calls.clear()
    client.before = {"batch_execute_statement": [refusal("RequestLimitExceeded")] * 1_000}
    assert len(sorter.put_many(message(seq) for seq in range(1, 26)).rejected) == 25
    assert "put_item" not in client.calls


def test_a_duplicate_that_was_not_shown_is_fetched(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0, body="first"), message(1)])
    sorter = StreamSorter(client=client, in_flight=1)
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, DUPLICATE)]
    result = sorter.put_many([message(0, body="second"), message(1)])
    assert (result.conflicts, result.duplicates) == ([message(0, body="second")], [message(1)])
    assert "batch_get_item" in client.calls


def test_without_the_permission_for_batches_messages_are_stored_one_by_one(
    client: Faulty, sorter: StreamSorter
) -> None:
    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")] * 9}
    assert sorter.put_many(message(seq) for seq in range(60)).accepted == 60
    assert client.calls.count("batch_execute_statement") == 1
    assert client.calls.count("put_item") >= 60


def test_field_names_never_become_part_of_a_statement_unless_they_are_plain(
    client: Faulty, sorter: StreamSorter
) -> None:
    hostile = {"x':1}; DELETE": 1, "it's": 2, 'a"b': 3, "ünï": 4, "a,b": 5}
    assert sorter.put_many(message(seq, **hostile) for seq in range(3)).accepted == 3
    assert "batch_execute_statement" not in client.calls
    assert list(sorter.read("q")) == [message(seq, **hostile) for seq in range(3)]


def test_duplicates_that_were_not_processed_are_fetched_again(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, DUPLICATE)]
    client.answers["batch_get_item"] = [lambda request: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}]
    fresh = StreamSorter(client=client, in_flight=1)
    before = client.calls.count("put_item")
    answers = fresh.stores.items.put_many([arrival(0), arrival(1)], 0.0)
    assert [getattr(answer, "seq", None) for answer in answers] == [0, 1]
    assert client.calls.count("put_item") == before


def test_a_duplicate_that_cannot_be_fetched_is_reported_alone(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, {})]
    client.before = {"batch_get_item": [refusal(THROTTLE)] * 1_000}
    fresh = StreamSorter(client=client, deadline=0.3, in_flight=1)
    answers = fresh.stores.items.put_many([arrival(0), arrival(2)], 0.0)
    assert isinstance(answers[0], StoreUnavailable)
    assert answers[1] is None


def test_a_permanent_error_while_duplicates_are_looked_up_is_no_error_of_the_whole_call(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, {}, DUPLICATE)]
    client.before = {"batch_get_item": [refusal("SomethingNew")]}
    fresh = StreamSorter(client=client, in_flight=1)
    answers = fresh.stores.items.put_many([arrival(0), arrival(2), arrival(1)], 0.0)
    # The conditional put of each decides instead.
    assert [getattr(answer, "seq", answer) for answer in answers] == [0, None, 1]


def test_a_record_that_cannot_be_looked_up_at_all_is_the_only_one_with_an_error(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, DUPLICATE, {}, DUPLICATE)]
    client.before = {"batch_get_item": [refusal("SomethingNew")]}

    def refuse(method: str, request: dict[str, Any]) -> None:
        if method == "put_item" and request.get("Item", {}).get("seq") == {"N": "0"}:
            raise refusal("SomethingNew")

    client.watch = refuse
    result = StreamSorter(client=client, in_flight=1).put_many([message(0), message(2), message(1)])
    assert (result.accepted, result.duplicates) == (1, [message(1)])
    assert [(document["seq"], type(error)) for document, error in result.rejected] == [(0, StoreError)]


def test_a_slot_that_others_made_unreadable_is_the_answer_for_its_own_message_only(
    client: Faulty, sorter: StreamSorter
) -> None:
    sorter.put_many([message(0), message(1)])
    client.put_item(TableName="Items", Item={**wire(2), "_ss_types": {"S": "no JSON"}})
    result = sorter.put_many([message(2), message(3), message(1)])
    assert (result.accepted, result.duplicates) == (1, [message(1)])
    assert [(document["seq"], type(error)) for document, error in result.rejected] == [(2, RowDamaged)]


def test_expired_credentials_do_not_end_batching(client: Faulty, sorter: StreamSorter) -> None:
    client.before = {"batch_execute_statement": [refusal("ExpiredTokenException")]}
    with pytest.raises(CredentialsError):
        sorter.put_many([message(0), message(1)])
    client.answers["batch_execute_statement"] = [lambda request: statements(request, {}, {})]
    assert sorter.put_many([message(0), message(1)]).accepted == 2


def test_a_message_only_the_table_finds_too_large_is_named(sorter: StreamSorter) -> None:
    large = Arrival(Message("q", 0, message(0, body="x" * 420_000), 10), None)
    with pytest.raises(MessageTooLarge):
        sorter.stores.items.put(large, 0.0)
    (answer,) = sorter.stores.items.put_many([large], 0.0)
    assert isinstance(answer, MessageTooLarge)


def test_what_a_batch_decided_stays_so_when_its_next_round_fails(client: Faulty, sorter: StreamSorter) -> None:
    sorter.put(message(0))
    client.answers["batch_execute_statement"] = [
        lambda request: statements(request, {}, {**DUPLICATE, "Item": wire(2)}, THROTTLED)
    ]

    def fail_again(method: str, _: dict[str, Any]) -> None:
        if client.calls.count("batch_execute_statement") > 1 and method == "batch_execute_statement":
            raise refusal("InternalServerError", 500)

    client.watch = fail_again
    stored, there, failed = sorter.stores.items.put_many([arrival(1), arrival(2), arrival(3)], 0.0)
    assert (stored, getattr(there, "seq", there)) == (None, 2)
    assert isinstance(failed, StoreUnavailable)
    assert client.calls.count("batch_execute_statement") > 1


def wire(seq: int, queue: str = "q") -> dict[str, Any]:
    return {"queue": {"S": queue}, "seq": {"N": str(seq)}}


INDEX_KEY = (
    "One or more parameter values were invalid: Type mismatch for Index Key author Expected: S Actual: N "
    "IndexName: by_author"
)


def test_i9_a_message_that_an_index_of_the_table_refuses_is_rejected_alone(
    client: Faulty, sorter: StreamSorter
) -> None:
    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")]}

    def refuse(method: str, request: dict[str, Any]) -> None:
        if method == "put_item" and "N" in request["Item"].get("author", {}):
            raise refusal("ValidationException", says=INDEX_KEY)

    client.watch = refuse
    result = sorter.put_many([message(0, author="ada"), message(1, author=5), {"queue": "r", "seq": 0}])
    assert result.accepted == 2
    ((refused, error),) = result.rejected
    assert (refused["seq"], type(error)) == (1, InvalidMessage)
    assert "Index Key author" in str(error)


def test_i7_a_throttled_message_put_alone_delays_no_other(client: Faulty) -> None:
    sorter = StreamSorter(client=client, deadline=0.2, in_flight=1)
    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")]}
    client.watch = throttle_hot
    result = sorter.put_many([*({"queue": "hot", "seq": seq} for seq in range(20)), message(0), message(1)])
    assert (len(result.rejected), result.accepted, sorter.position("q")) == (20, 2, 1)


def test_i7_throttled_messages_put_alone_all_wait_once(client: Faulty) -> None:
    now = [0.0]
    calls = Calls(client, 1.0, lambda seconds: now.__setitem__(0, now[0] + seconds), lambda: now[0], lambda: 0.5)
    inserts = Inserts(calls, TableNames("Items", "Cursor", KeyNames()), InFlight(1))
    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")]}
    client.watch = throttle_hot
    answers = inserts.many([*(wire(seq, "hot") for seq in range(20)), wire(0), wire(1)])
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 20 + [type(None)] * 2
    assert 0.5 < now[0] < 2.0, "twenty waits would take 20 seconds"


def throttle_hot(method: str, request: dict[str, Any]) -> None:
    if method == "put_item" and request["TableName"] == "Items" and request["Item"]["queue"]["S"] == "hot":
        raise refusal(THROTTLE)


def test_i7_a_table_that_does_not_answer_is_not_asked_for_every_message(client: Faulty) -> None:
    now = [0.0]
    calls = Calls(client, 10.0, lambda seconds: now.__setitem__(0, now[0] + seconds), lambda: now[0], lambda: 0.5)
    inserts = Inserts(calls, TableNames("Items", "Cursor", KeyNames()), InFlight(1))

    def silent(method: str, _: dict[str, Any]) -> None:
        now[0] += 5.0
        raise ReadTimeoutError(endpoint_url=method)

    client.before = {"batch_execute_statement": [refusal("AccessDeniedException")]}
    inserts.many([wire(0), wire(1)])
    client.calls.clear()
    client.watch = silent
    answers = inserts.many([wire(seq) for seq in range(2, 22)])
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    assert client.calls == ["put_item"] * 2


def test_a_batch_that_hangs_longer_than_there_is_time_is_followed_by_no_other_call_and_then_taken_apart(
    client: Faulty,
) -> None:
    now = [0.0]
    calls = Calls(client, 3.0, lambda seconds: now.__setitem__(0, now[0] + seconds), lambda: now[0], lambda: 0.5)
    inserts = Inserts(calls, TableNames("Items", "Cursor", KeyNames()), InFlight(1))
    inserts.check_keys("q")

    def silent(method: str, _: dict[str, Any]) -> None:
        now[0] += 5.0
        raise ReadTimeoutError(endpoint_url=method)

    client.calls.clear()
    client.watch = silent
    assert {type(answer) for answer in inserts.many([wire(0), wire(1)])} == {StoreUnavailable}
    assert client.calls == ["batch_execute_statement"]
    client.watch = lambda *_: None
    assert inserts.many([wire(0), wire(1)]) == [None, None]
    assert client.calls[1:] == ["put_item"] * 2
