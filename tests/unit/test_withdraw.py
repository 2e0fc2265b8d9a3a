from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import (
    CursorLost,
    InvalidInput,
    NotWithdrawn,
    QueueNotFound,
    StoreUnavailable,
    StreamSorter,
    Sweeper,
    Withdrawal,
)
from stream_sort.insight.explanation import explanation_of
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.outcomes import Status
from stream_sort.model.records import Arrival
from stream_sort.ports import Homes
from stream_sort.sorter import Sorter
from tests.unit.queues import beside, message, tables_of

if TYPE_CHECKING:
    from stream_sort.model.records import Cursor

TIME = 1_700_000_000_000


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def test_a_time_in_place_of_a_seq_has_a_way_out(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(3))
    sorter.put(message(TIME, body="stray"))
    done = sorter.withdraw("q", TIME, reason="the producer sent a time")
    assert (done.queue, done.seq, done.number, done.reason) == ("q", TIME, 1, "the producer sent a time")
    assert done.message == message(TIME, body="stray")
    assert sorter.withdrawn("q") == [done]
    assert sorter.gaps("q") == []
    assert sorter.explain("q").remedy == "nothing waits"
    assert sorter.put(message(3)).new == 3
    assert list(sorter.read("q")) == [message(seq) for seq in range(4)]


def test_a_put_of_a_withdrawn_seq_is_a_new_message(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(2, body="wrong")])
    sorter.withdraw("q", 2)
    assert sorter.put(message(2, body="right")).status is Status.ACCEPTED
    assert sorter.put(message(1)).new == 2
    assert list(sorter.read("q")) == [message(0), message(1), message(2, body="right")]
    assert [one.message for one in sorter.withdrawn("q")] == [message(2, body="wrong")]


def test_a_stray_run_is_withdrawn_from_its_lowest_seq_on(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in (0, *range(50, 55)))
    for seq in range(51, 55):
        with pytest.raises(NotWithdrawn, match=rf"seq {seq - 1} before it is stored.*lowest seq on: 50") as caught:
            sorter.withdraw("q", seq)
        assert caught.value.lowest == 50
    assert [sorter.withdraw("q", seq).number for seq in range(50, 55)] == [1, 2, 3, 4, 5]
    assert sorter.gaps("q") == []


def test_the_lowest_of_a_long_run_is_found_page_by_page(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(40, 40 + 3_500))
    with pytest.raises(NotWithdrawn) as caught:
        sorter.withdraw("q", 3_539)
    assert caught.value.lowest == 40
    with pytest.raises(NotWithdrawn) as caught:
        sorter.withdraw("q", 1_041)
    assert caught.value.lowest == 40


@pytest.mark.parametrize("seq", [0, 2])
def test_what_is_released_cannot_be_withdrawn(sorter: StreamSorter, seq: int) -> None:
    sorter.put_many(message(seq) for seq in range(3))
    with pytest.raises(NotWithdrawn, match="it is released; the queue is at position 2"):
        sorter.withdraw("q", seq)
    assert sorter.withdrawn("q") == []
    assert len(list(sorter.read("q"))) == 3


def test_what_is_released_behind_a_trim_cannot_be_withdrawn(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(6))
    sorter.trim("q", 3, control_table=None)
    for seq in (2, 4):
        with pytest.raises(NotWithdrawn, match="it is released"):
            sorter.withdraw("q", seq)
    assert [one["seq"] for one in sorter.read("q")] == [4, 5]


def test_what_a_dead_writer_left_to_be_released_is_released_and_not_withdrawn(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    for seq in (1, 2):
        tables_of(sorter).home().items.put(Arrival(check_message(message(seq), KeyNames()), 0), 0.0)
    with pytest.raises(NotWithdrawn, match="it is released; the queue is at position 2"):
        sorter.withdraw("q", 2)


def test_a_tombstone_and_an_empty_slot_are_named(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(9)])
    sorter.skip("q", 5, reason="lost")
    with pytest.raises(NotWithdrawn, match=r"it was skipped \(lost\) and holds no message"):
        sorter.withdraw("q", 5)
    with pytest.raises(NotWithdrawn, match="nothing is stored there"):
        sorter.withdraw("q", 7)
    sorter.put(message(6))
    with pytest.raises(NotWithdrawn, match="seq 5 was skipped, and what follows"):
        sorter.withdraw("q", 6)


def test_what_lies_before_the_start_is_named() -> None:
    sorter = StreamSorter.in_memory(first_seq=10)
    sorter.put(message(10))
    tables_of(sorter).home().items.put(Arrival(check_message(message(3), KeyNames()), None), 0.0)
    with pytest.raises(NotWithdrawn, match="before the start of the queue at 10"):
        sorter.withdraw("q", 3)


def test_a_queue_that_never_was_and_one_that_lost_its_row_are_named(sorter: StreamSorter) -> None:
    for call in (lambda: sorter.withdraw("typo", 5), lambda: sorter.withdrawn("typo")):
        with pytest.raises(QueueNotFound):
            call()
    assert tables_of(sorter).cursors == {}
    sorter.put_many([message(0), message(5)])
    del tables_of(sorter).cursors["q"]
    with pytest.raises(CursorLost):
        beside(sorter).withdraw("q", 5)


@pytest.mark.parametrize("reason", ["x" * 257, 5, None, "\ud800"])
def test_a_reason_that_cannot_be_kept_is_refused(sorter: StreamSorter, reason: Any) -> None:
    sorter.put(message(5))
    with pytest.raises(InvalidInput, match="a reason is text"):
        sorter.withdraw("q", 5, reason)
    with pytest.raises(InvalidInput, match="seq is an int"):
        sorter.withdraw("q", "5")  # type: ignore[arg-type]
    assert sorter.withdrawn("q") == []


def test_what_others_wrote_to_a_queue_without_a_row_can_be_withdrawn(sorter: StreamSorter) -> None:
    tables_of(sorter).home().items.put(Arrival(check_message(message(TIME), KeyNames()), None), 0.0)
    assert sorter.withdraw("q", TIME).seq == TIME
    assert sorter.put(message(0)).new == 0


def test_a_withdrawal_made_again_answers_what_the_first_one_did(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(5), message(8)])
    first = sorter.withdraw("q", 5, reason="a time")
    sorter.withdraw("q", 8, reason="a time")
    assert sorter.withdraw("q", 5, reason="a time") == first
    with pytest.raises(NotWithdrawn, match=r"it was withdrawn before \(a time\), as number 1"):
        sorter.withdraw("q", 5, reason="another")
    assert len(sorter.withdrawn("q")) == 2


class Meddling:
    """A port in which something happens just before, or after, one of its calls."""

    def __init__(self, port: Any, name: str, before: Any = None, after: Any = None) -> None:
        self._port, self._name, self._before, self._after = port, name, before, after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        if name != self._name:
            return call

        def meddled(*args: Any) -> Any:
            before, self._before = self._before, None
            if before is not None:
                before()
            answer = call(*args)
            after, self._after = self._after, None
            if after is not None:
                after()
            return answer

        return meddled


def with_ports(sorter: StreamSorter, **ports: Any) -> Sorter:
    return Sorter(Homes(replace(sorter.stores, **ports)), sorter.options, sorter.clock)


@pytest.mark.parametrize("call", ["put", "put_many"])
def test_a_writer_never_moves_the_cursor_over_a_message_of_its_own_that_was_withdrawn(
    sorter: StreamSorter, call: str
) -> None:
    sorter.put_many(message(seq) for seq in range(4))

    def withdraw() -> None:
        stores.items.delete("q", 3, 4, 1)
        other.withdraw("q", 5)
        stores.items.put(Arrival(check_message(message(4), KeyNames()), 3), 0.0)

    other, stores = beside(sorter), tables_of(sorter).home()
    # It has stored 4, 5 and 6, one by one, and is about to move the cursor; 5 was withdrawn before 4 was stored.
    writer = with_ports(sorter, cursors=Meddling(sorter.stores.cursors, "move", before=withdraw))
    if call == "put_many":
        result = writer.put_many([message(5), message(6), message(4)])
        assert result.outcomes == [Status.ACCEPTED] * 3
    else:
        writer.put(message(5))
        writer.put(message(6))
        assert writer.put(message(4)).accepted
    assert sorter.position("q") == 4
    assert sorter.gaps("q") == [range(5, 6)]
    assert sorter.put(message(5)).new == 6


def test_a_remembered_row_from_before_a_withdrawal_costs_one_look_and_no_hole(sorter: StreamSorter) -> None:
    writer = beside(sorter)
    writer.put_many([message(0), message(2), message(4)])
    sorter.withdraw("q", 2)
    assert writer.put(message(1)).new == 1
    assert sorter.gaps("q") == [range(2, 4)]
    assert writer.put_many([message(3), message(2)]).released == 3


def test_a_message_that_is_freed_while_it_is_withdrawn_stays(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(2)])
    meddling = Meddling(sorter.stores.withdrawals, "withdraw", before=lambda: sorter.put(message(1)))
    with pytest.raises(NotWithdrawn, match="it is released; the queue is at position 2"):
        with_ports(sorter, withdrawals=meddling).withdraw("q", 2)
    assert sorter.withdrawn("q") == []


def test_another_withdrawal_at_the_same_moment_only_makes_it_try_again(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(4), message(8)])
    meddling = Meddling(sorter.stores.withdrawals, "withdraw", before=lambda: sorter.withdraw("q", 8))
    assert with_ports(sorter, withdrawals=meddling).withdraw("q", 4).number == 2
    assert [(one.number, one.seq) for one in sorter.withdrawn("q")] == [(1, 8), (2, 4)]


def test_a_lost_answer_is_told_as_unknown_and_the_same_call_finds_out(sorter: StreamSorter) -> None:
    def lose() -> None:
        raise StoreUnavailable("the answer was lost")

    sorter.put_many([message(0), message(4)])
    losing = with_ports(sorter, withdrawals=Meddling(sorter.stores.withdrawals, "withdraw", after=lose))
    with pytest.raises(StoreUnavailable):
        losing.withdraw("q", 4, reason="a time")
    assert losing.withdraw("q", 4, reason="a time").number == 1
    assert len(sorter.withdrawn("q")) == 1


def test_a_cursor_row_that_counts_less_than_there_are_replaces_none(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in (0, 4, 6, 8))
    sorter.withdraw("q", 4)
    sorter.withdraw("q", 6)
    rows = tables_of(sorter).cursors
    rows["q"] = replace(rows["q"], withdrawals=0)
    assert sorter.withdraw("q", 8).number == 3
    assert [one.seq for one in sorter.withdrawn("q")] == [4, 6, 8]
    assert rows["q"].withdrawals == 3


def test_a_row_that_is_put_back_counts_the_withdrawals_there_were(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in (0, 4, 6))
    sorter.withdraw("q", 4)
    del tables_of(sorter).cursors["q"]
    beside(sorter).recover("q", control_table=None, position=0)
    row: Cursor = tables_of(sorter).cursors["q"]
    assert row.withdrawals == 1


def test_withdrawals_of_one_queue_are_not_those_of_another(sorter: StreamSorter) -> None:
    for queue in ("a", "b"):
        sorter.put(message(5, queue=queue))
        assert isinstance(sorter.withdraw(queue, 5), Withdrawal)
    assert [one.queue for one in sorter.withdrawn("a")] == ["a"]


def test_a_skip_of_a_trillion_seqs_is_refused_and_names_the_way_out(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(TIME)])
    for seqs in (range(1, TIME), range(TIME, -(2**62), -1), range(2**63 - 1, -(2**62), -1)):
        with pytest.raises(InvalidInput, match=r"more than 1,000,000 seqs at once.*withdraw\('q', seq\)"):
            sorter.skip("q", seqs)
    assert sorter.explain("q").skipped == []


@pytest.mark.parametrize("stray", [10_002, 3_000_000, TIME, 2**63 - 1])
def test_explain_of_a_stray_seq_says_withdraw_and_no_skip(sorter: StreamSorter, stray: int) -> None:
    sorter.put_many([message(0), message(stray)])
    remedy = sorter.explain("q").remedy
    assert f"withdraw('q', {stray})" in remedy
    assert "skip(" not in remedy
    sorter.withdraw("q", stray)
    assert (sorter.explain("q").remedy, sorter.explain("q").withdrawn) == ("nothing waits", 1)


def test_a_sweep_skips_no_gap_before_a_message_that_was_withdrawn() -> None:
    sorter = StreamSorter.in_memory(gap_policy="skip after 0 seconds")
    sorter.put_many([message(0), message(5)])
    sorter.withdraw("q", 5)
    done = Sweeper(sorter).sweep()
    assert (done.skipped, sorter.position("q")) == ([], 0)
    assert tables_of(sorter).cursors["q"].waiting_since is None


def test_a_queue_of_nothing_but_strays_may_start_elsewhere_once_they_are_withdrawn(sorter: StreamSorter) -> None:
    sorter.put(message(TIME))
    sorter.withdraw("q", TIME)
    sorter.open("q", first_seq=7)
    assert sorter.put(message(7)).new == 7


def test_a_stray_behind_a_skipped_seq_is_not_said_to_be_withdrawn_from_that_seq_on(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(10**12)])
    sorter.skip("q", range(10**12 - 1_200, 10**12))
    with pytest.raises(NotWithdrawn, match=rf"seq {10**12 - 1_200} was skipped.*put what is missing") as caught:
        sorter.withdraw("q", 10**12)
    assert caught.value.lowest is None
    remedy = sorter.explain("q").remedy
    assert "withdraw('q'" not in remedy
    assert f"Seq {10**12 - 1_200} behind them was skipped" in remedy


@pytest.mark.parametrize("beyond", [10**12 + 5, 2 * 10**12], ids=["a short gap", "a second long gap"])
def test_explain_names_the_stray_that_frees_a_queue_although_a_skipped_seq_stands_before_it(
    sorter: StreamSorter, beyond: int
) -> None:
    sorter.put(message(0))
    sorter.skip("q", 10**12)
    sorter.put(message(beyond))
    found = explanation_of(sorter.sources(), "q", lambda *words, options=(): " ".join([*words, *options]))
    assert found.commands == [f"withdraw q {beyond}"]
    assert f"withdraw('q', {beyond})" in found.state.remedy
    sorter.withdraw("q", beyond)
    assert sorter.explain("q").remedy == "nothing waits"


def test_explain_names_no_stray_beyond_a_message_that_nobody_can_withdraw(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    sorter.skip("q", 10**12)
    sorter.put_many([message(10**12 + 1), message(2 * 10**12)])
    found = explanation_of(sorter.sources(), "q", lambda *words, options=(): " ".join([*words, *options]))
    assert (found.commands, "put what is missing" in found.state.remedy) == ([], True)


def test_a_warm_process_does_not_see_disorder_for_ever_after_a_stray_was_withdrawn_by_another(
    sorter: StreamSorter,
) -> None:
    other = beside(sorter)
    sorter.put_many([message(0), message(TIME)])
    other.withdraw("q", TIME)
    sorter.put_many([message(0)])
    Sweeper(other).sweep()
    counted: Counter[str] = Counter()
    for seq in range(1, 9, 2):
        counted.update(sorter.put_many([message(seq), message(seq + 1)]).out_of_order)
        row = sorter.stores.cursors.get("q")
        assert row is not None
        assert row.waiting_since is None, "nothing waits"
    assert counted == Counter()


def test_a_repeat_that_sees_a_withdrawal_still_sees_what_else_waits(sorter: StreamSorter) -> None:
    other = beside(sorter)
    sorter.put_many([message(0), message(TIME), message(TIME + 7)])
    other.withdraw("q", TIME)
    sorter.put_many([message(0)])
    assert sorter.put_many([message(1), message(2)]).out_of_order == {"q": 2}
