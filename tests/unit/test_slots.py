"""A slot may fill several seqs: runs, gaps, reads, deliveries and trims count seqs, and none ends inside of one.

No store writes such slots yet: here they are put into memory tables by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import MissingItems, StreamSorter, Sweeper
from stream_sort.model.gaps import joined
from stream_sort.model.ordering import gaps_between, run_through
from stream_sort.model.records import Cleared
from stream_sort.model.slots import Entry, Slot, expand
from stream_sort.stores.memory.tables import MemoryQueue
from tests.consumers import Clerk, Office, wake
from tests.unit.queues import beside, message, tables_of

if TYPE_CHECKING:
    from stream_sort.model.records import Cursor, Move

THREE = Slot("q", [Entry(7, {"body": "a"}), Entry(8, skipped="lost"), Entry(9, {"body": "c"})])


def fill(sorter: StreamSorter, *slots: range) -> None:
    """Put slots into the tables, as one append each would."""
    tables = tables_of(sorter)
    for seqs in slots:
        entries = [Entry(seq, message(seq), arrived_at=sorter.clock()) for seq in seqs]
        tables.queues.setdefault("q", MemoryQueue()).fill(Slot("q", entries))


def seqs_of(sorter: StreamSorter, after: int | None = None, through: int | None = None) -> list[int]:
    return [one["seq"] for one in sorter.read("q", after=after, through=through)]


@pytest.fixture
def sorter() -> StreamSorter:
    sorter = StreamSorter.in_memory()
    fill(sorter, range(3), range(3, 5), range(5, 6), range(6, 10))
    assert sorter.advance("q").new == 9
    return sorter


def test_a_slot_knows_what_it_fills() -> None:
    assert (THREE.first, THREE.last, THREE.seqs) == (7, 9, range(7, 10))
    assert [THREE.at(seq).seq for seq in THREE.seqs] == [7, 8, 9]
    assert [entry.is_tombstone for entry in THREE.entries] == [False, True, False]


def test_slots_are_expanded_into_the_entries_of_a_range() -> None:
    slots = [THREE, Slot("q", [Entry(10)])]
    assert [entry.seq for entry in expand(slots)] == [7, 8, 9, 10]
    assert [entry.seq for entry in expand(slots, 7, 9)] == [8, 9]
    assert [entry.seq for entry in expand(slots, through=8)] == [7, 8]
    assert list(expand(slots, 10)) == []


def test_a_run_goes_on_where_the_first_seq_follows_the_last_one() -> None:
    slots = [range(5, 8), range(8, 9), range(9, 12), range(13, 15)]
    assert run_through(4, slots) == 11
    assert run_through(3, slots) == 3
    # From inside of a slot, too.
    assert run_through(6, slots) == 11


def test_a_capped_run_ends_with_the_slot_that_reaches_the_cap() -> None:
    slots = [range(3), range(3, 6), range(6, 9)]
    assert [run_through(-1, slots, limit) for limit in (1, 3, 4, 6, 99)] == [2, 2, 5, 5, 8]


def test_gaps_lie_between_slots_and_not_in_them() -> None:
    assert list(gaps_between(4, [range(3, 7), range(8, 11), range(11, 13), range(20, 21)])) == [
        range(7, 8),
        range(13, 20),
    ]
    assert joined([range(3, 7), range(8, 11), range(11, 13)]) == [range(3, 7), range(8, 13)]


def test_an_advance_counts_seqs_and_stops_at_a_gap_between_slots() -> None:
    sorter = StreamSorter.in_memory()
    fill(sorter, range(3), range(3, 7), range(9, 12))
    done = sorter.advance("q")
    assert (done.new, done.released) == (6, 7)
    assert sorter.gaps("q") == [range(7, 9)]
    state = sorter.explain("q")
    assert (state.highest_stored, state.stored_beyond, state.gaps, state.complete) == (11, 3, [range(7, 9)], True)


def test_a_move_of_the_cursor_is_capped_in_seqs_and_never_ends_inside_a_slot() -> None:
    sorter = StreamSorter.in_memory(max_advance=4)
    fill(sorter, range(3), range(3, 6), range(6, 16), range(16, 18))
    cursors, moves = sorter.stores.cursors, list[int]()
    move = cursors.move

    def noted(cursor: Cursor, new: int, now: float) -> Move | None:
        moves.append(new)
        return move(cursor, new, now)

    cursors.move = noted  # type: ignore[method-assign]
    assert sorter.advance("q").new == 17
    # The first one makes the row.
    assert moves == [15, 17]


def test_a_read_begins_and_ends_inside_slots(sorter: StreamSorter) -> None:
    assert seqs_of(sorter) == list(range(10))
    for after in range(-1, 10):
        for through in range(after, 10):
            assert seqs_of(sorter, after, through) == list(range(after + 1, through + 1))


def test_a_missing_slot_is_a_hole_of_all_its_seqs(sorter: StreamSorter) -> None:
    tables_of(sorter).queues["q"].empty(3)
    with pytest.raises(MissingItems) as caught:
        seqs_of(sorter)
    assert caught.value.missing == [range(3, 5)]
    with pytest.raises(MissingItems) as caught:
        seqs_of(sorter, 3)
    assert caught.value.missing == [range(4, 5)]


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4, 100])
def test_chunks_of_a_handler_may_end_inside_a_slot(batch_size: int) -> None:
    office, clerk = Office(), Clerk()
    fill(office.sorter, range(3), range(3, 5), range(5, 6), range(6, 10))
    office.sorter.advance("q")
    (served,) = wake(office.hire(clerk, batch_size=batch_size))
    assert served.delivered == 10
    assert [seq for _, seqs in clerk.batches for seq in seqs] == list(range(10))
    assert max(len(seqs) for _, seqs in clerk.batches) <= batch_size


def test_a_message_at_fault_is_found_inside_a_slot_and_set_aside_alone() -> None:
    office, clerk = Office(), Clerk({4})
    fill(office.sorter, range(3), range(3, 7))
    office.sorter.advance("q")
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    wake(consumer)
    assert clerk.seqs() == [0, 1, 2, 3, 5, 6]
    assert [letter.seq for letter in consumer.dead_letters()] == [4]
    clerk.poison.clear()
    assert consumer.redrive("q") == 1
    assert clerk.seqs() == [0, 1, 2, 3, 5, 6, 4]


def test_a_trim_counts_seqs_and_leaves_a_slot_that_reaches_beyond_it(sorter: StreamSorter) -> None:
    assert sorter.trim("q", 3, control_table=None) == 3
    assert tables_of(sorter).queues["q"].firsts == [3, 5, 6]
    assert seqs_of(sorter) == list(range(4, 10))
    assert sorter.trim("q", 5, control_table=None) == 3
    assert seqs_of(sorter) == list(range(6, 10))


def test_a_message_of_a_slot_is_shown_by_its_seq(sorter: StreamSorter) -> None:
    assert [getattr(sorter.slot("q", seq), "seq", None) for seq in (0, 4, 8, 10)] == [0, 4, 8, None]


def test_a_slot_is_cleared_as_a_whole_or_not_at_all(sorter: StreamSorter) -> None:
    items = tables_of(sorter).home().items
    assert items.clear("q", -1, 3, 10) == Cleared(3, (), 3)
    assert items.clear("q", 2, 9, 2) == Cleared(3, (), 5)
    assert tables_of(sorter).queues["q"].firsts == [6]


def test_a_gap_between_slots_is_given_up_once_a_message_beyond_it_is_old_enough() -> None:
    sorter = StreamSorter.in_memory(gap_policy="skip after 0 seconds")
    fill(sorter, range(3), range(5, 8), range(9, 12))
    sorter.advance("q")
    done = Sweeper(sorter).sweep()
    assert [event.seqs for event in done.skipped] == [range(3, 5), range(8, 9)]
    assert sorter.position("q") == 11


def test_a_lost_row_is_found_again_from_slots(sorter: StreamSorter) -> None:
    tables = tables_of(sorter)
    fill(sorter, range(20, 23))
    tables.queues["q"].seen[20] = 9
    tables.cursors.clear()
    assert beside(sorter).recover("q", position=9, control_table=None).position == 9
    assert beside(sorter).gaps("q") == [range(10, 20)]
