from __future__ import annotations

from typing import Any

import pytest

from stream_sort import CursorLost, InvalidInput, MissingItems, OrderedConsumer, QueueNotFound, StreamSorter, Sweeper
from stream_sort.release.queues import Queues
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.trimmer import Trimmer
from tests.unit.queues import beside, message, tables_of

CONTROL = "Control"


@pytest.fixture
def sorter() -> StreamSorter:
    return StreamSorter.in_memory()


def fill(sorter: StreamSorter, *seqs: int) -> None:
    sorter.put_many(message(seq) for seq in seqs)


def consumer_of(sorter: StreamSorter, name: str = "billing", **options: Any) -> OrderedConsumer:
    return OrderedConsumer(name, lambda _: None, sorter=sorter, control_table=CONTROL, **options)


def lose(sorter: StreamSorter) -> StreamSorter:
    """Lose the rows; another process looks."""
    tables_of(sorter).cursors.clear()
    return beside(sorter)


def delete(sorter: StreamSorter, *seqs: int) -> None:
    """Delete items past us."""
    there = tables_of(sorter).queues["q"]
    for seq in seqs:
        there.empty(seq)


def test_a_lost_row_is_put_back_where_the_furthest_consumer_stands_and_goes_on(sorter: StreamSorter) -> None:
    fill(sorter, *range(5))
    consumer_of(sorter).catch_up("q")
    fill(sorter, *range(5, 8), 9)
    tables_of(sorter).cursors.clear()
    done = sorter.recover("q", control_table=CONTROL)
    assert (done.restored, done.position, done.floor, done.first_seq) == (4, 7, None, 0)
    assert sorter.gaps("q") == [range(8, 9)]
    assert consumer_of(sorter).catch_up("q") == 3


def test_without_consumers_a_whole_queue_is_released_from_its_beginning(sorter: StreamSorter) -> None:
    fill(sorter, *range(5))
    other = lose(sorter)
    planned = other.recover("q", control_table=None, dry_run=True)
    assert (planned.restored, planned.position) == (-1, -1)
    with pytest.raises(CursorLost):
        other.position("q")
    assert other.recover("q", control_table=None).position == 4


def test_what_was_trimmed_stays_trimmed(sorter: StreamSorter) -> None:
    fill(sorter, *range(10))
    consumer_of(sorter).catch_up("q")
    sorter.trim("q", 5, control_table=CONTROL)
    tables_of(sorter).cursors.clear()
    done = sorter.recover("q", control_table=CONTROL)
    assert (done.restored, done.floor, done.position) == (9, 5, 9)
    assert [one["seq"] for one in sorter.read("q")] == [6, 7, 8, 9]
    assert [type(error).__name__ for _, error in sorter.put_many([message(3)]).rejected] == ["Trimmed"]


def test_what_is_trimmed_through_the_position_leaves_the_proof_and_is_recovered(sorter: StreamSorter) -> None:
    fill(sorter, *range(4))
    consumer_of(sorter).catch_up("q")
    sorter.trim("q", 3, control_table=CONTROL)
    tables_of(sorter).cursors.clear()
    assert sorter.recover("q", control_table=CONTROL).position == 3
    assert sorter.put(message(4)).new == 4


def test_nothing_that_a_consumer_still_has_to_get_counts_as_trimmed(sorter: StreamSorter) -> None:
    fill(sorter, *range(3))
    consumer_of(sorter, "slow").catch_up("q")
    fill(sorter, *range(3, 10))
    consumer_of(sorter, "fast").catch_up("q")
    tables_of(sorter).cursors.clear()
    delete(sorter, 4)
    with pytest.raises(
        MissingItems, match="seq 4 not stored; consumer 'slow' has not got that, and nothing can be put"
    ):
        sorter.recover("q", control_table=CONTROL)
    assert tables_of(sorter).cursors == {}


def test_where_nothing_tells_how_far_it_was_a_position_is_asked_for(sorter: StreamSorter) -> None:
    sorter.open("q", first_seq=1000)
    fill(sorter, 1000, 1001)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match="seq 1000 is the lowest stored"):
        other.recover("q", control_table=None)
    with pytest.raises(MissingItems):
        other.recover("q", control_table=None, position=500)
    done = other.recover("q", control_table=None, position=999)
    assert (done.restored, done.position) == (999, 1001)


def test_a_position_behind_a_consumer_or_beyond_what_is_stored_is_refused(sorter: StreamSorter) -> None:
    fill(sorter, *range(5))
    consumer_of(sorter).catch_up("q")
    tables_of(sorter).cursors.clear()
    with pytest.raises(InvalidInput, match="done all through seq 4"):
        sorter.recover("q", control_table=CONTROL, position=2)
    with pytest.raises(MissingItems):
        sorter.recover("q", control_table=CONTROL, position=7)
    assert tables_of(sorter).cursors == {}


def test_a_position_beyond_a_gap_that_a_consumer_waits_for_is_refused(sorter: StreamSorter) -> None:
    fill(sorter, 0, 1, 3, 4)
    consumer_of(sorter).catch_up("q")
    tables_of(sorter).cursors.clear()
    with pytest.raises(MissingItems, match="seq 2 not stored"):
        sorter.recover("q", control_table=CONTROL, position=4)


def test_a_row_that_is_there_is_not_touched_and_a_queue_that_never_was_is_not_made(sorter: StreamSorter) -> None:
    fill(sorter, 0, 1)
    with pytest.raises(InvalidInput, match="has its cursor row, at position 1"):
        sorter.recover("q", control_table=None, position=0)
    with pytest.raises(QueueNotFound):
        sorter.recover("other", control_table=None)


def test_a_queue_that_was_opened_below_the_usual_start_keeps_its_own(sorter: StreamSorter) -> None:
    sorter.open("q", first_seq=-5)
    fill(sorter, -5, -4, -3)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match="seq -5 is the lowest stored"):
        other.recover("q", control_table=None)
    done = other.recover("q", control_table=None, position=-6)
    assert (done.first_seq, done.restored, done.position) == (-5, -6, -3)


def test_a_queue_that_waits_for_its_first_message_goes_on_waiting(sorter: StreamSorter) -> None:
    fill(sorter, 7)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match="or -1 if nothing ever was"):
        other.recover("q", control_table=None)
    done = other.recover("q", control_table=None, position=-1)
    assert (done.position, done.first_seq, done.floor) == (-1, 0, None)
    fill(other, *range(7))
    assert other.position("q") == 7


def test_a_consumer_that_has_not_begun_here_is_owed_all_that_is_stored(sorter: StreamSorter) -> None:
    fill(sorter, *range(30))
    sorter.put(message(0, queue="other"))
    consumer_of(sorter, "begun").catch_up("q")
    consumer_of(sorter, "new").catch_up("other")
    tables_of(sorter).cursors.clear()
    delete(sorter, 5)
    with pytest.raises(MissingItems, match="seq 5 not stored"):
        sorter.recover("q", control_table=CONTROL)
    assert tables_of(sorter).cursors == {}


def test_a_slot_that_a_trim_has_kept_does_not_hide_the_trim(sorter: StreamSorter) -> None:
    sorter.skip("q", [0])
    for seq in range(1, 6):
        fill(sorter, seq)
    fill(sorter, 0)
    consumer_of(sorter).catch_up("q")
    Trimmer(sorter.stores.items, sorter.stores.cursors, sorter.stores.control(CONTROL)).trim_archived("q", -1, 4)
    consumer_of(sorter).retire()
    tables_of(sorter).cursors.clear()
    with pytest.raises(InvalidInput, match="and a writer found it at position 4"):
        sorter.recover("q", control_table=CONTROL)
    assert sorter.recover("q", control_table=CONTROL, position=5).floor == 4


@pytest.mark.parametrize("known", [True, False])
def test_a_hole_that_a_trim_may_have_made_asks_for_the_position(sorter: StreamSorter, *, known: bool) -> None:
    sorter.skip("q", [0])
    fill(sorter, 0)
    # All of them found the same position.
    fill(sorter, *range(1, 22))
    Trimmer(sorter.stores.items, sorter.stores.cursors, None).trim_archived("q", -1, 21)
    if known:
        sorter.put(message(0, queue="other"))
        consumer_of(sorter).catch_up("other")
    tables_of(sorter).cursors.clear()
    control = CONTROL if known else None
    with pytest.raises(InvalidInput, match="with a hole from seq 1 on, which may be a gap or trimmed"):
        sorter.recover("q", control_table=control)
    done = sorter.recover("q", control_table=control, position=21)
    assert (done.position, done.floor) == (21, 20)


def test_a_queue_that_was_opened_lower_and_has_only_what_lies_higher_asks_for_its_position(
    sorter: StreamSorter,
) -> None:
    sorter.open("q", first_seq=-5)
    fill(sorter, 0, 1, 2)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match=r"a writer found it at position -6.*or -6 if nothing ever was"):
        other.recover("q", control_table=None)
    with pytest.raises(InvalidInput, match="was opened before 0: a writer found it at position -6"):
        other.recover("q", control_table=None, position=-1)
    done = other.recover("q", control_table=None, position=-6)
    assert (done.position, done.first_seq, done.floor) == (-6, -5, None)
    fill(other, *range(-5, 0))
    assert other.position("q") == 2


@pytest.mark.parametrize("before", [(), (1003,)])
def test_a_queue_that_was_opened_higher_is_put_back_where_it_was_opened(
    sorter: StreamSorter, before: tuple[int, ...]
) -> None:
    # Some may have found it at the usual start.
    fill(sorter, *before)
    sorter.open("q", first_seq=1000)
    fill(sorter, 1005)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match="or 999 if nothing ever was"):
        other.recover("q", control_table=None)
    with pytest.raises(MissingItems):
        other.recover("q", control_table=None, position=-1)
    done = other.recover("q", control_table=None, position=999)
    assert (done.position, done.first_seq, done.floor) == (999, 1000, None)
    fill(other, *range(1000, 1005))
    assert other.position("q") == 1005


def test_that_nothing_was_released_is_not_believed_where_the_slots_say_otherwise(sorter: StreamSorter) -> None:
    fill(sorter, *range(10))
    consumer_of(sorter).catch_up("q")
    sorter.trim("q", 9, control_table=CONTROL)
    consumer_of(sorter).retire()
    fill(sorter, 10)
    fill(sorter, 12)
    other = lose(sorter)
    with pytest.raises(InvalidInput, match=r"a seq that was surely released$"):
        other.recover("q", control_table=CONTROL)
    with pytest.raises(MissingItems):
        other.recover("q", control_table=CONTROL, position=-1)
    assert tables_of(sorter).cursors == {}


@pytest.mark.parametrize("known", [True, False])
def test_where_a_trim_has_died_the_way_out_is_told_and_works(sorter: StreamSorter, *, known: bool) -> None:
    fill(sorter, *range(11))
    consumer_of(sorter, "begun").catch_up("q")
    sorter.put(message(0, queue="other"))
    new = consumer_of(sorter, "new")
    if known:
        new.catch_up("other")
    else:
        consumer_of(sorter, "begun").retire()
    delete(sorter, 4, 5, 6)
    tables_of(sorter).cursors.pop("q")
    advice = "consumers that have not begun here would want it: 'new'. Retire" if known else "before it, then skip"
    with pytest.raises(MissingItems, match=advice):
        sorter.recover("q", control_table=CONTROL, position=10)
    if known:
        new.retire()
        assert sorter.recover("q", control_table=CONTROL).position == 10
    else:
        sorter.recover("q", control_table=CONTROL, position=3)
        sorter.skip("q", range(4, 7))
        assert sorter.position("q") == 10


@pytest.mark.parametrize("lost", [3, 4])
def test_a_consumer_that_starts_at_a_seq_is_owed_all_from_there(sorter: StreamSorter, lost: int) -> None:
    fill(sorter, 0)
    consumer_of(sorter, "new", start="4").catch_up("q")
    fill(sorter, *range(1, 6))
    consumer_of(sorter, "begun").catch_up("q")
    tables_of(sorter).cursors.clear()
    delete(sorter, lost)
    if lost == 4:
        with pytest.raises(MissingItems, match="seq 4 not stored"):
            sorter.recover("q", control_table=CONTROL)
    else:
        assert sorter.recover("q", control_table=CONTROL).floor == 3


def test_a_tombstone_tells_that_no_trim_made_a_hole(sorter: StreamSorter) -> None:
    sorter.skip("q", [0])
    fill(sorter, *range(1, 4))
    consumer_of(sorter, "begun").catch_up("q")
    sorter.put(message(0, queue="other"))
    consumer_of(sorter, "new").catch_up("other")
    tables_of(sorter).cursors.clear()
    delete(sorter, 1)
    with pytest.raises(MissingItems, match="seq 1 not stored"):
        sorter.recover("q", control_table=CONTROL)


@pytest.mark.parametrize("control", [None, CONTROL])
def test_a_position_beyond_a_gap_is_refused_where_anybody_may_come(sorter: StreamSorter, control: str | None) -> None:
    fill(sorter, *range(10), *range(11, 30))
    sorter.put(message(0, queue="other"))
    consumer_of(sorter, "new").catch_up("other")
    tables_of(sorter).cursors.clear()
    with pytest.raises(MissingItems, match="seq 10 not stored"):
        sorter.recover("q", control_table=control, position=20)


def test_a_consumer_that_came_after_a_trim_is_owed_nothing_below_it(sorter: StreamSorter) -> None:
    fill(sorter, *range(10))
    consumer_of(sorter, "begun").catch_up("q")
    sorter.trim("q", 5, control_table=CONTROL)
    sorter.put(message(0, queue="other"))
    consumer_of(sorter, "new").catch_up("other")
    tables_of(sorter).cursors.clear()
    assert sorter.recover("q", control_table=CONTROL).floor == 5
    assert consumer_of(sorter, "new").catch_up("q") == 4


def test_a_sweep_goes_on_where_the_one_who_put_the_row_back_died(
    sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter, *range(5))
    consumer_of(sorter).catch_up("q")
    fill(sorter, *range(5, 8))
    tables_of(sorter).cursors.clear()
    with monkeypatch.context() as patched:
        patched.setattr(Queues, "reach", dies)
        with pytest.raises(SystemExit):
            sorter.recover("q", control_table=CONTROL)
    assert sorter.position("q") == 4
    assert [one.new for one in Sweeper(sorter).sweep().advanced] == [7]
    assert sorter.position("q") == 7


def dies(*_: object) -> None:
    raise SystemExit


def losing_the_slots_of_what_a_consumer_has_not_done(sorter: StreamSorter) -> StreamSorter:
    """A consumer has done all through 5, everything through 10 is released, and only 10 is stored still."""
    fill(sorter, *range(6))
    consumer_of(sorter).catch_up("q")
    for seq in range(6, 11):
        fill(sorter, seq)
    delete(sorter, *range(10))
    return lose(sorter)


@pytest.mark.parametrize("position", [None, 9, 10])
def test_what_a_begun_consumer_has_not_done_is_not_passed_over_as_if_nothing_had_begun(
    sorter: StreamSorter, position: int | None
) -> None:
    other = losing_the_slots_of_what_a_consumer_has_not_done(sorter)
    with pytest.raises(MissingItems) as refused:
        other.recover("q", control_table=CONTROL, position=position)
    assert "if nothing ever was" not in str(refused.value)
    assert other.stores.cursors.get("q") is None


def test_where_a_consumer_is_ahead_of_what_is_stored_the_way_out_is_told_and_works(sorter: StreamSorter) -> None:
    fill(sorter, *range(21))
    consumer = consumer_of(sorter)
    consumer.catch_up("q")
    delete(sorter, *range(16, 21))
    other = lose(sorter)
    told = "retire whoever is ahead of it, and give a position that is stored"
    with pytest.raises(MissingItems, match=told):
        other.recover("q", control_table=CONTROL)
    with pytest.raises(InvalidInput, match=told):
        other.recover("q", control_table=CONTROL, position=15)
    consumer.retire()
    assert other.recover("q", control_table=CONTROL, position=15).position == 15


def test_a_gap_is_not_as_old_as_the_row_that_was_put_back() -> None:
    clock, policy = MovableClock(), "skip after 30 seconds"
    sorter = StreamSorter.in_memory(clock=clock, gap_policy=policy)
    fill(sorter, 0, 1, 2)
    consumer_of(sorter).catch_up("q")
    tables_of(sorter).cursors.clear()
    other = beside(sorter, clock=clock, gap_policy=policy)
    assert str(other.recover("q", control_table=CONTROL).policy) == policy
    clock.move(55)
    other.put(message(4))
    clock.move(2)
    assert Sweeper(other).sweep().skipped == []
    clock.move(30)
    assert [gap.seqs for gap in Sweeper(other).sweep().skipped] == [range(3, 4)]
