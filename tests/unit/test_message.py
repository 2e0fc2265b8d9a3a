from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from typing import Any

import pytest

from stream_sort import InvalidMessage, InvalidQueue, MessageTooLarge, SettingsError
from stream_sort.model.message import KeyNames, check_message, check_queue, clone, same_value, take_message

KEYS = KeyNames()


def check(**fields: Any) -> Any:
    return check_message({"queue": "q", "seq": 1, **fields}, KEYS)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "name", ["a", "a/b#c", "🦄", "👩‍👩‍👧", "  leading", "{x,y}", "a*b", "..", "007", "é" * 512, "x" * 1024]
)
def test_a_queue_is_any_printable_text(name: str) -> None:
    assert check_queue(name) == name
    assert check_message({"queue": name, "seq": 0}, KEYS).queue == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "at least one character"),
        ("a\nb", "control character U+000A"),
        ("a: b\n", "control character U+000A"),
        ("\x7f", "control character U+007F"),
        ("\x9b31m", "control character U+009B"),
        ("a\ud800", "lone surrogate U+D800"),
        ("é" * 513, "1,026 bytes, over the limit of 1,024"),
        (7, "text, not int"),
        (None, "text, not NoneType"),
    ],
)
def test_a_bad_queue_name_is_refused_by_name_and_in_a_message(name: Any, says: str) -> None:
    with pytest.raises(InvalidQueue, match=says.replace("+", r"\+")):
        check_queue(name)
    with pytest.raises(InvalidMessage, match=says.replace("+", r"\+")) as caught:
        check_message({"queue": name, "seq": 0}, KEYS)
    assert caught.value.field == "queue"


@pytest.mark.parametrize("seq", [True, 1.0, "1", None, 2**63, -(2**63), b"1", pytest.param(10**5000, id="huge")])
def test_a_seq_that_is_no_int_in_range_is_refused(seq: Any) -> None:
    with pytest.raises(InvalidMessage) as caught:
        check_message({"queue": "q", "seq": seq}, KEYS)
    assert caught.value.field == "seq"


@pytest.mark.parametrize("document", [None, "text", [], 7, ("queue", "seq")])
def test_what_is_no_dict_is_no_message(document: Any) -> None:
    with pytest.raises(InvalidMessage, match="a message is a dict"):
        check_message(document, KEYS)


def test_a_message_without_its_keys_is_told_which_one_is_missing() -> None:
    with pytest.raises(InvalidMessage, match="no field 'seq'"):
        check_message({"queue": "q"}, KEYS)
    with pytest.raises(InvalidMessage, match="no field 'author'"):
        check_message({"queue": "q", "seq": 1}, KeyNames("author", "seq"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "nan is not a JSON number"),
        (math.inf, "inf is not"),
        ({1, 2}, "set cannot be stored; use a list"),
        ((1, 2), "tuple cannot be stored; use a list"),
        (decimal.Decimal(1), "Decimal cannot be stored; use int, float or text"),
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "isoformat"),
        (uuid.uuid4(), r"use str\(\)"),
        (object(), "object cannot be stored"),
        ("\ud800", r"lone surrogate U\+D800"),
        pytest.param(1 << 20_000, "int of 20,001 bits", id="huge"),
        ({1: "x"}, "field name is text"),
        ({"": "x"}, "an empty name"),
    ],
)
def test_a_value_that_cannot_be_stored_is_named_by_its_path(value: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says) as caught:
        check(order={"lines": [1, {"price": value}]})
    assert caught.value.field.startswith("order.lines[1].price")
    assert (caught.value.queue, caught.value.seq) == ("q", 1)


def test_31_levels_of_nesting_are_stored_and_32_refused() -> None:
    check(deep=nested(31))
    with pytest.raises(InvalidMessage, match="nested deeper than 31 levels") as caught:
        check(deep=nested(32))
    assert caught.value.field.startswith("deep[0][0]")


def test_a_message_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(InvalidMessage, match="nested deeper"):
        check(loop=loop)


def test_a_reserved_field_is_refused_by_name() -> None:
    with pytest.raises(InvalidMessage, match="reserved") as caught:
        check(_ss_at=1)
    assert caught.value.field == "_ss_at"
    check(nested={"_ss_at": 1})


def test_a_message_over_400_kb_says_how_large_it_is() -> None:
    assert check(body="x" * 408_900).size < 400 * 1024
    with pytest.raises(MessageTooLarge, match="over the limit of 409,088") as caught:
        check(body="é" * 205_000)
    assert caught.value.size is not None
    assert caught.value.size > caught.value.limit
    assert isinstance(caught.value, InvalidMessage)


@pytest.mark.parametrize(
    ("queue", "seq"),
    [("same", "same"), ("", "seq"), ("queue", "_ss_seq"), ("queue", "x" * 256), ("\ud800", "seq"), (1, "seq")],
)
def test_key_names_that_cannot_work_are_refused(queue: Any, seq: Any) -> None:
    with pytest.raises(SettingsError):
        KeyNames(queue, seq)


def test_values_are_the_same_only_if_their_types_are() -> None:
    assert same_value({"a": [1, 2.0, None, b"x", True]}, {"a": [1, 2.0, None, b"x", True]})
    for one, other in [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("1", 1), (b"a", "a"), ([1], [1, 2]), ({}, [])]:
        assert not same_value(one, other)
        assert not same_value(other, one)
    assert not same_value({"a": 1}, {"a": 1, "b": None})


def test_a_clone_shares_nothing() -> None:
    original = {"a": [{"b": 1}]}
    copy = clone(original)
    copy["a"][0]["b"] = 2
    assert original == {"a": [{"b": 1}]}


class Strange(dict[str, Any]):
    """A dict whose methods cannot be trusted."""

    def items(self) -> Any:
        raise RuntimeError("no items today")

    keys = values = get = __getitem__ = __contains__ = items  # type: ignore[assignment]


def test_what_a_strange_dict_holds_counts_and_not_what_its_methods_do() -> None:
    inner = Strange(a=1)
    taken = take_message(Strange(queue="q", seq=1, inner=inner), KEYS)
    assert (taken.queue, taken.seq, type(taken.document)) == ("q", 1, dict)
    assert taken.document == {"queue": "q", "seq": 1, "inner": {"a": 1}}
    assert same_value(taken.document["inner"], inner)


def test_a_message_that_was_taken_is_not_changed_by_changes_of_what_was_given() -> None:
    given: dict[str, Any] = {"queue": "q", "seq": 1, "lines": [{"price": 1}]}
    taken = take_message(given, KEYS)
    given["lines"][0]["price"] = 2
    given["seq"] = 2
    assert taken.document == {"queue": "q", "seq": 1, "lines": [{"price": 1}]}
