from __future__ import annotations

from typing import Any

import pytest

from stream_sort import InvalidInput, StreamSorter
from tests.unit.queues import message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def test_skip_leaves_stored_messages_and_released_ranges_alone(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1), message(3)])
    assert sorter.skip("q", [0, 1, 3]).skipped == ()
    assert sorter.skip("q", 2).skipped == (2,)
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 3]


@pytest.mark.parametrize(
    "seqs", ["abc", b"\x00\x01", bytearray(1), [True], [1.5], [2**70], range(2**70), range(-(2**63), 0), None, 1.5]
)
def test_skip_refuses_what_is_no_seq(sorter: StreamSorter, seqs: Any) -> None:
    with pytest.raises(InvalidInput):
        sorter.skip("q", seqs)


def test_skip_refuses_a_reason_that_would_not_fit(sorter: StreamSorter) -> None:
    with pytest.raises(InvalidInput, match="256 bytes"):
        sorter.skip("q", 0, reason="é" * 200)
    with pytest.raises(InvalidInput, match="256 bytes"):
        sorter.skip("q", 0, reason="\ud800")


def test_i6_a_message_for_a_skipped_seq_is_late_kept_and_never_delivered(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    sorter.put(message(2))
    skip = sorter.skip("q", range(5), reason="gone")
    assert (skip.skipped, skip.new, len(skip)) == ((1, 3, 4), 4, 4)
    assert sorter.put(message(1, body="late")).status == "late"
    assert sorter.put(message(1, body="late")).status == "late"
    assert sorter.put(message(1, body="other")).status == "conflict"
    assert [found["seq"] for found in sorter.read("q")] == [0, 2]
    (late,) = sorter.explain("q").late
    assert (late.seq, late.message, late.reason) == (1, message(1, body="late"), "gone")


def test_skip_puts_nothing_if_one_seq_is_bad_however_many_good_ones_come_before_it(sorter: StreamSorter) -> None:
    with pytest.raises(InvalidInput, match="seq is an int, not str"):
        sorter.skip("q", [*range(250), "x"])  # type: ignore[list-item]
    assert sorter.stores.items.highest("q") is None


def test_skip_of_nothing_makes_no_row(sorter: StreamSorter) -> None:
    assert sorter.skip("q", []).skipped == sorter.skip("q", range(0)).skipped == ()
    assert tables_of(sorter).cursors == {}


def test_skip_makes_the_row_of_a_new_queue_before_the_first_tombstone(sorter: StreamSorter) -> None:
    skip = sorter.stores.items.skip
    rows: list[Any] = []

    def watched(tombstones: Any, now: float) -> Any:
        rows.append(tables_of(sorter).cursors.get("q"))
        return skip(tombstones, now)

    sorter.stores.items.skip = watched  # type: ignore[method-assign]
    assert sorter.skip("q", [0, 3]).new == 0
    assert [row.position for row in rows] == [-1]
