"""The ports' guarantees as tests, one a number. Subclass one, give it a `stores` fixture, and run pytest.

The fixture answers empty `Home` whose keys are named `queue` and `seq`. Nothing here needs pytest itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.model.message import Message
from stream_sort.model.records import Arrival, Cleared
from stream_sort.model.slots import Entry, Slot, expand
from stream_sort.testing.contract_examples import EVERY_TYPE, NOW, arrival, message, tombstones
from stream_sort.testing.cursor_contract import CursorStoreContract, HeadReaderContract

if TYPE_CHECKING:
    from stream_sort.ports import Home

__all__ = [
    "EVERY_TYPE",
    "NOW",
    "CursorStoreContract",
    "HeadReaderContract",
    "ItemStoreContract",
    "arrival",
    "message",
    "tombstones",
]


class ItemStoreContract:
    """The guarantees of every ItemStore."""

    def test_1_a_message_is_stored_as_it_is_with_its_time(self, stores: Home) -> None:
        assert stores.items.put(arrival("q", 3, **EVERY_TYPE), NOW) is None
        (slot,) = stores.items.page("q", 2, 3, 10).slots
        item = slot.at(3)
        expected = {"queue": "q", "seq": 3, **EVERY_TYPE}
        assert item.document == expected
        assert repr(sorted(item.document.items())) == repr(sorted(expected.items()))
        assert (slot.queue, item.seq, item.arrived_at, item.skipped) == ("q", 3, NOW, None)

    def test_2_a_taken_slot_answers_the_first_message_and_keeps_it(self, stores: Home) -> None:
        stores.items.put(arrival("q", 1, body="first"), NOW)
        there = stores.items.put(arrival("q", 1, body="second"), NOW + 1)
        assert there is not None
        assert there.document["body"] == "first"
        (item,) = expand(stores.items.page("q", 0, 1, 10).slots)
        assert (item.document["body"], item.arrived_at) == ("first", NOW)

    def test_3_many_puts_answer_as_single_ones_in_order(self, stores: Home) -> None:
        stores.items.put(arrival("q", 30, body="first"), NOW)
        stores.items.skip(tombstones("q", [31], "gone"), NOW)
        answers = stores.items.put_many([arrival("q", seq, body=seq) for seq in range(60)], NOW)
        taken = {index: answer for index, answer in enumerate(answers) if answer is not None}
        assert sorted(taken) == [30, 31]
        assert not any(isinstance(answer, Exception) for answer in answers)
        assert getattr(taken[30], "document", None) == {"queue": "q", "seq": 30, "body": "first"}
        assert getattr(taken[31], "skipped", None) == "gone"
        assert len(stores.items.page("q", -1, 59, 100).slots) == 60

    def test_3_many_puts_store_values_as_single_ones(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq, **EVERY_TYPE) for seq in range(3)], NOW)
        for item in expand(stores.items.page("q", -1, 2, 10).slots):
            assert repr(sorted(item.document.items())) == repr(
                sorted({"queue": "q", "seq": item.seq, **EVERY_TYPE}.items())
            )

    def test_4_a_refused_message_keeps_no_other_one_out(self, stores: Home) -> None:
        too_large = Arrival(Message("q", 1, {"queue": "q", "seq": 1, "body": "x" * 420_000}, 10), None)
        answers = stores.items.put_many([arrival("q", 0), too_large, arrival("q", 2)], NOW)
        assert (answers[0], answers[2]) == (None, None)
        assert {0, 2} <= {item.seq for item in expand(stores.items.page("q", -1, 2, 10).slots)}

    def test_5_tombstones_go_into_empty_slots_only(self, stores: Home) -> None:
        stores.items.put(arrival("q", 1, body="here"), NOW)
        assert stores.items.skip(tombstones("q", [0, 1, 2], "lost"), NOW) == (0, 2)
        assert stores.items.skip(tombstones("q", [0, 1, 2], "again"), NOW) == ()
        items = list(expand(stores.items.page("q", -1, 2, 10).slots))
        assert [item.skipped for item in items] == ["lost", None, "lost"]
        assert items[1].document["body"] == "here"

    def test_6_the_first_late_message_is_kept_beside_the_tombstone(self, stores: Home) -> None:
        stores.items.skip(tombstones("q", [1], "lost"), NOW)
        late = stores.items.keep_late(message("q", 1, **EVERY_TYPE), NOW)
        assert late is not None
        assert repr(sorted((late.late or {}).items())) == repr(sorted({"queue": "q", "seq": 1, **EVERY_TYPE}.items()))
        second = stores.items.keep_late(message("q", 1, body="second"), NOW)
        assert second is not None
        assert (second.skipped, second.late) == ("lost", late.late)
        assert stores.items.keep_late(message("q", 2), NOW) is None
        assert stores.items.look("q", 1, 1).seqs == ()

    def test_7_a_look_shows_ascending_seqs_with_nothing_between(self, stores: Home) -> None:
        for seq in (9, 2, 5, 3):
            stores.items.put(arrival("q", seq), NOW)
        stores.items.put(arrival("other", 4), NOW)
        stores.items.skip(tombstones("q", [4], "lost"), NOW)
        assert stores.items.look("q", 2, 3).seqs == (3, 4, 5)
        assert stores.items.look("q", 2, 3).more
        whole = stores.items.look("q", -1, 100)
        assert (whole.seqs, whole.more) == ((2, 3, 4, 5, 9), False)

    def test_8_a_look_is_empty_only_beyond_the_last(self, stores: Home) -> None:
        stores.items.put(arrival("q", 2**63 - 1), NOW)
        assert stores.items.look("q", 0, 1).seqs == (2**63 - 1,)
        assert stores.items.look("q", 2**63 - 1, 1).seqs == ()
        assert stores.items.look("nowhere", -1, 5).seqs == ()

    def test_9_a_look_tells_whether_a_writer_saw_the_cursor(self, stores: Home) -> None:
        stores.items.put(arrival("q", 0), NOW)
        assert not stores.items.look("q", -1, 10).cursor_seen
        stores.items.put(arrival("q", 1, seen=-1), NOW)
        assert stores.items.look("q", -1, 10).seen == (-1,)
        stores.items.put(arrival("q", 2, seen=1), NOW)
        assert stores.items.look("q", -1, 10).seen == (-1, 1)

    def test_9_a_tombstone_tells_that_the_cursor_was_seen_too(self, stores: Home) -> None:
        stores.items.skip(tombstones("q", [0], "lost"), NOW)
        assert not stores.items.look("q", -1, 10).cursor_seen
        stores.items.skip(tombstones("q", [0, 1], "lost", seen=-1), NOW)
        assert not stores.items.look("q", -1, 1).cursor_seen
        assert stores.items.look("q", -1, 10).cursor_seen
        stores.items.keep_late(message("q", 1), NOW)
        assert stores.items.look("q", 0, 10).cursor_seen

    def test_10_pages_join_to_the_whole_range(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq, body="x" * 3_000) for seq in range(10)], NOW)
        got: list[int] = []
        after, more = 1, True
        while more:
            page = stores.items.page("q", after, 8, 3)
            got += [item.seq for item in expand(page.slots)]
            after, more = got[-1], page.more
        assert got == list(range(2, 9))
        assert stores.items.page("q", 20, 30, 5).slots == ()

    def test_11_the_highest_seq_counts_tombstones_too(self, stores: Home) -> None:
        assert stores.items.highest("q") is None
        stores.items.put(arrival("q", 5), NOW)
        stores.items.skip(tombstones("q", [7], "lost"), NOW)
        assert stores.items.highest("q") == 7

    def test_12_tombstones_are_found_from_the_end_within_the_limit(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq) for seq in range(0, 10, 2)], NOW)
        stores.items.skip(tombstones("q", [1, 7], "lost"), NOW)
        whole = stores.items.tombstones("q", 100)
        assert ([slot.first for slot in whole.slots], whole.more) == ([7, 1], False)
        end = stores.items.tombstones("q", 3)
        assert ([slot.first for slot in end.slots], end.more) == ([7], True)

    def test_13_the_lowest_slots_of_a_range_are_emptied_and_no_other(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq, seen=-1) for seq in range(70)], NOW)
        stores.items.put(arrival("other", 5), NOW)
        stores.items.skip(tombstones("q", [70], "lost"), NOW)
        assert stores.items.delete("q", 4, 70, 60) == 60
        assert stores.items.look("q", -1, 100).seqs == (*range(5), *range(65, 71))
        assert stores.items.delete("q", 4, 70, 60) == 6
        assert stores.items.delete("q", 4, 70, 60) == 0
        assert stores.items.look("q", -1, 100).seqs == tuple(range(5))
        assert stores.items.look("other", -1, 100).seqs == (5,)
        assert stores.items.put(arrival("q", 70, body="anew"), NOW) is None

    def test_14_only_what_was_stored_after_its_release_is_taken_back(self, stores: Home) -> None:
        for seq, seen in ((1, None), (2, 1), (3, 3), (4, 9), (5, 4)):
            stores.items.put(arrival("q", seq, seen=seen), NOW)
        assert [stores.items.take_back("q", seq) for seq in range(7)] == [False, False, False, True, True, False, False]
        assert stores.items.look("q", -1, 10).seqs == (1, 2, 5)

    def test_15_what_has_a_late_message_beside_it_is_kept_when_slots_are_cleared(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq) for seq in range(60) if seq not in {10, 11, 40}], NOW)
        stores.items.skip(tombstones("q", [10, 11, 40], ""), NOW)
        stores.items.keep_late(message("q", 11, body="late"), NOW)
        assert stores.items.clear("q", 1, 54, 30) == Cleared(29, (11,), 31)
        assert stores.items.clear("q", 31, 54, 30) == Cleared(23, (), 54)
        assert stores.items.look("q", -1, 100).seqs == (0, 1, 11, *range(55, 60))
        assert stores.items.clear("q", 1, 54, 30) == Cleared(0, (11,), 54)
        assert stores.items.page("q", 10, 11, 1).slots[0].at(11).late == {"queue": "q", "seq": 11, "body": "late"}
        assert stores.items.clear("q", 11, 54, 30) == Cleared(0, (), 54)

    def test_16_arrivals_show_times_and_tombstones_and_no_documents(self, stores: Home) -> None:
        stores.items.put(arrival("q", 1, **EVERY_TYPE), NOW)
        stores.items.skip(tombstones("q", [3], "lost"), NOW + 1)
        stores.items.keep_late(message("q", 3, body="late"), NOW + 2)
        stores.items.put(arrival("q", 4, body="x"), NOW + 2)
        stores.items.put(arrival("other", 2), NOW)
        first = stores.items.arrivals("q", 0, 2)
        assert first.slots == (
            Slot("q", (Entry(1, arrived_at=NOW),)),
            Slot("q", (Entry(3, arrived_at=NOW + 1, skipped="lost"),)),
        )
        assert first.more
        rest = stores.items.arrivals("q", 3, 2)
        assert (rest.slots, rest.more) == ((Slot("q", (Entry(4, arrived_at=NOW + 2),)),), False)
        assert stores.items.arrivals("q", 4, 2).slots == ()

    def test_17_arrivals_below_show_the_highest_first_and_what_was_seen(self, stores: Home) -> None:
        stores.items.put(arrival("q", 1, **EVERY_TYPE), NOW)
        stores.items.skip(tombstones("q", [3], "lost", seen=1), NOW + 1)
        stores.items.put(arrival("q", 2**63 - 1, seen=0, body="x"), NOW + 2)
        stores.items.put(arrival("other", 2), NOW)
        first = stores.items.arrivals_below("q", 2**63, 2)
        assert first.slots == (
            Slot("q", (Entry(2**63 - 1, arrived_at=NOW + 2),), seen=0),
            Slot("q", (Entry(3, arrived_at=NOW + 1, skipped="lost"),), seen=1),
        )
        assert first.more
        rest = stores.items.arrivals_below("q", 3, 2)
        assert (rest.slots, rest.more) == ((Slot("q", (Entry(1, arrived_at=NOW),)),), False)
        assert stores.items.arrivals_below("q", 1, 2).slots == ()

    def test_18_of_many_slots_those_are_told_that_are_taken(self, stores: Home) -> None:
        for number in range(0, 230, 2):
            stores.items.put(arrival(f"q{number}", 7), NOW)
        stores.items.skip(tombstones("skipped", [3], "lost"), NOW)
        asked = [("skipped", 3), ("skipped", 4), ("never", 7), *((f"q{number}", 7) for number in range(230))]
        told = stores.items.taken([*asked, *asked])
        assert told.damaged == {}
        assert told.slots == {("skipped", 3), *((f"q{number}", 7) for number in range(0, 230, 2))}
        assert stores.items.taken([]).slots == set()

    def test_19_the_slot_that_fills_a_seq_is_found_and_no_other(self, stores: Home) -> None:
        stores.items.put(arrival("q", 3, **EVERY_TYPE), NOW)
        stores.items.skip(tombstones("q", [5], "lost"), NOW)
        found, lost = stores.items.holding("q", 3), stores.items.holding("q", 5)
        assert found is not None
        assert (found.first, found.last, found.at(3).arrived_at) == (3, 3, NOW)
        assert repr(found.at(3)) == repr(next(expand(stores.items.page("q", 2, 3, 1).slots)))
        assert lost is not None
        assert lost.at(5).skipped == "lost"
        assert [stores.items.holding("q", seq) for seq in (2, 4, 6)] == [None, None, None]
        assert stores.items.holding("nowhere", 3) is None
