from __future__ import annotations

import pytest

from stream_sort import CursorLost, StreamSorter, Sweeper
from tests.unit.queues import beside, message, tables_of


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def test_i10_a_lost_cursor_is_named_by_the_process_that_knew_it(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    tables_of(sorter).cursors.clear()
    with pytest.raises(CursorLost, match="last known position: 0"):
        sorter.put(message(1))
    assert tables_of(sorter).cursors == {}


def test_i10_a_lost_cursor_is_named_by_a_process_that_never_saw_it(sorter: StreamSorter) -> None:
    for seq in range(3):
        beside(sorter).put(message(seq))
    tables_of(sorter).cursors.clear()
    for call in (
        lambda: beside(sorter).put(message(3)),
        lambda: beside(sorter).put(message(9)),
        lambda: beside(sorter).advance("q"),
        lambda: beside(sorter).position("q"),
        lambda: beside(sorter).set_policy("q", "wait"),
        lambda: beside(sorter).open("q", first_seq=7),
    ):
        with pytest.raises(CursorLost):
            call()
    assert tables_of(sorter).cursors == {}


def test_i10_a_cursor_lost_after_a_single_batch_is_not_made_anew(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(200))
    tables_of(sorter).cursors.clear()
    trimmed = tables_of(sorter).queues["q"]
    for seq in range(50):
        trimmed.empty(seq)
    for call in (lambda: beside(sorter).put(message(210)), lambda: beside(sorter).explain("q")):
        with pytest.raises(CursorLost):
            call()
    assert beside(sorter).put_many([message(211), message(0, "r")]).accepted == 1
    assert tables_of(sorter).cursors.keys() == {"r"}


def test_i10_a_lost_cursor_stalls_its_own_queue_only(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1)])
    sorter.put(message(2))
    del tables_of(sorter).cursors["q"]
    result = sorter.put_many([message(3), message(0, "r")])
    assert [(queue, type(error)) for queue, error in result.stalled] == [("q", CursorLost)]
    assert sorter.position("r") == 0


def test_i10_a_cursor_lost_above_nothing_but_tombstones_is_not_made_anew(sorter: StreamSorter) -> None:
    sorter.skip("q", range(30), reason="never sent")
    sorter.put_many(message(seq) for seq in range(30, 60))
    tables_of(sorter).cursors.clear()
    for call in (
        lambda: beside(sorter).put(message(60)),
        lambda: beside(sorter).skip("q", 60),
        lambda: beside(sorter).position("q"),
        lambda: beside(sorter).advance("q"),
    ):
        with pytest.raises(CursorLost):
            call()
    assert tables_of(sorter).cursors == {}


def test_i10_a_cursor_lost_above_the_tombstones_of_a_policy_is_not_made_anew(sorter: StreamSorter) -> None:
    sorter.set_policy("q", skip_after=0)
    sorter.put(message(40))
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 40
    tables_of(sorter).cursors.clear()
    with pytest.raises(CursorLost):
        beside(sorter).put(message(41))


def test_i10_a_nudge_of_a_lost_cursor_says_that_it_is_lost(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    tables_of(sorter).cursors.clear()
    with pytest.raises(CursorLost):
        sorter.nudge("q")


def test_i10_a_row_that_is_lost_before_an_advance_goes_on_is_not_taken_for_one_at_its_end() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put(message(0))
    advancer = sorter._advancer
    walk = advancer.walk("q", {0})
    assert advancer.go_on(walk, sorter._intake.learn("q"), lambda: True) is None
    del tables_of(sorter).cursors["q"]
    with pytest.raises(CursorLost):
        advancer.go_on(walk, None)
