"""An advance whose time is over leaves a mark, and a sweep goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import CursorLost, StreamSorter, Sweeper
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from tests.unit.queues import message, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def sorter() -> StreamSorter:
    """Everything but seq 0 is stored: 4,999 messages wait for it."""
    sorter = StreamSorter.in_memory(max_advance=100)
    sorter.put_many(message(seq) for seq in range(1, 5_000))
    Sweeper(sorter).sweep()
    return sorter


def after(steps: int) -> Callable[[], bool]:
    """A time that is over after some steps."""
    left = [steps]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    return is_over


def fill(sorter: StreamSorter) -> None:
    """Store seq 0, as a writer does that dies before it looks on."""
    assert sorter.stores.items.put(Arrival(check_message(message(0), KeyNames()), -1), 0.0) is None


def test_an_advance_that_is_stopped_marks_its_queue_and_a_sweep_releases_the_rest(sorter: StreamSorter) -> None:
    fill(sorter)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert sorter.stores.cursors.set_waiting(row, None)
    reach = sorter.reach("q", is_over=after(3))
    assert (reach.complete, reach.advance.new, reach.cursor.is_marked) == (False, 299, True)
    assert sorter.position("q") == 299
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 4_999


def test_an_advance_with_no_time_at_all_marks_its_queue(sorter: StreamSorter) -> None:
    fill(sorter)
    reach = sorter.reach("q", is_over=lambda: True)
    assert (reach.complete, reach.advance.moved, reach.cursor.is_marked) == (False, False, True)
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 4_999


def test_a_mark_that_was_taken_away_since_the_row_was_remembered_is_set_again(sorter: StreamSorter) -> None:
    remembered = sorter._intake.hints.recall("q")
    assert remembered is not None
    assert remembered.cursor is not None
    assert remembered.cursor.is_marked
    fill(sorter)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert sorter.stores.cursors.set_waiting(row, None)
    sorter._advancer.advance("q", {0}, remembered, is_over=lambda: True)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.is_marked


def test_a_mark_in_doubt_is_set_again(sorter: StreamSorter) -> None:
    fill(sorter)
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert sorter.stores.cursors.set_waiting(row, -row.next_mark(sorter.clock()))
    assert sorter.reach("q", is_over=lambda: True).cursor.is_marked


def test_a_stopped_advance_of_a_queue_whose_row_is_lost_says_so(sorter: StreamSorter) -> None:
    remembered = sorter._intake.hints.recall("q")
    del tables_of(sorter).cursors["q"]
    with pytest.raises(CursorLost):
        sorter._advancer.advance("q", {0}, remembered, is_over=lambda: True)
