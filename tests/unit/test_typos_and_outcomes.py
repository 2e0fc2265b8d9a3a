from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidMessage, MissingItems, QueueNotFound, SequenceConflict, StreamSorter, Trimmed
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.outcomes import Status
from stream_sort.model.records import Arrival
from tests.unit.queues import message, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


@pytest.mark.parametrize("question", ["read", "gaps", "explain", "late"])
def test_a_mistyped_queue_name_does_not_look_like_an_empty_queue(sorter: StreamSorter, question: str) -> None:
    sorter.put(message(0))
    with pytest.raises(QueueNotFound, match=r"there is no queue 'typo'"):
        # At the call: nobody may forget to iterate.
        getattr(sorter, question)("typo")
    assert tables_of(sorter).cursors.keys() == {"q"}


def test_the_position_of_a_queue_that_never_was_is_just_before_its_first_seq(sorter: StreamSorter) -> None:
    assert sorter.position("typo") == -1


@pytest.mark.parametrize(
    "begin",
    [
        lambda sorter: sorter.open("q", first_seq=5),
        lambda sorter: sorter.set_policy("q", "wait"),
        lambda sorter: tables_of(sorter).home().items.put(Arrival(check_message(message(3), KeyNames()), None), 0.0),
    ],
    ids=["opened", "with a policy", "written by others"],
)
def test_a_queue_in_which_nothing_is_released_is_no_typo(
    sorter: StreamSorter, begin: Callable[[StreamSorter], object]
) -> None:
    begin(sorter)
    assert list(sorter.read("q")) == []
    assert sorter.explain("q").queue == "q"
    sorter.gaps("q")


@pytest.mark.parametrize("through", [3, 4, 100, 2**63 - 1])
def test_read_beyond_the_position_yields_nothing_before_it_refuses(sorter: StreamSorter, through: int) -> None:
    sorter.put_many(message(seq) for seq in (0, 1, 2, 4))
    with pytest.raises(MissingItems, match="not released; the queue is released through seq 2") as caught:
        # Not iterated: the call itself refuses.
        sorter.read("q", through=through)
    assert caught.value.missing == [range(3, through + 1)]
    assert [one["seq"] for one in sorter.read("q", through=2)] == [0, 1, 2]
    assert list(sorter.read("q", after=9, through=9)) == list(sorter.read("q", after=9, through=4)) == []


def test_read_beyond_the_position_of_a_trimmed_queue_is_refused_as_well(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(6))
    sorter.trim("q", 3, control_table=None)
    with pytest.raises(MissingItems):
        sorter.read("q", through=6)
    with pytest.raises(Trimmed):
        sorter.read("q", after=1, through=9)


def test_a_put_that_released_nothing_does_not_look_like_a_failure(sorter: StreamSorter) -> None:
    waits = sorter.put(message(1))
    assert waits
    assert (len(waits), waits.moved, waits.accepted) == (0, False, True)
    assert sorter.put(message(0)).accepted
    for repeat, status in ((message(1), Status.DUPLICATE), (message(1, body="other"), Status.CONFLICT)):
        answer = sorter.put(repeat)
        assert answer
        assert (answer.accepted, answer.status) == (False, status)
    skip = sorter.skip("q", 0)
    assert skip
    assert (skip.skipped, skip.accepted, len(skip)) == ((), False, 0)
    assert sorter.advance("q")
    sorter.skip("q", 2)
    assert not sorter.put(message(2)).accepted


@pytest.mark.parametrize("window", [1, 3, 100])
def test_outcomes_hold_one_outcome_a_message_in_the_order_given(window: int) -> None:
    sorter = StreamSorter.in_memory(window=window)
    sorter.skip("q", 3)
    bad: dict[str, Any] = {"queue": "q"}
    given = [message(1), bad, message(1), message(3), message(1, body="other"), message(0), bad, message(0)]
    result = sorter.put_many(given)
    told = [one if isinstance(one, Status) else type(one).__name__ for one in result.outcomes]
    assert told == [
        Status.ACCEPTED,
        "InvalidMessage",
        Status.DUPLICATE,
        Status.LATE,
        Status.CONFLICT,
        Status.ACCEPTED,
        "InvalidMessage",
        Status.DUPLICATE,
    ]
    assert isinstance(result.outcomes[1], InvalidMessage)
    assert [result.outcomes[1], result.outcomes[6]] == [error for _, error in result.rejected]
    assert result.accepted == result.outcomes.count(Status.ACCEPTED) == 2
    assert sorter.put_many([]).outcomes == []


def test_outcomes_are_told_where_conflicts_are_raised() -> None:
    sorter = StreamSorter.in_memory(on_conflict="raise")
    sorter.put(message(0))
    with pytest.raises(SequenceConflict) as caught:
        sorter.put_many([message(1), message(0, body="other"), message(2)])
    assert caught.value.result is not None
    assert caught.value.result.outcomes == [Status.ACCEPTED, Status.CONFLICT, Status.ACCEPTED]
