from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import (
    CursorLost,
    GapPolicy,
    InvalidInput,
    InvalidMessage,
    InvalidQueue,
    MissingItems,
    QueueExists,
    QueueNotFound,
    SequenceConflict,
    StreamSorter,
)

if TYPE_CHECKING:
    from stream_sort.stores.memory import MemoryTables


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def message(seq: int, queue: str = "q", **fields: Any) -> dict[str, Any]:
    return {"queue": queue, "seq": seq, **fields}


def tables_of(sorter: StreamSorter) -> MemoryTables:
    return sorter.stores.cursors._tables  # type: ignore[attr-defined]


def beside(sorter: StreamSorter, **options: Any) -> StreamSorter:
    """Another process on the same tables."""
    other = StreamSorter.in_memory(**options)
    tables = tables_of(other)
    tables.queues, tables.cursors = tables_of(sorter).queues, tables_of(sorter).cursors
    return other


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_i2_every_order_of_arrival_is_released_whole(sorter: StreamSorter, order: tuple[int, ...]) -> None:
    released = [len(sorter.put(message(seq))) for seq in order]
    assert sum(released) == 4
    assert sorter.position("q") == 3
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 2, 3]


def test_a_message_out_of_order_moves_nothing_and_the_missing_one_releases_all_behind_it(sorter: StreamSorter) -> None:
    early = sorter.put(message(1))
    assert (early.moved, early.old, early.new, early.status) == (False, -1, -1, "accepted")
    late = sorter.put(message(0))
    assert (late.moved, late.old, late.new, len(late), late.status) == (True, -1, 1, 2, "accepted")


def test_i6_the_same_message_again_is_a_duplicate(sorter: StreamSorter) -> None:
    sorter.put(message(0, body=[1, 2.0]))
    again = sorter.put(message(0, body=[1, 2.0]))
    assert (again.status, again.moved) == ("duplicate", False)


def test_i6_another_message_in_the_same_slot_is_a_conflict_and_the_first_stays(sorter: StreamSorter) -> None:
    sorter.put(message(0, body=1))
    assert sorter.put(message(0, body=1.0)).status == "conflict"
    assert list(sorter.read("q")) == [message(0, body=1)]


def test_i6_a_conflict_can_raise_after_it_advanced() -> None:
    strict = StreamSorter.in_memory(on_conflict="raise")
    stuck = beside(strict)
    strict.put(message(0))
    stuck.stores.items.put_many([], 0.0)
    strict.put(message(2, body="first"))
    tables_of(strict).stores().items.skip("q", [1], "by other means", 0.0)
    with pytest.raises(SequenceConflict) as caught:
        strict.put(message(2, body="second"))
    assert (caught.value.queue, caught.value.seq) == ("q", 2)
    assert strict.position("q") == 2


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


def test_skip_leaves_stored_messages_and_released_ranges_alone(sorter: StreamSorter) -> None:
    sorter.put_many([message(0), message(1), message(3)])
    assert sorter.skip("q", [0, 1, 3]).skipped == ()
    assert sorter.skip("q", 2).skipped == (2,)
    assert [found["seq"] for found in sorter.read("q")] == [0, 1, 3]


@pytest.mark.parametrize("seqs", ["abc", [True], [1.5], [2**70], None, 1.5])
def test_skip_refuses_what_is_no_seq(sorter: StreamSorter, seqs: Any) -> None:
    with pytest.raises(InvalidInput):
        sorter.skip("q", seqs)


def test_skip_refuses_a_reason_that_would_not_fit(sorter: StreamSorter) -> None:
    with pytest.raises(InvalidInput, match="256 bytes"):
        sorter.skip("q", 0, reason="é" * 200)
    with pytest.raises(InvalidInput, match="256 bytes"):
        sorter.skip("q", 0, reason="\ud800")


def test_a_released_range_with_a_hole_raises_where_it_is_met(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(5))
    held = tables_of(sorter).queues["q"]
    del held.slots[2]
    held.seqs.remove(2)
    reading = sorter.read("q")
    assert [next(reading)["seq"], next(reading)["seq"]] == [0, 1]
    with pytest.raises(MissingItems) as caught:
        next(reading)
    assert caught.value.missing == [range(2, 3)]


def test_read_takes_a_half_open_range(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in range(10))
    assert [found["seq"] for found in sorter.read("q", after=3, through=6)] == [4, 5, 6]
    assert list(sorter.read("q", after=9)) == []
    with pytest.raises(MissingItems):
        list(sorter.read("q", after=8, through=12))
    with pytest.raises(InvalidInput):
        sorter.read("q", after="3")  # type: ignore[arg-type]


def test_what_was_read_or_put_can_be_changed_without_changing_the_store(sorter: StreamSorter) -> None:
    document = message(0, body=[1])
    sorter.put(document)
    document["body"].append(2)
    next(sorter.read("q"))["body"].append(3)
    assert list(sorter.read("q")) == [message(0, body=[1])]


def test_gaps_and_explain_say_what_is_missing_and_what_would_free_it(sorter: StreamSorter) -> None:
    sorter.put_many(message(seq) for seq in (0, 3, 4, 7))
    assert sorter.gaps("q") == [range(1, 3), range(5, 7)]
    state = sorter.explain("q")
    assert (state.position, state.highest_stored, state.stored_beyond) == (0, 7, 3)
    assert state.gaps == sorter.gaps("q")
    assert state.waiting_since is not None
    assert "skip('q', range(1, 3))" in state.remedy
    assert state.complete
    assert not sorter.explain("q", limit=2).complete
    for limit in (0, -1, "x", None):
        with pytest.raises(InvalidInput, match="limit"):
            sorter.explain("q", limit=limit)  # type: ignore[arg-type]


def test_explain_of_a_whole_and_of_an_unknown_queue_says_that_nothing_waits(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    for queue in ("q", "unknown"):
        state = sorter.explain(queue)
        assert (state.gaps, state.waiting_since, state.remedy.startswith("nothing waits")) == ([], None, True)
    assert tables_of(sorter).cursors.keys() == {"q"}


def test_explain_of_a_stuck_queue_says_advance(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    tables_of(sorter).stores().items.skip("q", [1], "by other means", 0.0)
    assert "advance('q') frees it" in sorter.explain("q").remedy
    assert sorter.advance("q").new == 1


def test_a_queue_can_start_elsewhere_until_it_has_begun(sorter: StreamSorter) -> None:
    sorter.put(message(1000))
    assert sorter.open("q", first_seq=1000).new == 1000
    sorter.open("q", first_seq=1000)
    with pytest.raises(QueueExists):
        sorter.open("q", first_seq=2000)
    with pytest.raises(InvalidMessage, match="starts at 1000"):
        sorter.put(message(999))
    assert [found["seq"] for found in sorter.read("q")] == [1000]


def test_a_queue_can_start_below_the_default() -> None:
    sorter = StreamSorter.in_memory(first_seq=1)
    with pytest.raises(InvalidMessage, match="starts at 1"):
        sorter.put(message(0))
    sorter.open("q", first_seq=-5)
    assert sorter.put(message(-5)).new == -5
    assert list(sorter.read("q", after=-100)) == list(sorter.read("q")) == [message(-5)]


def test_i5_a_queue_does_not_start_above_a_stored_message(sorter: StreamSorter) -> None:
    sorter.put(message(5))
    with pytest.raises(QueueExists, match="seq 5 is stored"):
        sorter.open("q", first_seq=6)


@pytest.mark.parametrize("waiting", [False, True])
def test_i5_a_message_that_comes_while_its_queue_is_opened_above_it_is_not_accepted_in_vain(
    sorter: StreamSorter, *, waiting: bool
) -> None:
    if waiting:
        sorter.put(message(15))
    other = beside(sorter)
    look = sorter.stores.items.look
    came: list[Any] = []

    def interrupted(queue: str, after: int, limit: int) -> Any:
        answer = look(queue, after, limit)
        if not came:
            came.append(True)
            came.append(other.put(message(3)).status)
        return answer

    sorter.stores.items.look = interrupted  # type: ignore[method-assign]
    with pytest.raises(QueueExists, match="seq 3 is stored"):
        sorter.open("q", first_seq=10)
    assert came == [True, "accepted"]
    assert sorter.gaps("q")[0] == range(3)
    assert tables_of(sorter).cursors["q"].waiting_since is not None


def test_i5_a_message_stored_just_before_its_queue_was_opened_above_it_is_refused(sorter: StreamSorter) -> None:
    sorter.set_policy("q", "wait")
    other = beside(sorter)
    put = other.stores.items.put

    def slowly(arrival: Any, now: float) -> Any:
        # The opener looked before the message was stored, and is done before its writer reads the row.
        sorter.open("q", first_seq=10)
        return put(arrival, now)

    other.stores.items.put = slowly  # type: ignore[method-assign]
    with pytest.raises(InvalidMessage, match="starts at 10"):
        other.put(message(3))
    assert sorter.put(message(10)).new == 10


def test_a_begun_queue_cannot_start_elsewhere(sorter: StreamSorter) -> None:
    sorter.put(message(0))
    with pytest.raises(QueueExists, match="its position is 0"):
        sorter.open("q", first_seq=10)


def test_a_policy_is_kept_for_a_queue_that_has_not_begun(sorter: StreamSorter) -> None:
    assert sorter.policy("q") == GapPolicy.WAIT
    sorter.set_policy("q", "skip after 30 seconds")
    assert sorter.policy("q") == GapPolicy(30)
    sorter.set_policy("q", skip_after=5)
    sorter.put(message(0))
    assert beside(sorter).policy("q") == GapPolicy(5)
    assert sorter.set_policy("q", GapPolicy.WAIT) == GapPolicy.WAIT
    for bad in ({}, {"policy": "wait", "skip_after": 3}, {"policy": 5}):
        with pytest.raises(InvalidInput):
            sorter.set_policy("q", **bad)  # type: ignore[arg-type]


def test_a_nudge_touches_the_row_of_a_known_queue_only(sorter: StreamSorter) -> None:
    with pytest.raises(QueueNotFound):
        sorter.nudge("q")
    sorter.put(message(0))
    sorter.nudge("q")
    assert tables_of(sorter).cursors["q"].nudges == 1
    assert sorter.position("q") == 0


@pytest.mark.parametrize("call", ["advance", "position", "gaps", "explain", "read", "nudge", "policy"])
def test_i9_every_question_refuses_a_bad_queue_name(sorter: StreamSorter, call: str) -> None:
    with pytest.raises(InvalidQueue):
        getattr(sorter, call)("a\nb")


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
        del trimmed.slots[seq]
        trimmed.seqs.remove(seq)
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


def test_a_stale_hint_is_not_trusted_when_old_items_were_trimmed(sorter: StreamSorter) -> None:
    slow = beside(sorter)
    slow.put(message(0))
    sorter.put_many(message(seq) for seq in range(1, 6))
    held = tables_of(sorter).queues["q"]
    for seq in range(5):
        del held.slots[seq]
        held.seqs.remove(seq)
    assert slow.put(message(6)).new == 6


def test_a_backlog_is_released_in_bounded_steps() -> None:
    sorter = StreamSorter.in_memory(max_advance=10)
    sorter.put_many(message(seq) for seq in range(1, 95))
    moves: list[int] = []
    store = tables_of(sorter).stores().cursors
    move = store.move

    def counted(queue: str, old: int, new: int, now: float) -> Any:
        moves.append(new - old)
        return move(queue, old, new, now)

    store.move = counted  # type: ignore[method-assign]
    object.__setattr__(sorter._advancer, "cursors", store)
    assert len(sorter.put(message(0))) == 95
    assert max(moves) == 10
    assert len(moves) <= 11
    assert sorter.position("q") == 94


def test_keys_may_have_other_names() -> None:
    sorter = StreamSorter.in_memory(queue_key="author", seq_key="n", first_seq=1)
    assert sorter.position("ada") == 0
    assert sorter.put({"author": "ada", "n": 1, "queue": "mine", "seq": "too"}).new == 1
    assert list(sorter.read("ada")) == [{"author": "ada", "n": 1, "queue": "mine", "seq": "too"}]


def test_the_last_seq_of_all_is_stored_and_waits(sorter: StreamSorter) -> None:
    sorter.open("q", first_seq=2**63 - 2)
    sorter.put_many([message(2**63 - 1), message(2**63 - 2)])
    assert sorter.position("q") == 2**63 - 1
    assert sorter.put(message(2**63 - 1)).status == "duplicate"
