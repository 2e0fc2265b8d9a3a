"""CursorStore's and HeadReader's guarantees as tests, one a number; see `contracts`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.gaps import Gap
from stream_sort.model.message import MAX_SEQ
from stream_sort.model.records import Cursor, CursorPage
from stream_sort.testing.contract_examples import NOW, arrival, tombstones

if TYPE_CHECKING:
    from stream_sort.ports import Home


class CursorStoreContract:
    """The guarantees of every CursorStore."""

    def test_1_a_row_reads_as_it_was_written(self, stores: Home) -> None:
        row = Cursor("q", 4, 2, GapPolicy(1.5), waiting_since=NOW, moved_at=NOW + 1, floor=3)
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.get("q") == row

    def test_2_a_row_is_created_once(self, stores: Home) -> None:
        first = Cursor("q", 4, 0)
        assert stores.cursors.create(first).won
        again = stores.cursors.create(Cursor("q", 9, 0))
        assert (again.won, again.cursor) == (False, first)

    def test_3_a_move_needs_the_old_position(self, stores: Home) -> None:
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

    def test_3_a_move_needs_the_old_count_of_withdrawals(self, stores: Home) -> None:
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

    def test_4_a_move_never_makes_a_row(self, stores: Home) -> None:
        assert stores.cursors.move(Cursor("q", -1, 0), 3, NOW) is None
        assert stores.cursors.get("q") is None

    def test_5_a_restart_needs_an_untouched_row(self, stores: Home) -> None:
        row = Cursor("q", -1, 0)
        assert stores.cursors.restart(row, 10) is None
        stores.cursors.create(row)
        moved = stores.cursors.restart(row, 10)
        assert moved is not None
        assert (moved.won, moved.cursor.position, moved.cursor.first_seq) == (True, 9, 10)
        again = stores.cursors.restart(row, 20)
        assert again is not None
        assert (again.won, again.cursor.first_seq) == (False, 10)

    def test_6_the_mark_changes_only_where_it_was_seen(self, stores: Home) -> None:
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

    def test_6_to_clear_the_mark_forgets_the_gap(self, stores: Home) -> None:
        row = Cursor("q", 4, 0, waiting_since=NOW, gap=Gap(range(5, 7), NOW))
        stores.cursors.create(row)
        assert stores.cursors.set_waiting(row, -NOW - 1)
        doubtful = replace(row, waiting_since=-NOW - 1)
        assert stores.cursors.get("q") == doubtful
        assert stores.cursors.set_waiting(doubtful, None)
        assert stores.cursors.get("q") == replace(doubtful, waiting_since=None, gap=None)

    def test_7_a_policy_changes_nothing_else(self, stores: Home) -> None:
        row = Cursor("q", 4, 0, waiting_since=NOW)
        assert not stores.cursors.set_policy("q", GapPolicy(3.0))
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.set_policy("q", GapPolicy(3.0))
        assert stores.cursors.get("q") == replace(row, policy=GapPolicy(3.0))
        assert stores.cursors.set_policy("q", None)
        assert stores.cursors.get("q") == row

    def test_8_a_nudge_counts_and_changes_nothing_else(self, stores: Home) -> None:
        row = Cursor("q", 4, 0)
        assert not stores.cursors.nudge("q", NOW)
        assert stores.cursors.get("q") is None
        stores.cursors.create(row)
        assert stores.cursors.nudge("q", NOW)
        assert stores.cursors.nudge("q", NOW + 1)
        assert stores.cursors.get("q") == replace(row, nudges=2, nudged_at=NOW + 1)

    def test_9_waiting_queues_are_listed_longest_first(self, stores: Home) -> None:
        for queue, since in (("new", NOW + 9), ("old", NOW), ("mid", NOW + 5), ("none", None)):
            stores.cursors.create(Cursor(queue, -1, 0, waiting_since=since))
        assert stores.cursors.waiting(NOW + 5).queues == ("old", "mid")
        assert stores.cursors.waiting(NOW - 1).queues == ()

    def test_9_every_waiting_queue_is_listed_whatever_it_is_called(self, stores: Home) -> None:
        names = {f"queue {number}" for number in range(30)}
        for name in names:
            stores.cursors.create(Cursor(name, -1, 0, waiting_since=NOW))
        assert {*stores.cursors.waiting(NOW).queues} == names

    def test_10_every_row_is_listed(self, stores: Home) -> None:
        names = {f"queue {number}" for number in range(30)}
        for name in names:
            stores.cursors.create(Cursor(name, -1, 0))
        page = stores.cursors.queues()
        listed = set(page.queues)
        while page.next is not None:
            page = stores.cursors.queues(page.next)
            listed |= set(page.queues)
        assert listed == names

    def test_11_rows_are_listed_in_pages_of_a_limit(self, stores: Home) -> None:
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

    def test_12_a_floor_rises_up_to_the_position_and_never_goes_back(self, stores: Home) -> None:
        row = Cursor("q", 4, 0, GapPolicy(9.0), waiting_since=NOW, moved_at=NOW)
        stores.cursors.create(row)
        for floor, won, stands in ((5, False, None), (2, True, 2), (2, False, 2), (1, False, 2), (4, True, 4)):
            move = stores.cursors.set_floor("q", floor)
            assert move is not None
            assert (move.won, move.cursor) == (won, replace(row, floor=stands)), floor
            assert stores.cursors.get("q") == replace(row, floor=stands)

    def test_13_a_floor_never_makes_a_row(self, stores: Home) -> None:
        assert stores.cursors.set_floor("q", 3) is None
        assert stores.cursors.get("q") is None

    def test_14_queues_that_moved_or_were_nudged_since_a_time_are_listed(self, stores: Home) -> None:
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

    def test_16_the_rows_of_many_queues_are_read(self, stores: Home) -> None:
        rows = [Cursor(f"queue {number}", number, 0, moved_at=NOW) for number in range(130)]
        for row in rows:
            stores.cursors.create(row)
        wanted = ["unknown", *(row.queue for row in rows), rows[0].queue]
        assert sorted(stores.cursors.rows_of(wanted).rows, key=lambda row: row.position) == rows
        assert stores.cursors.rows_of([]) == CursorPage(())

    def test_17_a_gap_is_noted_and_forgotten_only_where_it_was_seen(self, stores: Home) -> None:
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
    """The guarantees of every HeadReader."""

    def test_1_a_peek_shows_the_row_and_the_slot_as_they_stand(self, stores: Home) -> None:
        head = stores.heads.peek("q", 0)
        assert (head.cursor, head.taken) == (None, False)
        stores.items.put(arrival("q", 0), NOW)
        stores.items.skip(tombstones("q", [1], "lost"), NOW)
        row = stores.cursors.create(Cursor("q", 1, 0)).cursor
        assert stores.heads.peek("q", 0) == stores.heads.peek("q", 1)
        assert (stores.heads.peek("q", 1).cursor, stores.heads.peek("q", 1).taken) == (row, True)
        assert not stores.heads.peek("q", 2).taken
