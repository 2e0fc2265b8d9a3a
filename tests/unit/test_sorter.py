from __future__ import annotations

import itertools
from typing import Any

import pytest

from stream_sort import GapPolicy, InvalidInput, QueueNotFound, SequenceConflict, StreamSorter
from stream_sort.model.message import KeyNames, take_message
from stream_sort.model.records import Arrival, Cursor, Tombstones
from tests.unit.queues import beside, message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_i2_every_order_of_arrival_is_released_whole(sorter: StreamSorter, order: tuple[int, ...]) -> None:
    released = [len(sorter.put(message(seq))) for seq in order]
    assert sum(released) == 4
    assert sorter.position("q") == 3
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 2, 3]


def test_a_message_out_of_order_moves_nothing_and_the_missing_one_releases_all_behind_it(sorter: StreamSorter) -> None:
    early = sorter.put(message(1))
    assert (early.moved, early.old, early.new, early.status) == (False, -1, -1, "accepted")
    late = sorter.put(message(0))
    assert (late.moved, late.old, late.new, len(late), late.status) == (True, -1, 1, 2, "accepted")


def test_i6_the_same_message_again_is_a_duplicate(sorter: StreamSorter) -> None:
    sorter.put(message(0, body=[1, 2.0]))
    again = sorter.put(message(0, body=[1, 2.0]))
    assert (again.status, again.moved) == ("duplicate", False)


def test_i6_another_message_in_the_same_slot_is_a_conflict_and_the_first_stays(sorter: StreamSorter) -> None:
    sorter.put(message(0, body=1))
    assert sorter.put(message(0, body=1.0)).status == "conflict"
    assert list(sorter.read("q")) == [message(0, body=1)]


def test_i6_a_conflict_can_raise_after_it_advanced() -> None:
    strict = StreamSorter.in_memory(on_conflict="raise")
    stuck = beside(strict)
    strict.put(message(0))
    stuck.stores.items.put_many([], 0.0)
    strict.put(message(2, body="first"))
    tables_of(strict).home().items.skip(Tombstones("q", (1,), "by other means", None), 0.0)
    with pytest.raises(SequenceConflict) as caught:
        strict.put(message(2, body="second"))
    assert (caught.value.queue, caught.value.seq) == ("q", 2)
    assert strict.position("q") == 2


def test_a_policy_is_kept_for_a_queue_that_has_not_begun(sorter: StreamSorter) -> None:
    assert sorter.policy("q") == GapPolicy.WAIT
    sorter.set_policy("q", "skip after 30 seconds")
    assert sorter.policy("q") == GapPolicy(30)
    sorter.set_policy("q", skip_after=5)
    sorter.put(message(0))
    assert beside(sorter).policy("q") == GapPolicy(5)
    assert sorter.set_policy("q", GapPolicy.WAIT) == GapPolicy.WAIT
    for bad in ({}, {"policy": "wait", "skip_after": 3}, {"policy": 5}):
        with pytest.raises(InvalidInput):
            sorter.set_policy("q", **bad)  # type: ignore[arg-type]


def test_a_nudge_touches_the_row_of_a_known_queue_only(sorter: StreamSorter) -> None:
    with pytest.raises(QueueNotFound):
        sorter.nudge("q")
    sorter.put(message(0))
    sorter.nudge("q")
    assert tables_of(sorter).cursors["q"].nudges == 1
    assert sorter.position("q") == 0


def test_a_stale_hint_is_not_trusted_when_old_items_were_trimmed(sorter: StreamSorter) -> None:
    slow = beside(sorter)
    slow.put(message(0))
    sorter.put_many(message(seq) for seq in range(1, 6))
    held = tables_of(sorter).queues["q"]
    for seq in range(5):
        held.empty(seq)
    assert slow.put(message(6)).new == 6


def test_a_backlog_is_released_in_bounded_steps() -> None:
    sorter = StreamSorter.in_memory(max_advance=10)
    sorter.put_many(message(seq) for seq in range(1, 95))
    moves: list[int] = []
    store = tables_of(sorter).home().cursors
    move = store.move

    def counted(cursor: Cursor, new: int, now: float) -> Any:
        moves.append(new - cursor.position)
        return move(cursor, new, now)

    store.move = counted  # type: ignore[method-assign]
    object.__setattr__(sorter._advancer, "cursors", store)
    assert len(sorter.put(message(0))) == 95
    assert max(moves) == 10
    assert len(moves) <= 11
    assert sorter.position("q") == 94


def test_keys_may_have_other_names() -> None:
    sorter = StreamSorter.in_memory(queue_key="author", seq_key="n", first_seq=1)
    assert sorter.position("ada") == 0
    assert sorter.put({"author": "ada", "n": 1, "queue": "mine", "seq": "too"}).new == 1
    assert list(sorter.read("ada")) == [{"author": "ada", "n": 1, "queue": "mine", "seq": "too"}]


def test_the_last_seq_of_all_is_stored_and_waits(sorter: StreamSorter) -> None:
    sorter.open("q", first_seq=2**63 - 2)
    sorter.put_many([message(2**63 - 1), message(2**63 - 2)])
    assert sorter.position("q") == 2**63 - 1
    assert sorter.put(message(2**63 - 1)).status == "duplicate"


def test_what_others_wrote_behind_many_messages_from_before_the_start_is_released(sorter: StreamSorter) -> None:
    for seq in range(100):
        tables_of(sorter).home().items.put(Arrival(take_message(message(seq), KeyNames()), None), 0.0)
    late = beside(sorter, first_seq=70)
    assert late.advance("q").new == 99
