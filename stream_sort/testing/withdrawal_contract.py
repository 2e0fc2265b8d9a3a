"""The guarantees of WithdrawalStore as tests, one a number; see `contracts`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.records import Cursor
from stream_sort.model.withdrawal import Withdrawal
from stream_sort.testing.contract_examples import EVERY_TYPE, NOW, arrival, tombstones

if TYPE_CHECKING:
    from stream_sort.ports import Home

ROW = Cursor("q", 3, 0, GapPolicy(9.0), waiting_since=NOW, moved_at=NOW + 1)


def wanted(seq: int, number: int = 1, reason: str = "a time") -> Withdrawal:
    """Return a withdrawal that is asked for."""
    return Withdrawal("q", number, seq, reason, NOW)


class WithdrawalStoreContract:
    """The guarantees of every WithdrawalStore."""

    def test_1_a_message_leaves_its_slot_and_is_kept_with_its_reason(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put(arrival("q", 7, body="stray"), NOW)
        done = stores.withdrawals.withdraw(ROW, wanted(7))
        expected = replace(wanted(7), message={"queue": "q", "seq": 7, "body": "stray"})
        assert done == expected
        assert stores.items.highest("q") is None
        assert list(stores.withdrawals.page("q", 0, 10)) == [expected]
        assert stores.items.put(arrival("q", 7, body="new"), NOW) is None

    def test_2_an_empty_slot_and_a_tombstone_stay_as_they_are(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.skip(tombstones("q", [7], "lost"), NOW)
        for seq in (6, 7):
            assert stores.withdrawals.withdraw(ROW, wanted(seq)) is None
        assert stores.items.look("q", -1, 10).seqs == (7,)
        assert (stores.cursors.get("q"), stores.withdrawals.last("q")) == (ROW, 0)

    def test_2_a_message_behind_a_filled_slot_stays(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put_many([arrival("q", seq) for seq in (6, 7)], NOW)
        stores.items.skip(tombstones("q", [9], "lost"), NOW)
        stores.items.put(arrival("q", 10), NOW)
        for seq in (7, 10):
            assert stores.withdrawals.withdraw(ROW, wanted(seq)) is None
        assert stores.items.look("q", -1, 10).seqs == (6, 7, 9, 10)
        assert (stores.cursors.get("q"), stores.withdrawals.last("q")) == (ROW, 0)

    def test_3_what_is_released_or_comes_next_stays(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        # Trimmed up to seq 3: the slot before these is empty, and released.
        stores.items.put_many([arrival("q", seq) for seq in (2, 4)], NOW)
        for seq in (2, 4):
            assert stores.withdrawals.withdraw(ROW, wanted(seq)) is None
        assert stores.items.look("q", -1, 10).seqs == (2, 4)

    def test_3_another_count_of_withdrawals_or_no_row_is_refused(self, stores: Home) -> None:
        stores.items.put_many([arrival("q", seq) for seq in (7, 9)], NOW)
        assert stores.withdrawals.withdraw(ROW, wanted(7)) is None
        stores.cursors.create(ROW)
        assert stores.withdrawals.withdraw(replace(ROW, withdrawals=1), wanted(7)) is None
        assert stores.withdrawals.withdraw(ROW, wanted(7)) is not None
        assert stores.withdrawals.withdraw(ROW, wanted(9, 2)) is None
        assert stores.withdrawals.withdraw(replace(ROW, withdrawals=1), wanted(9, 2)) is not None
        assert stores.items.highest("q") is None

    def test_4_the_row_counts_it_and_stays_as_it_is_otherwise(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put(arrival("q", 7), NOW)
        stores.withdrawals.withdraw(ROW, wanted(7, 5))
        assert stores.cursors.get("q") == replace(ROW, withdrawals=5)

    def test_5_a_message_is_kept_as_it_was(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put(arrival("q", 7, seen=3, **EVERY_TYPE), NOW)
        stores.withdrawals.withdraw(ROW, wanted(7))
        (kept,) = stores.withdrawals.page("q", 0, 10)
        expected = {"queue": "q", "seq": 7, **EVERY_TYPE}
        assert repr(sorted(kept.message.items())) == repr(sorted(expected.items()))

    def test_5_nothing_that_is_kept_is_replaced(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put_many([arrival("q", seq) for seq in (7, 9)], NOW)
        stores.withdrawals.withdraw(ROW, wanted(7))
        assert stores.withdrawals.withdraw(replace(ROW, withdrawals=1), wanted(9, 1)) is None
        assert [one.seq for one in stores.withdrawals.page("q", 0, 10)] == [7]
        assert stores.items.look("q", -1, 10).seqs == (9,)

    def test_6_pages_are_in_order_and_end_when_there_is_no_more(self, stores: Home) -> None:
        assert list(stores.withdrawals.page("q", 0, 10)) == []
        self._withdraw_some(stores)
        for after, limit, numbers in ((0, 10, [1, 2, 3]), (1, 10, [2, 3]), (0, 2, [1, 2]), (3, 10, [])):
            assert [one.number for one in stores.withdrawals.page("q", after, limit)] == numbers
        assert list(stores.withdrawals.page("other", 0, 10)) == []

    def test_7_the_last_number_is_known(self, stores: Home) -> None:
        assert stores.withdrawals.last("q") == 0
        self._withdraw_some(stores)
        assert (stores.withdrawals.last("q"), stores.withdrawals.last("other")) == (3, 0)

    def _withdraw_some(self, stores: Home) -> None:
        stores.cursors.create(ROW)
        stores.items.put_many([arrival("q", seq) for seq in (9, 7, 11)], NOW)
        for number, seq in enumerate((9, 7, 11), 1):
            assert stores.withdrawals.withdraw(replace(ROW, withdrawals=number - 1), wanted(seq, number)) is not None
