"""The ports' guarantees as tests, one a number. Subclass one, give it a `stores` fixture, and run pytest.

The fixture answers empty `Stores` whose keys are named `queue` and `seq`. Nothing here needs pytest itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.gaps import Gap
from stream_sort.model.message import MAX_SEQ, KeyNames, Message, check_message
from stream_sort.model.policy import GapPolicy
from stream_sort.model.records import Arrival, Cleared, Cursor, CursorPage, Item, Tombstones

if TYPE_CHECKING:
    from stream_sort.ports import Stores

NOW = 1_700_000_000.25
EVERY_TYPE: dict[str, Any] = {
    "text": "naïve 🦄",
    "int": 7,
    "float": 7.0,
    "big": 10**60,
    "huge": 1e300,
    "tiny": 5e-324,
    "minus_zero": -0.0,
    "third": 1 / 3,
    "bytes": b"\x00\xff",
    "nothing": None,
    "true": True,
    "empty": {"text": "", "list": [], "map": {}, "bytes": b""},
    "list": [1, 1.0, "1", [2.0, {"deep": 3.0}]],
    'it\'s "quoted"': 1,
}


def message(queue: str, seq: int, **fields: Any) -> Message:
    """Return a checked message."""
    return check_message({"queue": queue, "seq": seq, **fields}, KeyNames())


def arrival(queue: str, seq: int, *, seen: int | None = None, **fields: Any) -> Arrival:
    """Return a message on its way in."""
    return Arrival(message(queue, seq, **fields), seen)


def tombstones(queue: str, seqs: list[int], reason: str, *, seen: int | None = None) -> Tombstones:
    """Seqs to be given up."""
    return Tombstones(queue, tuple(seqs), reason, seen)


class ItemStoreContract:
    """What every ItemStore keeps."""

    def test_1_a_message_is_stored_as_it_is_with_its_time(self, stores: Stores) -> None:
        assert stores.items.put(arrival("q", 3, **EVERY_TYPE), NOW) is None
        (item,) = stores.items.page("q", 2, 3, 10).items
        expected = {"queue": "q", "seq": 3, **EVERY_TYPE}
        assert item.document == expected
        assert repr(sorted(item.document.items())) == repr(sorted(expected.items()))
        assert (item.queue, item.seq, item.arrived_at, item.skipped) == ("q", 3, NOW, None)

    def test_2_a_taken_slot_answers_the_first_message_and_keeps_it(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 1, body="first"), NOW)
        there = stores.items.put(arrival("q", 1, body="second"), NOW + 1)
        assert there is not None
        assert there.document["body"] == "first"
        (item,) = stores.items.page("q", 0, 1, 10).items
        assert (item.document["body"], item.arrived_at) == ("first", NOW)

    def test_3_many_puts_answer_as_single_ones_in_order(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 30, body="first"), NOW)
        stores.items.skip(tombstones("q", [31], "gone"), NOW)
        answers = stores.items.put_many([arrival("q", seq, body=seq) for seq in range(60)], NOW)
        taken = {index: answer for index, answer in enumerate(answers) if answer is not None}
        assert sorted(taken) == [30, 31]
        assert not any(isinstance(answer, Exception) for answer in answers)
        assert getattr(taken[30], "document", None) == {"queue": "q", "seq": 30, "body": "first"}
        assert getattr(taken[31], "skipped", None) == "gone"
        assert len(stores.items.page("q", -1, 59, 100).items) == 60

    def test_3_many_puts_store_values_as_single_ones(self, stores: Stores) -> None:
        stores.items.put_many([arrival("q", seq, **EVERY_TYPE) for seq in range(3)], NOW)
        for item in stores.items.page("q", -1, 2, 10).items:
            assert repr(sorted(item.document.items())) == repr(
                sorted({"queue": "q", "seq": item.seq, **EVERY_TYPE}.items())
            )

    def test_4_a_refused_message_keeps_no_other_one_out(self, stores: Stores) -> None:
        too_large = Arrival(Message("q", 1, {"queue": "q", "seq": 1, "body": "x" * 420_000}, 10), None)
        answers = stores.items.put_many([arrival("q", 0), too_large, arrival("q", 2)], NOW)
        assert (answers[0], answers[2]) == (None, None)
        assert {0, 2} <= {item.seq for item in stores.items.page("q", -1, 2, 10).items}

    def test_5_tombstones_go_into_empty_slots_only(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 1, body="here"), NOW)
        assert stores.items.skip(tombstones("q", [0, 1, 2], "lost"), NOW) == (0, 2)
        assert stores.items.skip(tombstones("q", [0, 1, 2], "again"), NOW) == ()
        items = stores.items.page("q", -1, 2, 10).items
        assert [item.skipped for item in items] == ["lost", None, "lost"]
        assert items[1].document["body"] == "here"

    def test_6_the_first_late_message_is_kept_beside_the_tombstone(self, stores: Stores) -> None:
        stores.items.skip(tombstones("q", [1], "lost"), NOW)
        late = stores.items.keep_late(message("q", 1, **EVERY_TYPE), NOW)
        assert late is not None
        assert repr(sorted((late.late or {}).items())) == repr(sorted({"queue": "q", "seq": 1, **EVERY_TYPE}.items()))
        second = stores.items.keep_late(message("q", 1, body="second"), NOW)
        assert second is not None
        assert (second.skipped, second.late) == ("lost", late.late)
        assert stores.items.keep_late(message("q", 2), NOW) is None
        assert stores.items.look("q", 1, 1).seqs == ()

    def test_7_a_look_shows_ascending_seqs_with_nothing_between(self, stores: Stores) -> None:
        for seq in (9, 2, 5, 3):
            stores.items.put(arrival("q", seq), NOW)
        stores.items.put(arrival("other", 4), NOW)
        stores.items.skip(tombstones("q", [4], "lost"), NOW)
        assert stores.items.look("q", 2, 3).seqs == (3, 4, 5)
        assert stores.items.look("q", 2, 3).more
        whole = stores.items.look("q", -1, 100)
        assert (whole.seqs, whole.more) == ((2, 3, 4, 5, 9), False)

    def test_8_a_look_is_empty_only_beyond_the_last(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 2**63 - 1), NOW)
        assert stores.items.look("q", 0, 1).seqs == (2**63 - 1,)
        assert stores.items.look("q", 2**63 - 1, 1).seqs == ()
        assert stores.items.look("nowhere", -1, 5).seqs == ()

    def test_9_a_look_tells_whether_a_writer_saw_the_cursor(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 0), NOW)
        assert not stores.items.look("q", -1, 10).cursor_seen
        stores.items.put(arrival("q", 1, seen=-1), NOW)
        assert stores.items.look("q", -1, 10).seen == (-1,)
        stores.items.put(arrival("q", 2, seen=1), NOW)
        assert stores.items.look("q", -1, 10).seen == (-1, 1)

    def test_9_a_tombstone_tells_that_the_cursor_was_seen_too(self, stores: Stores) -> None:
        stores.items.skip(tombstones("q", [0], "lost"), NOW)
        assert not stores.items.look("q", -1, 10).cursor_seen
        stores.items.skip(tombstones("q", [0, 1], "lost", seen=-1), NOW)
        assert not stores.items.look("q", -1, 1).cursor_seen
        assert stores.items.look("q", -1, 10).cursor_seen
        stores.items.keep_late(message("q", 1), NOW)
        assert stores.items.look("q", 0, 10).cursor_seen

    def test_10_pages_join_to_the_whole_range(self, stores: Stores) -> None:
        stores.items.put_many([arrival("q", seq, body="x" * 3_000) for seq in range(10)], NOW)
        got: list[int] = []
        after, more = 1, True
        while more:
            page = stores.items.page("q", after, 8, 3)
            got += [item.seq for item in page.items]
            after, more = got[-1], page.more
        assert got == list(range(2, 9))
        assert stores.items.page("q", 20, 30, 5).items == ()

    def test_11_the_highest_seq_counts_tombstones_too(self, stores: Stores) -> None:
        assert stores.items.highest("q") is None
        stores.items.put(arrival("q", 5), NOW)
        stores.items.skip(tombstones("q", [7], "lost"), NOW)
        assert stores.items.highest("q") == 7

    def test_12_tombstones_are_found_from_the_end_within_the_limit(self, stores: Stores) -> None:
        stores.items.put_many([arrival("q", seq) for seq in range(0, 10, 2)], NOW)
        stores.items.skip(tombstones("q", [1, 7], "lost"), NOW)
        whole = stores.items.tombstones("q", 100)
        assert ([item.seq for item in whole.items], whole.more) == ([7, 1], False)
        end = stores.items.tombstones("q", 3)
        assert ([item.seq for item in end.items], end.more) == ([7], True)

    def test_13_the_lowest_slots_of_a_range_are_emptied_and_no_other(self, stores: Stores) -> None:
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

    def test_14_only_what_was_stored_after_its_release_is_taken_back(self, stores: Stores) -> None:
        for seq, seen in ((1, None), (2, 1), (3, 3), (4, 9), (5, 4)):
            stores.items.put(arrival("q", seq, seen=seen), NOW)
        assert [stores.items.take_back("q", seq) for seq in range(7)] == [False, False, False, True, True, False, False]
        assert stores.items.look("q", -1, 10).seqs == (1, 2, 5)

    def test_15_what_has_a_late_message_beside_it_is_kept_when_slots_are_cleared(self, stores: Stores) -> None:
        stores.items.put_many([arrival("q", seq) for seq in range(60) if seq not in {10, 11, 40}], NOW)
        stores.items.skip(tombstones("q", [10, 11, 40], ""), NOW)
        stores.items.keep_late(message("q", 11, body="late"), NOW)
        assert stores.items.clear("q", 1, 54, 30) == Cleared(29, (11,), 31)
        assert stores.items.clear("q", 31, 54, 30) == Cleared(23, (), 54)
        assert stores.items.look("q", -1, 100).seqs == (0, 1, 11, *range(55, 60))
        assert stores.items.clear("q", 1, 54, 30) == Cleared(0, (11,), 54)
        assert stores.items.page("q", 10, 11, 1).items[0].late == {"queue": "q", "seq": 11, "body": "late"}
        assert stores.items.clear("q", 11, 54, 30) == Cleared(0, (), 54)

    def test_16_arrivals_show_times_and_tombstones_and_no_documents(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 1, **EVERY_TYPE), NOW)
        stores.items.skip(tombstones("q", [3], "lost"), NOW + 1)
        stores.items.keep_late(message("q", 3, body="late"), NOW + 2)
        stores.items.put(arrival("q", 4, body="x"), NOW + 2)
        stores.items.put(arrival("other", 2), NOW)
        first = stores.items.arrivals("q", 0, 2)
        assert first.items == (Item("q", 1, arrived_at=NOW), Item("q", 3, arrived_at=NOW + 1, skipped="lost"))
        assert first.more
        rest = stores.items.arrivals("q", 3, 2)
        assert (rest.items, rest.more) == ((Item("q", 4, arrived_at=NOW + 2),), False)
        assert stores.items.arrivals("q", 4, 2).items == ()

    def test_17_arrivals_below_show_the_highest_first_and_what_was_seen(self, stores: Stores) -> None:
        stores.items.put(arrival("q", 1, **EVERY_TYPE), NOW)
        stores.items.skip(tombstones("q", [3], "lost", seen=1), NOW + 1)
        stores.items.put(arrival("q", 2**63 - 1, seen=0, body="x"), NOW + 2)
        stores.items.put(arrival("other", 2), NOW)
        first = stores.items.arrivals_below("q", 2**63, 2)
        assert first.items == (
            Item("q", 2**63 - 1, arrived_at=NOW + 2, seen=0),
            Item("q", 3, arrived_at=NOW + 1, skipped="lost", seen=1),
        )
        assert first.more
        rest = stores.items.arrivals_below("q", 3, 2)
        assert (rest.items, rest.more) == ((Item("q", 1, arrived_at=NOW),), False)
        assert stores.items.arrivals_below("q", 1, 2).items == ()

    def test_18_of_many_slots_those_are_told_that_are_taken(self, stores: Stores) -> None:
        for number in range(0, 230, 2):
            stores.items.put(arrival(f"q{number}", 7), NOW)
        stores.items.skip(tombstones("skipped", [3], "lost"), NOW)
        asked = [("skipped", 3), ("skipped", 4), ("never", 7), *((f"q{number}", 7) for number in range(230))]
        told = stores.items.taken([*asked, *asked])
        assert told == {("skipped", 3), *((f"q{number}", 7) for number in range(0, 230, 2))}
        assert stores.items.taken([]) == set()


class CursorStoreContract:
    """What every CursorStore keeps."""

    def test_1_a_row_reads_as_it_was_written(self, stores: Stores) -> None:
        row = Cursor("q", 4, 2, GapPolicy(1.5), waiting_since=NOW, moved_at=NOW + 1, floor=3)
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.get("q") == row

    def test_2_a_row_is_created_once(self, stores: Stores) -> None:
        first = Cursor("q", 4, 0)
        assert stores.cursors.create(first).won
        again = stores.cursors.create(Cursor("q", 9, 0))
        assert (again.won, again.cursor) == (False, first)

    def test_3_a_move_needs_the_old_position(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0, GapPolicy(9.0), waiting_since=NOW)
        stores.cursors.create(row)
        won = stores.cursors.move(row, 6, NOW + 2)
        assert won is not None
        assert won.won
        assert won.cursor == Cursor("q", 6, 0, GapPolicy(9.0), waiting_since=NOW, moved_at=NOW + 2)
        lost = stores.cursors.move(row, 7, NOW + 3)
        assert lost is not None
        assert (lost.won, lost.cursor) == (False, won.cursor)
        assert stores.cursors.get("q") == won.cursor

    def test_3_a_move_needs_the_old_count_of_withdrawals(self, stores: Stores) -> None:
        for name, count in (("never", 0), ("twice", 2)):
            row = Cursor(name, 4, 0, withdrawals=count)
            stores.cursors.create(row)
            for other in {0, 1, 2, 3} - {count}:
                lost = stores.cursors.move(replace(row, withdrawals=other), 6, NOW)
                assert lost is not None
                assert (lost.won, lost.cursor) == (False, row)
            won = stores.cursors.move(row, 6, NOW)
            assert won is not None
            assert (won.won, won.cursor) == (True, replace(row, position=6, moved_at=NOW))

    def test_4_a_move_never_makes_a_row(self, stores: Stores) -> None:
        assert stores.cursors.move(Cursor("q", -1, 0), 3, NOW) is None
        assert stores.cursors.get("q") is None

    def test_5_a_restart_needs_an_untouched_row(self, stores: Stores) -> None:
        row = Cursor("q", -1, 0)
        assert stores.cursors.restart(row, 10) is None
        stores.cursors.create(row)
        moved = stores.cursors.restart(row, 10)
        assert moved is not None
        assert (moved.won, moved.cursor.position, moved.cursor.first_seq) == (True, 9, 10)
        again = stores.cursors.restart(row, 20)
        assert again is not None
        assert (again.won, again.cursor.first_seq) == (False, 10)

    def test_6_the_mark_changes_only_where_it_was_seen(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0)
        assert not stores.cursors.set_waiting(row, NOW)
        stores.cursors.create(row)
        assert stores.cursors.set_waiting(row, NOW)
        assert not stores.cursors.set_waiting(row, NOW + 1)
        marked = replace(row, waiting_since=NOW)
        assert stores.cursors.set_waiting(marked, NOW + 5)
        assert not stores.cursors.set_waiting(marked, None)
        later = replace(row, waiting_since=NOW + 5)
        assert not stores.cursors.set_waiting(replace(later, position=3), None)
        assert stores.cursors.set_waiting(later, None)
        cleared = replace(row, last_mark=NOW + 5)
        assert stores.cursors.get("q") == cleared
        assert not stores.cursors.set_waiting(row, NOW + 9), "there was a mark since"
        assert stores.cursors.set_waiting(cleared, NOW + 9)

    def test_6_to_clear_the_mark_forgets_the_gap(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0, waiting_since=NOW, gap=Gap(range(5, 7), NOW))
        stores.cursors.create(row)
        assert stores.cursors.set_waiting(row, -NOW - 1)
        doubtful = replace(row, waiting_since=-NOW - 1)
        assert stores.cursors.get("q") == doubtful
        assert stores.cursors.set_waiting(doubtful, None)
        assert stores.cursors.get("q") == replace(doubtful, waiting_since=None, gap=None)

    def test_7_a_policy_changes_nothing_else(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0, waiting_since=NOW)
        assert not stores.cursors.set_policy("q", GapPolicy(3.0))
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.set_policy("q", GapPolicy(3.0))
        assert stores.cursors.get("q") == replace(row, policy=GapPolicy(3.0))
        assert stores.cursors.set_policy("q", None)
        assert stores.cursors.get("q") == row

    def test_8_a_nudge_counts_and_changes_nothing_else(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0)
        assert not stores.cursors.nudge("q", NOW)
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.nudge("q", NOW)
        assert stores.cursors.nudge("q", NOW + 1)
        assert stores.cursors.get("q") == replace(row, nudges=2, nudged_at=NOW + 1)

    def test_9_waiting_queues_are_listed_longest_first(self, stores: Stores) -> None:
        for queue, since in (("new", NOW + 9), ("old", NOW), ("mid", NOW + 5), ("none", None)):
            stores.cursors.create(Cursor(queue, -1, 0, waiting_since=since))
        assert stores.cursors.waiting(NOW + 5).queues == ("old", "mid")
        assert stores.cursors.waiting(NOW - 1).queues == ()

    def test_9_every_waiting_queue_is_listed_whatever_it_is_called(self, stores: Stores) -> None:
        names = {f"queue {number}" for number in range(30)}
        for name in names:
            stores.cursors.create(Cursor(name, -1, 0, waiting_since=NOW))
        assert {*stores.cursors.waiting(NOW).queues} == names

    def test_10_every_row_is_listed(self, stores: Stores) -> None:
        names = {f"queue {number}" for number in range(30)}
        for name in names:
            stores.cursors.create(Cursor(name, -1, 0))
        page = stores.cursors.queues()
        listed = set(page.queues)
        while page.next is not None:
            page = stores.cursors.queues(page.next)
            listed |= set(page.queues)
        assert listed == names

    def test_11_rows_are_listed_in_pages_of_a_limit(self, stores: Stores) -> None:
        names = {f"queue {number}" for number in range(30)}
        for name in names:
            stores.cursors.create(Cursor(name, 4, 0))
        page = stores.cursors.rows(limit=7)
        listed = [row.queue for row in page.rows]
        while page.next is not None:
            page = stores.cursors.rows(page.next, limit=7)
            assert len(page.rows) <= 7
            listed += [row.queue for row in page.rows]
        assert sorted(listed) == sorted(names)

    def test_12_a_floor_rises_up_to_the_position_and_never_goes_back(self, stores: Stores) -> None:
        row = Cursor("q", 4, 0, GapPolicy(9.0), waiting_since=NOW, moved_at=NOW)
        stores.cursors.create(row)
        for floor, won, stands in ((5, False, None), (2, True, 2), (2, False, 2), (1, False, 2), (4, True, 4)):
            move = stores.cursors.set_floor("q", floor)
            assert move is not None
            assert (move.won, move.cursor) == (won, replace(row, floor=stands)), floor
            assert stores.cursors.get("q") == replace(row, floor=stands)

    def test_13_a_floor_never_makes_a_row(self, stores: Stores) -> None:
        assert stores.cursors.set_floor("q", 3) is None
        assert stores.cursors.get("q") is None

    def test_14_queues_that_moved_or_were_nudged_since_a_time_are_listed(self, stores: Stores) -> None:
        for number in range(20):
            stores.cursors.create(Cursor(f"old {number}", 4, 0, moved_at=NOW - 7_200))
            stores.cursors.create(Cursor(f"moved {number}", 4, 0, moved_at=NOW - 7_200))
            stores.cursors.create(Cursor(f"nudged {number}", 4, 0))
            stores.cursors.create(Cursor(f"new {number}", 4, 0, moved_at=NOW))
            stores.cursors.create(Cursor(f"unbegun {number}", -1, 0))
            stores.cursors.move(Cursor(f"moved {number}", 4, 0), 5, NOW + 1)
            stores.cursors.nudge(f"nudged {number}", NOW + 2)
        found = stores.cursors.active(NOW)
        assert found is not None
        listed = set(found.queues)
        while found.next is not None:
            found = stores.cursors.active(NOW, found.next)
            assert found is not None
            listed |= set(found.queues)
        assert listed == {f"{kind} {number}" for kind in ("moved", "nudged", "new") for number in range(20)}

    def test_16_the_rows_of_many_queues_are_read(self, stores: Stores) -> None:
        rows = [Cursor(f"queue {number}", number, 0, moved_at=NOW) for number in range(130)]
        for row in rows:
            stores.cursors.create(row)
        wanted = ["unknown", *(row.queue for row in rows), rows[0].queue]
        assert sorted(stores.cursors.rows_of(wanted).rows, key=lambda row: row.position) == rows
        assert stores.cursors.rows_of([]) == CursorPage(())

    def test_17_a_gap_is_noted_and_forgotten_only_where_it_was_seen(self, stores: Stores) -> None:
        row = Cursor("q", -3, -2, GapPolicy(9.0), waiting_since=NOW, moved_at=NOW + 1, floor=None)
        gap = Gap(range(-2, MAX_SEQ), NOW - 100.5, 3)
        assert not stores.cursors.note_gap(row, gap)
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert not stores.cursors.note_gap(replace(row, position=-2), gap)
        assert not stores.cursors.note_gap(replace(row, waiting_since=NOW + 1), gap)
        assert stores.cursors.note_gap(row, gap)
        assert stores.cursors.get("q") == replace(row, gap=gap)
        before_a_stray = Gap(range(-2, 7), NOW, 3, MAX_SEQ)
        for other in (before_a_stray, replace(before_a_stray, through=9), replace(gap, through=MAX_SEQ)):
            assert stores.cursors.note_gap(row, other)
            assert stores.cursors.get("q") == replace(row, gap=other)
        assert stores.cursors.note_gap(row, None)
        assert stores.cursors.get("q") == row


class HeadReaderContract:
    """What every HeadReader keeps."""

    def test_1_a_peek_shows_the_row_and_the_slot_as_they_stand(self, stores: Stores) -> None:
        head = stores.heads.peek("q", 0)
        assert (head.cursor, head.taken) == (None, False)
        stores.items.put(arrival("q", 0), NOW)
        stores.items.skip(tombstones("q", [1], "lost"), NOW)
        row = stores.cursors.create(Cursor("q", 1, 0)).cursor
        assert stores.heads.peek("q", 0) == stores.heads.peek("q", 1)
        assert (stores.heads.peek("q", 1).cursor, stores.heads.peek("q", 1).taken) == (row, True)
        assert not stores.heads.peek("q", 2).taken
