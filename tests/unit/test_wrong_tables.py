"""An items table that is not there, or has other keys: named at once, by few requests, and nothing is written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OtherKeys, StoreMisconfigured, StreamSorter, TableNotFound
from tests.unit.faulty import THROTTLE, Faulty, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 20
# A cursor row and a slot.
FEW = 2
KEYS = {
    "OnlyPk": [("pk", "S")],
    "PkAndSk": [("pk", "S"), ("sk", "N")],
    # Such is the cursor table of another stack: it would take one message of each queue for a cursor row.
    "OnlyQueue": [("queue", "S")],
    "QueueAndN": [("queue", "S"), ("n", "N")],
}


@pytest.fixture
def others(client: Faulty) -> Faulty:
    """A client that knows tables of other people besides."""
    for table, keys in KEYS.items():
        client.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[
                {"AttributeName": name, "KeyType": kind}
                for (name, _), kind in zip(keys, ("HASH", "RANGE"), strict=False)
            ],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in keys],
        )
    return client


def messages(seq: int) -> Iterator[dict[str, Any]]:
    return ({"queue": f"q{number}", "seq": seq} for number in range(MANY))


@pytest.mark.parametrize("are_known", [False, True], ids=["new queues", "known queues"])
@pytest.mark.parametrize("table", ["Nowhere", *KEYS])
def test_a_wrong_items_table_is_named_at_once_and_nothing_is_tried_for_every_message(
    others: Faulty, table: str, *, are_known: bool
) -> None:
    if are_known:
        StreamSorter(client=others, in_flight=1).put_many(messages(0))
    rows = others.scan(TableName="Cursor")["Items"]
    wrong = StreamSorter(table, client=others, in_flight=1)
    others.calls.clear()
    kind = TableNotFound if table == "Nowhere" else OtherKeys
    with pytest.raises(kind, match=rf"table '{table}' in eu-west-1 .*(is its name right|is it the right table)"):
        wrong.put_many(messages(1))
    assert len(others.calls) == 1, others.calls
    assert others.scan(TableName="Cursor")["Items"] == rows
    if table != "Nowhere":
        assert not others.scan(TableName=table)["Items"]


@pytest.mark.parametrize("table", ["Nowhere", *KEYS])
def test_no_message_of_a_queue_that_is_known_goes_into_a_wrong_items_table(others: Faulty, table: str) -> None:
    StreamSorter(client=others, in_flight=1).put({"queue": "q", "seq": 0})
    wrong = StreamSorter(table, client=others, in_flight=1)
    for call in (
        lambda: wrong.put({"queue": "q", "seq": 1}),
        lambda: wrong.put_many({"queue": "q", "seq": seq} for seq in range(1, MANY)),
        lambda: wrong.skip("q", range(1, MANY)),
    ):
        others.calls.clear()
        with pytest.raises((TableNotFound, OtherKeys), match=f"table '{table}' in eu-west-1 "):
            call()
        assert len(others.calls) <= FEW, others.calls
    if table != "Nowhere":
        assert not others.scan(TableName=table)["Items"]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ExpiredTokenException", "ResourceNotFoundException"])
def test_what_no_queue_escapes_is_met_once_and_not_once_a_queue(client: Faulty, code: str) -> None:
    client.before = {"get_item": [refusal(code, operation="GetItem") for _ in range(MANY)]}
    with pytest.raises(StoreMisconfigured):
        StreamSorter(client=client, in_flight=1).put_many(messages(0))
    assert client.calls == ["query", "get_item"]


def test_advancing_many_queues_meets_a_wrong_items_table_once(others: Faulty) -> None:
    StreamSorter(client=others, in_flight=1).put_many(messages(0))
    rows = others.scan(TableName="Cursor")["Items"]
    others.calls.clear()
    with pytest.raises(TableNotFound, match="no table 'Nowhere'"):
        StreamSorter("Nowhere", client=others, in_flight=1).advance_many(f"q{number}" for number in range(MANY))
    assert len(others.calls) <= FEW, others.calls
    assert others.scan(TableName="Cursor")["Items"] == rows


def test_the_items_table_is_checked_once_and_not_before_every_put(client: Faulty) -> None:
    StreamSorter(client=client, in_flight=1).put({"queue": "q", "seq": 0})
    sorter = StreamSorter(client=client, in_flight=1)
    client.calls.clear()
    sorter.put({"queue": "q", "seq": 1})
    first = list(client.calls)
    client.calls.clear()
    sorter.put({"queue": "q", "seq": 2})
    # The cursor row, too, is read once a process.
    assert sorted(first) == sorted([*client.calls, "get_item", "query"])


@pytest.mark.parametrize("code", [THROTTLE, "AccessDeniedException", "SomethingNew"])
def test_a_check_that_tells_nothing_keeps_no_message_out(client: Faulty, code: str) -> None:
    StreamSorter(client=client, in_flight=1).put({"queue": "q", "seq": 0})
    client.before = {"query": [refusal(code, operation="Query")]}
    assert StreamSorter(client=client, in_flight=1).put({"queue": "q", "seq": 1}).accepted
    assert client.before == {"query": []}


@pytest.mark.parametrize(
    "says",
    [
        "Query key condition not supported",
        "The number of query conditions (2) exceeds the number of key attributes defined in the schema (1)",
        "One or more parameter values were invalid: Condition parameter type does not match schema type",
    ],
)
def test_what_aws_says_of_a_read_with_other_keys_is_no_fault_of_a_message(client: Faulty, says: str) -> None:
    client.before = {"query": [refusal("ValidationException", operation="Query", says=says)]}
    with pytest.raises(OtherKeys, match=r"table 'Items' in eu-west-1 .* is it the right table") as met:
        StreamSorter(client=client, in_flight=1).put_many(messages(0))
    assert met.value.table == "Items"
    assert says in str(met.value)
