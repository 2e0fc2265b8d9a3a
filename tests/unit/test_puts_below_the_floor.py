"""A message put where its queue is trimmed: refused by name, and nothing of it stays."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import AccessDenied, Status, StreamSorter, Trimmed
from stream_sort.testing.contract_examples import arrival
from tests.consumers import Interrupted
from tests.unit.queues import beside, message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    sorter = StreamSorter.in_memory()
    sorter.put_many(message(seq) for seq in range(10))
    return sorter


def stored(sorter: StreamSorter) -> list[int]:
    return tables_of(sorter).queues["q"].firsts


def trimmed(sorter: StreamSorter, through: int = 6) -> StreamSorter:
    """The same sorter after another process trimmed the queue: it remembers no floor."""
    beside(sorter).trim("q", through, control_table=None)
    return sorter


@pytest.mark.parametrize("fields", [{}, {"body": "another"}])
@pytest.mark.parametrize("seq", [0, 6])
def test_whoever_knows_the_floor_stores_nothing(sorter: StreamSorter, seq: int, fields: dict[str, Any]) -> None:
    other = beside(trimmed(sorter))
    with pytest.raises(Trimmed, match=f"seq {seq}: everything up to seq 6 .* not kept") as caught:
        other.put(message(seq, **fields))
    assert (caught.value.floor, caught.value.seq, caught.value.retryable) == (6, seq, False)
    assert stored(sorter) == [7, 8, 9]


def test_whoever_does_not_know_the_floor_takes_its_message_back(sorter: StreamSorter) -> None:
    trimmed(sorter)
    with pytest.raises(Trimmed):
        sorter.put(message(3))
    assert stored(sorter) == [7, 8, 9]


def test_in_a_batch_only_what_is_trimmed_is_rejected(sorter: StreamSorter) -> None:
    trimmed(sorter)
    result = sorter.put_many([message(3), message(10), message(6), message(0, "r"), message(9)])
    assert [(one["seq"], type(error)) for one, error in result.rejected] == [(3, Trimmed), (6, Trimmed)]
    assert (result.accepted, result.duplicates) == (2, [message(9)])
    assert stored(sorter) == [7, 8, 9, 10]


def test_i5_a_message_that_may_be_the_one_that_was_released_is_not_taken_back() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put(message(0))
    slow = beside(sorter)
    slow.position("q")
    items = Interrupted(slow.stores.items)
    # Between our store and our look at the row somebody else releases the message and sets the floor above it.
    items.after["put"] = [lambda: (beside(sorter).advance("q"), sorter.stores.cursors.set_floor("q", 1))]
    object.__setattr__(slow._intake, "items", items)
    with pytest.raises(Trimmed):
        slow.put(message(1))
    assert stored(sorter) == [0, 1], "a consumer that registered before the floor was set may still need it"


@pytest.mark.parametrize("many", [False, True])
def test_i2_a_repeat_of_a_trimmed_message_frees_what_its_first_writer_left(sorter: StreamSorter, *, many: bool) -> None:
    trimmed(sorter)
    sorter.stores.items.put(arrival("q", 10, seen=9), 0.0)
    other = beside(sorter)
    if many:
        assert [type(error) for _, error in other.put_many([message(3)]).rejected] == [Trimmed]
    else:
        with pytest.raises(Trimmed):
            other.put(message(3))
    assert sorter.position("q") == 10


def test_what_stays_below_the_floor_goes_with_the_next_trim(sorter: StreamSorter) -> None:
    trimmed(sorter)
    sorter.stores.items.put(arrival("q", 2, seen=0), 0.0)
    assert sorter.trim("q", 6, control_table=None) == 1
    assert stored(sorter) == [7, 8, 9]


def test_a_role_that_may_not_delete_refuses_the_message_all_the_same(sorter: StreamSorter) -> None:
    items = Interrupted(trimmed(sorter).stores.items)
    items.before["take_back"] = [_deny]
    object.__setattr__(sorter._intake, "items", items)
    result = sorter.put_many([message(3), message(10)])
    assert [type(error) for _, error in result.rejected] == [Trimmed]
    assert (result.accepted, stored(sorter)) == (1, [3, 7, 8, 9, 10])


def _deny() -> None:
    raise AccessDenied("not allowed to dynamodb:DeleteItem")


def test_a_message_beside_a_tombstone_that_is_trimmed_under_it_is_refused() -> None:
    sorter = StreamSorter.in_memory()
    sorter.skip("q", 0)
    sorter.put_many([message(1), message(2)])
    items = Interrupted(sorter.stores.items)
    items.before["keep_late"] = [lambda: trimmed(sorter, 1)]
    object.__setattr__(sorter._intake, "items", items)
    with pytest.raises(Trimmed):
        sorter.put(message(0))
    assert stored(sorter) == [2]


def test_a_message_above_the_floor_costs_no_request_more(sorter: StreamSorter) -> None:
    trimmed(sorter)
    items = Interrupted(sorter.stores.items)
    object.__setattr__(sorter._intake, "items", items)
    assert sorter.put(message(10)).status is Status.ACCEPTED
    assert items.calls == ["put"]
