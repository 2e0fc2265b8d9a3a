"""Items in DynamoDB's JSON as slots."""

from __future__ import annotations

import json
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_sort.errors import StoreError
from stream_sort.formats.json_text import dumps
from stream_sort.model.message import KeyNames
from stream_sort.replay.ranges import Selection
from stream_sort.replay.slots import MESSAGES, SLOTS, SlotDecoder, document_of, in_time, messages
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.values import encode

KEYS = KeyNames("queue", "seq")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**45), 10**45)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OWN_NAMES = TEXT.filter(lambda name: name and name not in {KEYS.queue, KEYS.seq} and not name.startswith("_ss_"))
FIELDS = st.dictionaries(OWN_NAMES, VALUES, max_size=5)


def sent(document: dict[str, Any], **added: dict[str, Any]) -> dict[str, Any]:
    """An item as it comes over the line: bytes in base64."""
    wire, types = encode(document)
    if types is not None:
        added[tables.TYPES] = {"S": types}
    return json.loads(json.dumps({**wire, **added}, default=lambda value: b64encode(value).decode()))


@given(FIELDS, st.randoms())
@example({"%": 1, "%s": "100 %", '50 %"': True, "%(queue)s": [None]}, Random(0))
def test_the_text_of_a_message_is_that_of_a_sink_with_sorted_fields_in_whatever_order_it_is_sent(
    fields: dict[str, Any], chance: Any
) -> None:
    document = {"queue": "a", "seq": 7, **fields}
    item = sent(document)
    names = list(item)
    chance.shuffle(names)
    (row,) = SlotDecoder(KEYS).batch([{name: item[name] for name in names}]).to_pylist()
    assert json.loads(row["item"]) == json.loads(dumps(document))
    assert row["item"] == SlotDecoder(KEYS).batch([item]).to_pylist()[0]["item"]
    assert list(json.loads(row["item"])) == sorted(json.loads(row["item"]))
    kinds = {name: type(value) for name, value in json.loads(row["item"]).items()}
    assert kinds == {name: type(value) for name, value in json.loads(dumps(document)).items()}


def test_sets_that_others_wrote_come_out_as_sorted_lists() -> None:
    item = {"queue": {"S": "a"}, "seq": {"N": "1"}, "names": {"SS": ["b", "a"]}, "sizes": {"NS": ["10", "9.5"]}}
    (row,) = SlotDecoder(KEYS).batch([item]).to_pylist()
    assert row["item"] == '{"names":["a","b"],"queue":"a","seq":1,"sizes":[9.5,10]}'


@pytest.mark.parametrize("noted", [{}, {tables.TYPES: {"S": '{"float":[["price"]]}'}}])
def test_bytes_in_sets_that_others_wrote_come_back_as_bytes(noted: dict[str, Any]) -> None:
    raw = {"BS": [b64encode(one).decode() for one in (b"zz", b"\x01\x02", b"\xff")]}
    item = {"queue": {"S": "a"}, "seq": {"N": "1"}, "price": {"N": "2"}, "raw": raw, "in": {"L": [{"M": {"x": raw}}]}}
    decoder = SlotDecoder(KEYS)
    plain = sent({"queue": "a", "seq": 0, "raw": "AA=="})
    row = decoder.batch([plain, {**item, **noted}]).to_pylist()[1]
    found = document_of(row["item"], row["binary"])
    assert sorted(found["raw"]) == sorted(found["in"][0]["x"]) == [b"\x01\x02", b"zz", b"\xff"]
    assert decoder.batch([plain]).to_pylist()[0]["binary"] is None


def test_a_tombstone_has_a_reason_and_no_message() -> None:
    mark = {tables.SKIPPED: {"S": "lost"}, tables.ARRIVED_AT: {"N": "1500"}}
    batch = SlotDecoder(KEYS).batch([sent({"queue": "a", "seq": 1}), {"queue": {"S": "a"}, "seq": {"N": "2"}, **mark}])
    assert batch.schema == SLOTS
    assert batch.to_pylist()[1] == {
        "queue": "a",
        "seq": 2,
        "item": None,
        "arrived_at": 1500,
        "skipped": "lost",
        "late": None,
        "binary": None,
    }
    assert messages(batch).schema == MESSAGES
    assert messages(batch).to_pylist() == [{"queue": "a", "seq": 1, "item": '{"queue":"a","seq":1}'}]


@pytest.mark.parametrize(
    "item", [{"queue": {"S": "a"}}, {"queue": {"N": "1"}, "seq": {"N": "1"}}, {"queue": {"S": "a"}, "seq": {"S": "x"}}]
)
def test_an_item_without_usable_keys_is_named(item: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="check queueKey and seqKey"):
        SlotDecoder(KEYS).batch([sent({"queue": "a", "seq": 1}), item])


def test_times_choose_slots_and_one_without_a_time_is_not_chosen() -> None:
    at = [{tables.ARRIVED_AT: {"N": str(time)}} for time in (1_000, 2_000, 3_000)]
    items = [sent({"queue": "a", "seq": seq}, **mark) for seq, mark in enumerate([*at, {}])]
    batch = SlotDecoder(KEYS).batch(items)
    chosen = {
        (since, until): in_time(batch, Selection(since=since, until=until)).column("seq").to_pylist()
        for since, until in [(2.0, None), (None, 2.0), (1.0, 2.001)]
    }
    assert chosen == {(2.0, None): [1, 2], (None, 2.0): [0], (1.0, 2.001): [0, 1]}


@given(FIELDS)
def test_a_message_comes_back_with_its_bytes_as_bytes(fields: dict[str, Any]) -> None:
    document = {"queue": "a", "seq": 7, **fields}
    (row,) = SlotDecoder(KEYS).batch([sent(document)]).to_pylist()
    assert document_of(row["item"], row["binary"]) == document


def test_a_late_message_is_shown_beside_its_tombstone() -> None:
    wire, types = encode({"price": 2.0})
    mark = {tables.SKIPPED: {"S": "lost"}, tables.LATE: {"M": wire}, tables.LATE_TYPES: {"S": types}}
    (row,) = SlotDecoder(KEYS).batch([{"queue": {"S": "a"}, "seq": {"N": "2"}, **mark}]).to_pylist()
    assert (row["item"], row["late"]) == (None, '{"price":2.0,"queue":"a","seq":2}')


def late_item(fields: dict[str, Any], reason: str = "lost") -> dict[str, Any]:
    """A tombstone with a late message beside it, as it comes over the line."""
    wire, types = encode(fields)
    mark = {tables.SKIPPED: {"S": reason}, tables.LATE: {"M": wire}, tables.LATE_TYPES: {"S": types or ""}}
    item = {"queue": {"S": "a"}, "seq": {"N": "7"}, **mark}
    sent_over: dict[str, Any] = json.loads(json.dumps(item, default=lambda value: b64encode(value).decode()))
    return sent_over


def test_a_late_message_is_shown_beside_a_tombstone_without_a_reason() -> None:
    (row,) = SlotDecoder(KEYS).batch([late_item({"text": "x"}, reason="")]).to_pylist()
    assert (row["skipped"], row["late"]) == ("", '{"queue":"a","seq":7,"text":"x"}')


@given(FIELDS)
def test_a_late_message_comes_back_with_its_bytes_as_bytes(fields: dict[str, Any]) -> None:
    plain = sent({"queue": "a", "seq": 6, "text": "x"})
    row = SlotDecoder(KEYS).batch([plain, late_item(fields)]).to_pylist()[1]
    assert document_of(row["late"], row["binary"]) == {"queue": "a", "seq": 7, **fields}


def test_what_stands_between_two_seqs_is_no_slot() -> None:
    items = [sent({"queue": "a", "seq": 1}), {"queue": {"S": "a"}, "seq": {"N": "1.5"}}, sent({"queue": "a", "seq": 2})]
    assert SlotDecoder(KEYS).batch(items).column("seq").to_pylist() == [1, 2]


@pytest.mark.parametrize("seq", [2**63, 10**37, -(2**63) - 1])
def test_an_item_beyond_every_seq_is_named(seq: int) -> None:
    items = [{"queue": {"S": "q"}, "seq": {"N": str(number)}} for number in (1, seq)]
    with pytest.raises(StoreError, match=f"queue 'q' at {seq} is at no seq"):
        SlotDecoder(KEYS).batch(items)
