"""Positions as the offset of a streaming query."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.errors import InvalidInput
from stream_sort.replay.source.positions import is_initial, packed, shared_out, turn_of, unpacked

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


def test_every_queue_gets_its_turn_though_there_are_more_busy_queues_than_rows() -> None:
    due, turn, served = {"a": 10, "b": 10, "c": 1}, None, []
    for _ in range(3):
        shares = shared_out(due, 2, turn)
        turn = list(shares)[-1]
        served += shares
        due = {queue: rows + 1 for queue, rows in due.items()}
    assert sorted(served) == ["a", "a", "b", "b", "c", "c"]


def test_no_queue_waits_for_ever_though_new_ones_come_with_ever_higher_names_and_faster_than_they_are_read() -> None:
    waiting, turn = {"zzz"}, None
    for batch in range(2_000):
        waiting |= {f"order-{batch:05}-{number}" for number in range(6)}
        shares = shared_out(dict.fromkeys(waiting, 1), 5, turn)
        turn = list(shares)[-1]
        waiting -= set(shares)
        if "zzz" not in waiting:
            return
    pytest.fail("never had its turn")


@given(st.sets(st.text(max_size=3), min_size=2), st.data())
def test_turns_go_round_whoever_comes_and_goes(queues: set[str], data: st.DataObject) -> None:
    most = data.draw(st.integers(1, len(queues) - 1))
    turn = data.draw(st.none() | st.sampled_from(sorted(queues)) | st.text(max_size=3))
    served: list[str] = []
    while len(served) < len(queues):
        shares = shared_out(dict.fromkeys(queues, 2), most, turn)
        served += shares
        turn = list(shares)[-1]
    assert set(served) == queues


def test_an_offset_keeps_whose_turn_it_was_and_whether_it_is_the_initial_one() -> None:
    offset = json.loads(json.dumps(packed({"a": 9}, turn="a", is_initial=True)))
    assert (turn_of(offset), is_initial(offset), unpacked(offset)) == ("a", True, {"a": 9})
    assert (turn_of(packed({})), is_initial(packed({}))) == (None, False)


def test_an_offset_knows_where_its_new_queues_begin_and_one_without_new_queues_reads_as_ever() -> None:
    offset = packed({"a": 9, "b": 4}, {"b": -1})
    assert (unpacked(offset), unpacked(offset, "begins")) == ({"a": 9, "b": 4}, {"b": -1})
    assert unpacked(packed({"a": 9}), "begins") == {}
    assert packed({"a": 9}, {}) == packed({"a": 9})
    with pytest.raises(InvalidInput, match="is damaged"):
        unpacked({**offset, "begins": "?"}, "begins")
