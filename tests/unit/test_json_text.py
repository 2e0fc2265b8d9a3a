from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from stream_sort import InvalidInput
from stream_sort.formats.json_text import dumps, loads


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value: line 1 column 1"),
        ("{", "line 1 column 2"),
        ("[1,]", "line 1 column"),
        ("{} {}", "Extra data: line 1 column 4"),
        ('{"a": 1, "b": 2, "a": 1}', "the field 'a' is given twice"),
        ('[{"deep": {"x": 1, "x": 2}}]', "the field 'x' is given twice"),
        ("[1, NaN]", "NaN is not a JSON number; use null or text: line 1 column 5 (char 4)"),
        ('["NaN",\n -Infinity]', "-Infinity is not a JSON number; use null or text: line 2 column 2"),
        ('{"1e400": 1e400}', "'1e400' is too large for a number; use text: line 1 column 11"),
        ("-1e999", "too large for a number"),
        ("[" + "9" * 5_000 + "]", "an int of 5,000 digits; use text: line 1 column 2"),
        ("[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8 text at byte 7"),
        ('"\x01"', "Invalid control character"),
        ("\ufeff{}", "Expecting value: line 1 column 1"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_i9_a_text_that_is_not_strict_json_is_refused_with_what_and_where(text: str | bytes, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        loads(text)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2.5, "\\u00e4", null, true]}', {"a": [1, 2.5, "ä", None, True]}),
        ('{"a": {"x": 1}, "b": {"x": 1}}', {"a": {"x": 1}, "b": {"x": 1}}),
        ("-0.0", -0.0),
        ("9" * 4_000, int("9" * 4_000)),
        ('"ä"'.encode(), "ä"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_sound_json_is_read_as_it_is(text: str | bytes, value: Any) -> None:
    assert loads(text) == value
    assert type(loads(text)) is type(value)


def test_text_is_compact_and_keeps_its_letters() -> None:
    assert dumps({"name": "Ä", "list": [1, 2.5, None, True]}) == '{"name":"Ä","list":[1,2.5,null,true]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x00\xff", '"AP8="'),
        ({3, 1, 2}, "[1,2,3]"),
        pytest.param(frozenset({"b", "a"}), '["a","b"]', id="texts"),
        pytest.param({b"b", b"a"}, '["YQ==","Yg=="]', id="bytes"),
        (Decimal("1E+2"), "100"),
        (Decimal("2.50"), "2.5"),
    ],
    ids=repr,
)
def test_values_that_json_does_not_know_get_a_form_of_their_own(value: Any, text: str) -> None:
    assert dumps(value) == text


def circle() -> list[Any]:
    whole: list[Any] = []
    whole.append(whole)
    return whole


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), Decimal("NaN"), Decimal("Infinity"), object(), {1, "a"}, 10**5_000, circle()],
    ids=lambda value: type(value).__name__,
)
def test_i9_what_has_no_json_form_is_named(value: Any) -> None:
    with pytest.raises(InvalidInput, match="no JSON text"):
        dumps({"field": value})


def test_a_field_given_twice_among_very_many_is_found_in_no_time() -> None:
    names = [f"field{number}" for number in range(60_000)]
    text = "{" + ",".join(f'"{name}":0' for name in [*names, names[-1]]) + "}"
    with pytest.raises(InvalidInput, match="'field59999' is given twice"):
        loads(text)


@pytest.mark.parametrize("text", ["1e-400", "-0.5e-999", "[123.4E-500]"])
def test_a_number_too_small_to_hold_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="too small"):
        loads(text)


@pytest.mark.parametrize("text", ["0.0", "0e-400", "-0", "5e-324"])
def test_zero_and_the_smallest_number_are_numbers(text: str) -> None:
    assert loads(text) == float(text)
