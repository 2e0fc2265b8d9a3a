"""What trimming a queue deletes, what it leaves, and what readers and askers then see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import CursorLost, MissingItems, NotReleased, QueueNotFound, StoreUnavailable, StreamSorter, Trimmed
from stream_sort.testing.contract_examples import arrival
from stream_sort.upkeep.trimmer import Trimmer
from tests.consumers import Interrupted, fail
from tests.unit.queues import beside, message, tables_of

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty


@pytest.fixture
def sorter() -> StreamSorter:
    sorter = StreamSorter.in_memory()
    sorter.put_many(message(seq) for seq in range(10))
    return sorter


def seqs_in(sorter: StreamSorter) -> list[int]:
    return tables_of(sorter).queues["q"].firsts


def test_a_trim_deletes_up_to_a_seq_and_says_how_many(sorter: StreamSorter) -> None:
    assert sorter.trim("q", 3, control_table=None) == 4
    assert seqs_in(sorter) == list(range(4, 10))
    assert sorter.trim("q", 3, control_table=None) == 0
    assert sorter.trim("q", 5, control_table=None) == 2
    assert tables_of(sorter).cursors["q"].floor == 5


def test_the_only_message_of_a_queue_is_trimmed_without_a_request_to_delete_it(client: Faulty) -> None:
    sorter = StreamSorter(client=client)
    sorter.put(message(0))
    client.calls.clear()
    assert sorter.trim("q", 0, control_table=None) == 0
    assert "query" not in client.calls
    assert (sorter.position("q"), [one["seq"] for one in sorter.read("q")]) == (0, [])


def test_a_lower_trim_does_not_lower_the_floor(sorter: StreamSorter) -> None:
    sorter.trim("q", 5, control_table=None)
    assert sorter.trim("q", 2, control_table=None) == 0
    assert tables_of(sorter).cursors["q"].floor == 5


def test_reading_from_the_beginning_starts_behind_what_is_trimmed(sorter: StreamSorter) -> None:
    sorter.trim("q", 6, control_table=None)
    assert [one["seq"] for one in sorter.read("q")] == [7, 8, 9]
    assert [one["seq"] for one in sorter.read("q", after=6)] == [7, 8, 9]
    assert list(sorter.read("q", through=6)) == []


@pytest.mark.parametrize("asked", [{"after": -1}, {"after": 5}, {"after": 0, "through": 3}, {"through": 5}])
def test_asking_for_what_is_trimmed_is_told_so(sorter: StreamSorter, asked: dict[str, int]) -> None:
    sorter.trim("q", 6, control_table=None)
    with pytest.raises(Trimmed, match=r"trimmed up to seq 6.*archive") as caught:
        sorter.read("q", **asked)
    assert (caught.value.queue, caught.value.floor, caught.value.seq) == ("q", 6, None)


def test_a_reader_that_is_overtaken_by_a_trim_is_told_so(sorter: StreamSorter) -> None:
    reading = sorter.read("q", after=1)
    beside(sorter).trim("q", 6, control_table=None)
    with pytest.raises(Trimmed):
        next(reading)


def test_a_hole_above_the_floor_is_still_a_hole(sorter: StreamSorter) -> None:
    sorter.trim("q", 4, control_table=None)
    tables_of(sorter).queues["q"].empty(6)
    with pytest.raises(MissingItems):
        list(sorter.read("q"))


def test_what_is_trimmed_is_no_gap_and_the_state_shows_the_floor(sorter: StreamSorter) -> None:
    sorter.skip("q", 10)
    sorter.put_many([message(11), message(14)])
    sorter.trim("q", 11, control_table=None)
    assert sorter.gaps("q") == [range(12, 14)]
    state = sorter.explain("q")
    assert (state.floor, state.position, state.gaps, state.skipped) == (11, 11, [range(12, 14)], [])
    sorter.put(message(0, queue="r"))
    assert sorter.explain("r").floor is None


def test_a_queue_that_is_trimmed_whole_holds_nothing_as_far_as_anybody_is_told(sorter: StreamSorter) -> None:
    sorter.skip("q", 10)
    sorter.trim("q", 10, control_table=None)
    state = sorter.explain("q")
    assert (state.highest_stored, state.gaps, state.skipped, state.remedy) == (None, [], [], "nothing waits")
    assert list(sorter.read("q")) == []
    assert sorter.put(message(11)).new == 11


def test_i10_the_message_at_the_position_stays_as_proof_of_the_cursor(sorter: StreamSorter) -> None:
    assert sorter.trim("q", 9, control_table=None) == 9
    assert seqs_in(sorter) == [9]
    tables_of(sorter).cursors.clear()
    for call in (
        lambda: beside(sorter).put(message(10)),
        lambda: beside(sorter).trim("q", 9, control_table=None),
        lambda: beside(sorter).position("q"),
    ):
        with pytest.raises(CursorLost):
            call()


def test_the_proof_goes_with_the_first_trim_after_the_next_release(sorter: StreamSorter) -> None:
    sorter.trim("q", 9, control_table=None)
    sorter.put(message(10))
    assert sorter.trim("q", 9, control_table=None) == 1
    assert seqs_in(sorter) == [10]


def test_what_is_not_released_cannot_be_trimmed(sorter: StreamSorter) -> None:
    sorter.put(message(12))
    with pytest.raises(NotReleased, match="released up to seq 9; it cannot be trimmed through 10") as caught:
        sorter.trim("q", 10, control_table=None)
    assert (caught.value.through, caught.value.position) == (10, 9)
    assert len(seqs_in(sorter)) == 11


def test_a_queue_that_never_was_cannot_be_trimmed(sorter: StreamSorter) -> None:
    with pytest.raises(QueueNotFound):
        sorter.trim("r", 0, control_table=None)


def test_what_lies_before_the_start_of_a_queue_is_left_alone() -> None:
    sorter = StreamSorter.in_memory()
    sorter.open("q", first_seq=5)
    sorter.stores.items.put(arrival("q", 2), 0.0)
    sorter.put_many([message(5), message(6)])
    assert sorter.trim("q", 4, control_table=None) == 0
    assert tables_of(sorter).cursors["q"].floor is None
    assert sorter.trim("q", 5, control_table=None) == 1
    assert seqs_in(sorter) == [2, 6]


@pytest.mark.parametrize("call", ["set_floor", "delete"])
def test_i8_a_trim_that_was_killed_is_finished_by_the_same_call(sorter: StreamSorter, call: str) -> None:
    stores = sorter.stores
    items, cursors = Interrupted(stores.items), Interrupted(stores.cursors)
    items.after["delete" if call == "delete" else ""] = [fail]
    cursors.after["set_floor" if call == "set_floor" else ""] = [fail]
    with pytest.raises(StoreUnavailable):
        Trimmer(items, cursors, None).trim("q", 6)  # type: ignore[arg-type]
    sorter.trim("q", 6, control_table=None)
    assert (seqs_in(sorter), tables_of(sorter).cursors["q"].floor) == ([7, 8, 9], 6)


def test_a_trim_of_many_slots_goes_page_by_page() -> None:
    sorter = StreamSorter.in_memory()
    sorter.put_many(message(seq) for seq in range(2_500))
    items = Interrupted(sorter.stores.items)
    assert Trimmer(items, sorter.stores.cursors, None).trim("q", 2_400) == 2_401  # type: ignore[arg-type]
    assert items.calls.count("delete") == 4


def test_a_cursor_lost_in_the_middle_of_a_trim_is_named(sorter: StreamSorter) -> None:
    cursors = Interrupted(sorter.stores.cursors)
    cursors.before["set_floor"] = [tables_of(sorter).cursors.clear]
    with pytest.raises(CursorLost, match="last known position: 9"):
        Trimmer(sorter.stores.items, cursors, None).trim("q", 6)  # type: ignore[arg-type]
    assert len(seqs_in(sorter)) == 10
