"""What is deleted of a queue that is archived: late messages stay, whenever they come."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import StreamSorter
from stream_sort.model.records import Cleared
from stream_sort.upkeep.trimmer import Trimmer
from tests.unit.faulty import Faulty, arrival, message


@pytest.fixture
def sorter(client: Faulty) -> StreamSorter:
    sorter = StreamSorter(client=client, deadline=0.5, in_flight=1)
    sorter.put_many(message(seq) for seq in range(60) if seq not in {5, 6})
    sorter.skip("q", [5, 6], "")
    return sorter


def trimmer(sorter: StreamSorter) -> Trimmer:
    return Trimmer(sorter.stores.items, sorter.stores.cursors, None)


def seqs(sorter: StreamSorter) -> tuple[int, ...]:
    return sorter.stores.items.look("q", -1, 99).seqs


def test_messages_are_deleted_25_a_call_and_tombstones_one_by_one(client: Faulty, sorter: StreamSorter) -> None:
    client.calls.clear()
    assert trimmer(sorter).trim_archived("q", -1, 54) == Cleared(55, (), 54)
    assert (client.calls.count("batch_write_item"), client.calls.count("delete_item")) == (3, 2)
    assert seqs(sorter) == (55, 56, 57, 58, 59)


@pytest.mark.parametrize("before", ["batch_write_item", "delete_item", "query"])
def test_a_late_message_that_comes_at_the_last_moment_is_kept(
    client: Faulty, sorter: StreamSorter, before: str
) -> None:
    moments = [before]

    def come(method: str, _: Any) -> None:
        if method in moments:
            moments.clear()
            sorter.stores.items.keep_late(arrival(5).message, 0.0)

    client.watch = come
    assert trimmer(sorter).trim_archived("q", -1, 54) == Cleared(54, (5,), 54)
    assert seqs(sorter) == (5, *range(55, 60))
    assert [one.message for one in sorter.late("q")] == [message(5)]
    assert trimmer(sorter).trim_archived("q", -1, 54) == Cleared(0, (5,), 54)
    assert sorter.trim("q", 54, control_table=None) == 1


def test_what_lies_below_or_at_the_position_is_left_alone(sorter: StreamSorter) -> None:
    assert trimmer(sorter).trim_archived("q", 9, 59) == Cleared(49, (), 59)
    assert seqs(sorter) == (*range(10), 59)
    assert trimmer(sorter).trim_archived("q", -9, 3) == Cleared(4, (), 3)
    assert trimmer(sorter).trim_archived("q", 7, 7) == Cleared(0, (), 7)
