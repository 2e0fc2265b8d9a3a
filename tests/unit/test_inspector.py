from __future__ import annotations

import pytest

from stream_sort import InvalidInput, InvalidQueue, MissingItems, QueueExists, StreamSorter
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival, Tombstones
from stream_sort.model.slots import Entry, Slot
from tests.unit.queues import beside, message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def test_a_released_range_with_a_hole_raises_where_it_is_met(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(5))
    held = tables_of(sorter).queues["q"]
    held.empty(2)
    reading = sorter.read("q")
    assert [next(reading)["seq"], next(reading)["seq"]] == [0, 1]
    with pytest.raises(MissingItems) as caught:
        next(reading)
    assert caught.value.missing == [range(2, 3)]
    # What is consumed does not concern explain: only an audit looks at every slot.
    assert str(caught.value).endswith("stream-sort audit finds every hole, explain shows the queue's position")


def test_read_takes_a_half_open_range(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(10))
    assert [found["seq"] for found in sorter.read("q", after=3, through=6)] == [4, 5, 6]
    assert list(sorter.read("q", after=9)) == []
    with pytest.raises(MissingItems):
        list(sorter.read("q", after=8, through=12))
    with pytest.raises(InvalidInput):
        sorter.read("q", after="3")  # type: ignore[arg-type]


def test_what_was_read_or_put_can_be_changed_without_changing_the_store(sorter: StreamSorter) -> None:
    document = message(0, body=[1])
    sorter.put(document)
    document["body"].append(2)
    next(sorter.read("q"))["body"].append(3)
    assert list(sorter.read("q")) == [message(0, body=[1])]


def test_gaps_and_explain_say_what_is_missing_and_what_would_free_it(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in (0, 3, 4, 7))
    assert sorter.gaps("q") == [range(1, 3), range(5, 7)]
    state = sorter.explain("q")
    assert (state.position, state.highest_stored, state.stored_beyond) == (0, 7, 3)
    assert state.gaps == sorter.gaps("q")
    assert state.waiting_since is not None
    assert "skip('q', range(1, 3))" in state.remedy
    assert state.complete
    assert not sorter.explain("q", limit=2).complete
    for limit in (0, -1, "x", None):
        with pytest.raises(InvalidInput, match="limit"):
            sorter.explain("q", limit=limit)  # type: ignore[arg-type]


def test_explain_of_a_whole_queue_says_that_nothing_waits(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    state = sorter.explain("q")
    assert (state.gaps, state.waiting_since, state.remedy.startswith("nothing waits")) == ([], None, True)


def test_explain_of_a_stuck_queue_says_advance(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    tables_of(sorter).home().items.skip(Tombstones("q", (1,), "by other means", None), 0.0)
    assert "advance('q') frees it" in sorter.explain("q").remedy
    assert sorter.advance("q").new == 1


@pytest.mark.parametrize("call", ["advance", "position", "gaps", "explain", "read", "nudge", "policy"])
def test_i9_every_question_refuses_a_bad_queue_name(sorter: StreamSorter, call: str) -> None:
    with pytest.raises(InvalidQueue):
        getattr(sorter, call)("a\nb")


def test_explain_names_what_lies_before_the_start_and_can_never_be_released(sorter: StreamSorter) -> None:
    tables_of(sorter).home().items.put(Arrival(check_message(message(3), KeyNames()), None), 0.0)
    later = beside(sorter, first_seq=70)
    told = "seq 3 is stored before the start of the queue at 70 and is never released"
    assert (
        later.explain("q").remedy == f"nothing waits; {told}, unless open('q', first_seq=3) lets the queue start there"
    )
    later.put(message(70))
    assert later.explain("q").remedy == f"nothing waits; {told}"
    with pytest.raises(QueueExists):
        later.open("q", first_seq=3)


def test_no_withdrawal_is_advised_of_a_seq_that_none_takes(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    held = tables_of(sorter).queue("q")
    held.fill(Slot("q", (Entry(10**20, {"queue": "q", "seq": 10**20}, arrived_at=1.0),)))
    remedy = sorter.explain("q").remedy
    assert "withdraw" not in remedy
    assert "No seq is above 9223372036854775807: others wrote the item at 100000000000000000000" in remedy
    assert "Delete it from the items table" in remedy
