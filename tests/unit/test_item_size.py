"""A message is refused as too large only if it is: by its size at rest, not by an estimate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort import MessageTooLarge, StreamSorter
from stream_sort.model.item_size import FRAME_BYTES, item_size
from stream_sort.model.message import MAX_MESSAGE_BYTES, KeyNames, check_message
from stream_sort.stores.dynamodb.values import encode
from stream_sort.stores.wire import size_of
from tests.unit.faulty import message

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty

# 48 KB as JSON; the estimate of it was 412 KB.
WHOLE_FLOATS = message(0, p=[float(number % 10) for number in range(9_800)])
NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=3)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 1e300, -5e-324, 2.0**70])
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=40,
)


def test_a_small_message_of_many_whole_floats_is_not_refused_as_too_large(client: Faulty) -> None:
    assert len(json.dumps(WHOLE_FLOATS)) < 50_000
    sorter = StreamSorter(client=client, in_flight=1)
    assert sorter.put(WHOLE_FLOATS).status == "accepted"
    (found,) = sorter.read("q")
    assert found == WHOLE_FLOATS
    assert {type(value) for value in found["p"]} == {float}


def test_many_small_negative_floats_are_not_refused_as_too_large() -> None:
    points = message(0, p=[-0.00012] * 70_000)
    assert real_size(*encode(points)) < MAX_MESSAGE_BYTES
    assert check_message(points, KeyNames()).size == item_size(points)


def test_a_late_message_of_many_whole_floats_is_kept_beside_its_tombstone(client: Faulty) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.skip("q", 0, "r" * 256)
    assert sorter.put(WHOLE_FLOATS).status == "late"
    assert sorter.late("q")[0].message == WHOLE_FLOATS


def test_a_message_that_is_too_large_is_refused_with_its_size_at_rest() -> None:
    floats = message(0, points=[float(number) for number in range(40_000)])
    with pytest.raises(MessageTooLarge) as caught:
        check_message(floats, KeyNames())
    assert caught.value.size == item_size(floats)
    wire, note = encode(floats)
    assert abs(item_size(floats) - real_size(wire, note)) < 0.2 * item_size(floats)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5))
def test_the_measured_size_is_that_of_the_encoded_item_or_a_little_more(document: dict[str, Any]) -> None:
    wire, note = encode(document)
    assert item_size(document) >= real_size(wire, note)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5))
def test_what_is_measured_is_never_more_than_the_estimate(document: dict[str, Any]) -> None:
    named = {**document, "queue": "q", "seq": 1}
    assert item_size(named) <= check_message(named, KeyNames()).size + FRAME_BYTES


def test_the_limit_itself_is_measured() -> None:
    fits = message(0, body="x" * (MAX_MESSAGE_BYTES - item_size(message(0, body=""))))
    assert check_message(fits, KeyNames()).size == MAX_MESSAGE_BYTES
    with pytest.raises(MessageTooLarge):
        check_message(message(0, body=fits["body"] + "x"), KeyNames())


def real_size(wire: dict[str, Any], note: str | None) -> int:
    """The size by DynamoDB's rules, as the library knows them for the items that handlers write."""
    return size_of(wire) + len((note or "").encode())
