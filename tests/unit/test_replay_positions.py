"""Positions as the offset of a streaming query."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.errors import InvalidInput
from stream_sort.replay.source.positions import packed, shared_out, unpacked

POSITIONS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(-(2**63), 2**63 - 1)
)


@given(POSITIONS, st.randoms())
def test_positions_round_trip_and_give_the_same_text_in_any_order(
    positions: dict[str, int], chance: random.Random
) -> None:
    names = list(positions)
    chance.shuffle(names)
    offset = json.loads(json.dumps(packed(positions)))
    assert unpacked(offset) == positions
    assert json.dumps(packed({name: positions[name] for name in names})) == json.dumps(packed(positions))


def test_thousands_of_queues_take_some_kilobytes() -> None:
    chance = random.Random(7)
    offset = packed({f"account-{chance.randrange(10**8):08}": chance.randrange(10**6) for _ in range(5_000)})
    size = len(json.dumps(offset))
    print(f"5,000 queues: an offset of {size:,} bytes")
    assert size < 60_000


@pytest.mark.parametrize("offset", [{}, {"format": 1, "positions": "!"}, {"format": 2, "positions": ""}, {"format": 1}])
def test_a_damaged_offset_is_named(offset: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="offset"):
        unpacked(offset)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1), st.integers(1, 200))
def test_shares_use_all_that_may_be_used_and_no_queue_gets_more_than_it_has(due: dict[str, int], most: int) -> None:
    shares = shared_out(due, most)
    assert sum(shares.values()) == min(most, sum(due.values()))
    assert all(0 < share <= due[queue] for queue, share in shares.items())


def test_a_long_queue_keeps_no_short_one_from_going_on() -> None:
    assert shared_out({"long": 1_000_000, "a": 3, "b": 100}, 30) == {"a": 3, "b": 13, "long": 14}


def test_an_offset_knows_where_its_new_queues_begin_and_one_without_new_queues_reads_as_ever() -> None:
    offset = packed({"a": 9, "b": 4}, {"b": -1})
    assert (unpacked(offset), unpacked(offset, "begins")) == ({"a": 9, "b": 4}, {"b": -1})
    assert unpacked(packed({"a": 9}), "begins") == {}
    assert packed({"a": 9}, {}) == packed({"a": 9})
    with pytest.raises(InvalidInput, match="is damaged"):
        unpacked({**offset, "begins": "?"}, "begins")
