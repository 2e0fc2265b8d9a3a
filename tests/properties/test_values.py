"""Statements about all messages: what goes in comes out, exactly."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stream_sort.model.message import MAX_MESSAGE_BYTES, KeyNames, check_message, clone, same_value
from stream_sort.stores.dynamodb.values import decode, encode

text = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: not name.startswith("_ss_"))
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**80), 10**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**60), 2**60).map(float)
    | text
    | st.binary()
)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4))
documents = st.dictionaries(names, values, max_size=6)


def as_dynamodb_returns(value: Any) -> Any:
    """Numbers come back normalised: no trailing zeros, no exponent."""
    ((kind, inner),) = value.items()
    if kind == "N":
        number = Decimal(inner).normalize(Context(prec=400))
        return {"N": f"{number:f}"}
    if kind == "M":
        return {"M": {name: as_dynamodb_returns(entry) for name, entry in inner.items()}}
    if kind == "L":
        return {"L": [as_dynamodb_returns(entry) for entry in inner]}
    return value


@given(documents)
def test_every_value_comes_back_as_it_was(document: dict[str, Any]) -> None:
    wire, types = encode(document)
    assert same_value(decode(wire, types), document)
    returned = {name: as_dynamodb_returns(value) for name, value in wire.items()}
    assert same_value(decode(returned, types), document)


@given(documents)
def test_every_number_on_the_wire_is_one_that_dynamodb_takes(document: dict[str, Any]) -> None:
    def check(value: dict[str, Any]) -> None:
        ((kind, inner),) = value.items()
        if kind == "N":
            number = Decimal(inner)
            assert len(number.as_tuple().digits) <= 38
            assert number == 0 or Decimal("1E-130") <= abs(number) < Decimal("1E126")
        for entry in inner.values() if kind == "M" else inner if kind == "L" else ():
            check(entry)

    for value in encode(document)[0].values():
        check(value)


@given(documents)
def test_a_checked_message_is_never_larger_at_rest_than_measured(document: dict[str, Any]) -> None:
    def size(value: dict[str, Any]) -> int:
        ((kind, inner),) = value.items()
        match kind:
            case "S":
                return len(inner.encode())
            case "N":
                return (len(Decimal(inner).as_tuple().digits) + 1) // 2 + 1
            case "B":
                return len(inner)
            case "M":
                return 3 + sum(1 + len(name.encode()) + size(entry) for name, entry in inner.items())
            case "L":
                return 3 + sum(1 + size(entry) for entry in inner)
            case _:
                return 1

    message = check_message({**document, "queue": "q", "seq": 0}, KeyNames())
    wire, types = encode(message.document)
    at_rest = sum(1 + len(name.encode()) + size(value) for name, value in wire.items()) + len((types or "").encode())
    assert at_rest <= message.size + 40
    assert message.size <= MAX_MESSAGE_BYTES


@given(documents, documents)
def test_same_value_agrees_with_itself(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert same_value(one, clone(one))
    assert same_value(one, other) == same_value(other, one)
    if not same_value(one, other):
        assert repr(one) != repr(other)
