from __future__ import annotations

from typing import Any

import pytest

from stream_sort import InvalidMessage, QueueExists, StreamSorter
from tests.unit.queues import beside, message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def test_a_queue_can_start_elsewhere_until_it_has_begun(sorter: StreamSorter) -> None:
    sorter.put(message(1000))
    assert sorter.open("q", first_seq=1000).new == 1000
    sorter.open("q", first_seq=1000)
    with pytest.raises(QueueExists):
        sorter.open("q", first_seq=2000)
    with pytest.raises(InvalidMessage, match="starts at 1000"):
        sorter.put(message(999))
    assert [found["seq"] for found in sorter.read("q")] == [1000]


def test_a_queue_can_start_below_the_default() -> None:
    sorter = StreamSorter.in_memory(first_seq=1)
    with pytest.raises(InvalidMessage, match="starts at 1"):
        sorter.put(message(0))
    sorter.open("q", first_seq=-5)
    assert sorter.put(message(-5)).new == -5
    assert list(sorter.read("q", after=-100)) == list(sorter.read("q")) == [message(-5)]


def test_i5_a_queue_does_not_start_above_a_stored_message(sorter: StreamSorter) -> None:
    sorter.put(message(5))
    with pytest.raises(QueueExists, match="seq 5 is stored"):
        sorter.open("q", first_seq=6)


@pytest.mark.parametrize("waiting", [False, True])
def test_i5_a_message_that_comes_while_its_queue_is_opened_above_it_is_not_accepted_in_vain(
    sorter: StreamSorter, *, waiting: bool
) -> None:
    if waiting:
        sorter.put(message(15))
    other = beside(sorter)
    look = sorter.stores.items.look
    came: list[Any] = []

    def interrupted(queue: str, after: int, limit: int) -> Any:
        answer = look(queue, after, limit)
        if not came:
            came.append(True)
            came.append(other.put(message(3)).status)
        return answer

    sorter.stores.items.look = interrupted  # type: ignore[method-assign]
    with pytest.raises(QueueExists, match="seq 3 is stored"):
        sorter.open("q", first_seq=10)
    assert came == [True, "accepted"]
    assert sorter.gaps("q")[0] == range(3)
    assert tables_of(sorter).cursors["q"].waiting_since is not None


def test_i5_a_message_stored_just_before_its_queue_was_opened_above_it_is_refused(sorter: StreamSorter) -> None:
    sorter.set_policy("q", "wait")
    other = beside(sorter)
    put = other.stores.items.put

    def slowly(arrival: Any, now: float) -> Any:
        # The opener looked before the message was stored, and is done before its writer reads the row.
        sorter.open("q", first_seq=10)
        return put(arrival, now)

    other.stores.items.put = slowly  # type: ignore[method-assign]
    with pytest.raises(InvalidMessage, match="starts at 10") as caught:
        other.put(message(3))
    assert sorter.put(message(10)).new == 10
    assert caught.value.stored
    assert "stored but will not be released" in str(caught.value)


def test_i5_a_refused_message_says_whether_it_is_stored_all_the_same(sorter: StreamSorter) -> None:
    stale = beside(sorter)
    stale.open("q", first_seq=0)
    sorter.open("q", first_seq=1000)
    result = stale.put_many([message(5), message(1000)])
    ((refused, error),) = result.rejected
    assert (refused, getattr(error, "stored", None), result.accepted) == (message(5), True, 1)
    with pytest.raises(InvalidMessage) as caught:
        stale.put(message(6))
    assert not caught.value.stored
    assert sorter.stores.items.look("q", -1, 10).seqs == (5, 1000)


def test_a_queue_opened_at_the_usual_start_may_still_be_opened_elsewhere(sorter: StreamSorter) -> None:
    sorter.open("q", first_seq=0)
    sorter.open("q", first_seq=7)
    with pytest.raises(QueueExists):
        sorter.open("q", first_seq=0)


def test_a_begun_queue_cannot_start_elsewhere(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    with pytest.raises(QueueExists, match="its position is 0"):
        sorter.open("q", first_seq=10)
