"""Checkpoints are set elsewhere by whoever asks for it, and never under the hands of a consumer at work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import (
    ConsumerActive,
    ConsumerNotFound,
    InvalidInput,
    OrderedConsumer,
    QueueNotFound,
    StoreUnavailable,
)
from stream_sort.model.consumption import Subscription
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.sweeper import Sweeper
from tests.consumers import Clerk, Office, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import Reset

    Happenings = list[Callable[[], object]]

IDLE = 301.0


@pytest.fixture
def office() -> Office:
    return Office()


def consumed(office: Office, *seqs: int, clerk: Clerk | None = None) -> OrderedConsumer:
    """A consumer that is through with these seqs, and was left alone for a while."""
    office.put(*seqs)
    consumer = office.hire(clerk or Clerk())
    wake(consumer)
    office.clock.move(IDLE)
    return consumer


def moves(done: list[Reset]) -> list[tuple[str, int, int, str]]:
    return [(one.queue, one.old, one.new, one.outcome) for one in done]


@pytest.mark.parametrize(
    ("to", "by", "new"),
    [
        ("earliest", None, -1),
        (2, None, 1),
        ("2", None, 1),
        (None, -2, 2),
        (None, -99, -1),
        (-50, None, -1),
        (0, None, -1),
    ],
)
def test_a_checkpoint_is_set_back_within_what_there_is(
    office: Office, to: str | int | None, by: int | None, new: int
) -> None:
    consumer = consumed(office, 0, 1, 2, 3, 4)
    assert moves(consumer.reset(to, by=by, dry_run=True)) == [("q", 4, new, "planned")]
    assert moves(consumer.reset(to, by=by)) == [("q", 4, new, "reset")]
    assert consumer.checkpoint("q") == new


@pytest.mark.parametrize(("to", "by", "new"), [("latest", None, 4), (3, None, 2), (None, 2, 2), (99, None, 4)])
def test_a_checkpoint_is_set_forth_within_what_is_released(
    office: Office, to: str | int | None, by: int | None, new: int
) -> None:
    consumer = consumed(office, 0)
    office.put(1, 2, 3, 4, 6)
    consumer.reset(to, by=by)
    assert consumer.checkpoint("q") == new


def test_what_lies_between_comes_again_in_order_and_the_consumer_is_woken_for_it(office: Office) -> None:
    clerk = Clerk()
    consumer = consumed(office, 0, 1, 2, clerk=clerk)
    consumer.reset(1)
    assert office.waker.sent == [("q", 0.0)]
    wake(consumer)
    assert clerk.seqs() == [0, 1, 2, 1, 2]


def test_a_reset_to_the_end_wakes_nobody(office: Office) -> None:
    consumer = consumed(office, 0)
    office.put(1)
    consumer.reset("latest")
    assert office.waker.sent == []


def test_a_reset_is_done_although_no_wake_goes_out(office: Office) -> None:
    consumer = consumed(office, 0, 1)
    office.waker.fails = True
    (done,) = consumer.reset("earliest")
    assert moves([done]) == [("q", 1, -1, "reset")]
    assert done.error == "StoreUnavailable: no wake could be sent"


def idle_for_hours(office: Office, queues: int) -> tuple[OrderedConsumer, Callable[[], list[str]]]:
    """A consumer that is through with as many queues, what sweeps it, and four quiet hours."""
    names = [f"q{number:04}" for number in range(queues)]
    for name in names:
        office.put(0, queue=name)
    consumer = office.hire(Clerk())
    wake(consumer, *names)
    control = office.sorter.stores.control("Control")

    def sweep() -> list[str]:
        office.clock.move(60)
        return (
            Sweeper(
                office.sorter,
                lagging=LagWatch(control.subscriptions, control.checkpoints, office.sorter.stores.cursors),
            )
            .sweep()
            .nudged
        )

    for pause in (0.0, 4 * 3_600.0):
        office.clock.move(pause)
        for _ in range(10):
            sweep()
    return consumer, sweep


@pytest.mark.parametrize("death", [True, False])
def test_an_idle_queue_that_is_reset_and_whose_wake_is_lost_is_nudged_by_the_second_sweep(
    office: Office, *, death: bool
) -> None:
    consumer, sweep = idle_for_hours(office, 1_500)
    office.waker.fails = True
    with suppress(KeyboardInterrupt):
        office.interrupt(consumer).after["commit"] = [die] if death else []
        consumer.reset("earliest", queues=["q1200"])
    assert "q1200" in [*sweep(), *sweep()]


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), KeyError("a bug")], ids=repr)
def test_a_queue_that_cannot_be_reset_keeps_no_other_from_being_reset_and_woken(
    office: Office, error: Exception
) -> None:
    for queue in "abc":
        office.put(0, 1, queue=queue)
    consumer = office.hire(Clerk())
    wake(consumer, "a", "b", "c")
    office.clock.move(IDLE)

    def fails() -> None:
        raise error

    store = office.interrupt(consumer)
    store.after["commit"] = [lambda: store.before.update(commit=[fails])]
    done = consumer.reset("earliest")
    assert moves(done) == [("a", 1, -1, "reset"), ("b", 1, -1, "failed"), ("c", 1, -1, "reset")]
    assert [one.error for one in done] == [None, f"{type(error).__name__}: {error}", None]
    assert [queue for queue, _ in office.waker.sent] == ["a", "c"]
    assert moves(consumer.reset("earliest")) == [("b", 1, -1, "reset")]


def test_a_dry_run_says_the_same_and_changes_nothing(office: Office) -> None:
    consumer = consumed(office, 0, 1, 2)
    before = office.row()
    assert moves(consumer.reset(by=-1, dry_run=True)) == [("q", 2, 1, "planned")]
    assert office.row() == before
    assert office.waker.sent == []


def test_a_consumer_at_work_keeps_all_its_checkpoints_unless_forced(office: Office) -> None:
    consumer = consumed(office, 0, 1)
    office.put(0, 1, queue="busy")
    wake(consumer, "busy")
    with pytest.raises(
        ConsumerActive, match=r"consumer 'billing' is at work: queue 'busy' moved within the last 300"
    ) as refused:
        consumer.reset("earliest")
    assert "force=True, or --force" in str(refused.value)
    assert (consumer.checkpoint("q"), consumer.checkpoint("busy")) == (1, 1)
    assert [one.active for one in consumer.reset("earliest", dry_run=True)] == [False, True]
    assert len(consumer.reset("earliest", force=True)) == 2
    assert (consumer.checkpoint("q"), consumer.checkpoint("busy")) == (-1, -1)


def test_a_queue_at_work_does_not_keep_another_from_being_reset(office: Office) -> None:
    consumer = consumed(office, 0, 1)
    office.put(0, queue="busy")
    wake(consumer, "busy")
    assert moves(consumer.reset("earliest", queues=["q"])) == [("q", 1, -1, "reset")]


def test_a_reset_is_no_sign_of_work(office: Office) -> None:
    consumer = consumed(office, 0, 1)
    consumer.reset("earliest")
    assert moves(consumer.reset("latest")) == [("q", -1, 1, "reset")]


def test_a_consumer_whose_first_checkpoints_are_being_set_is_at_work(office: Office) -> None:
    office.put(0, 1)
    office.sorter.stores.control("Control").subscriptions.register(Subscription("billing", "latest", 0.0, ready=False))
    with pytest.raises(ConsumerActive):
        office.hire(Clerk(), start="latest").reset("latest")


def test_a_queue_parked_for_good_is_not_at_work_and_is_parked_no_longer(office: Office) -> None:
    clerk = Clerk({1})
    office.put(0, 1, 2)
    consumer = office.hire(clerk, max_attempts=1)
    wake(consumer)
    assert [one.next_try for one in consumer.parked()] == [None]
    assert moves(consumer.reset(2)) == [("q", 0, 1, "reset")]
    assert consumer.parked() == []
    wake(consumer)
    assert clerk.seqs() == [0, 2]


def test_a_queue_that_is_tried_again_is_at_work(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(Clerk({1}))
    wake(consumer)
    with pytest.raises(ConsumerActive):
        consumer.reset("earliest")


def test_a_checkpoint_that_moves_meanwhile_is_left_where_it_is(office: Office) -> None:
    consumer = consumed(office, 0, 1)
    office.put(2)
    other = office.hire(Clerk())
    office.interrupt(consumer).before["commit"] = [lambda: wake(other)]
    assert moves(consumer.reset("earliest")) == [("q", 1, -1, "overtaken")]
    assert consumer.checkpoint("q") == 2
    assert office.waker.sent == []


def test_a_run_that_is_overtaken_by_a_forced_reset_does_not_undo_it(office: Office) -> None:
    office.put(0, 1)
    boss = OrderedConsumer("billing", sorter=office.sorter)
    office.hire(Clerk()).catch_up("q")
    office.put(2)
    consumer = office.hire(lambda _: boss.reset("earliest", force=True) and None)
    wake(consumer)
    assert consumer.checkpoint("q") == -1


def test_where_a_trim_came_first_the_consumer_begins_behind_it(office: Office) -> None:
    consumer = consumed(office, 0, 1, 2, 3)
    trim = [lambda: office.sorter.trim("q", 2, control_table="Control")]
    office.interrupt(consumer).before["commit"] = trim  # type: ignore[assignment]
    assert moves(consumer.reset("earliest")) == [("q", 3, 2, "reset")]
    assert consumer.catch_up("q") == 1


def die() -> None:
    raise KeyboardInterrupt


def trims(office: Office, through: int) -> Happenings:
    return [lambda: office.sorter.trim("q", through, control_table="Control")]


def test_a_run_between_a_reset_and_its_look_at_the_floor_says_of_nothing_that_it_was_not_consumed(
    office: Office,
) -> None:
    clerk = Clerk()
    consumer = consumed(office, *range(11), clerk=clerk)
    clerk.done.clear()
    operator = office.hire(Clerk())
    store = office.interrupt(operator)
    store.before["commit"] = trims(office, 8)
    store.after["commit"] = [lambda: wake(consumer)]
    assert moves(operator.reset(3)) == [("q", 10, 8, "reset")]
    assert (clerk.seqs(), consumer.parked(), consumer.checkpoint("q")) == ([9, 10], [], 10)


def test_a_reset_that_died_before_it_looked_at_the_floor_parks_no_queue(office: Office) -> None:
    clerk = Clerk()
    consumer = consumed(office, *range(11), clerk=clerk)
    clerk.done.clear()
    operator = office.hire(Clerk())
    store = office.interrupt(operator)
    store.before["commit"] = trims(office, 8)
    store.after["commit"] = [die]
    with pytest.raises(KeyboardInterrupt):
        operator.reset(3)
    wake(consumer)
    assert (clerk.seqs(), consumer.parked(), consumer.checkpoint("q")) == ([9, 10], [], 10)


def test_what_was_trimmed_behind_what_the_consumer_has_had_is_still_told_of(office: Office) -> None:
    consumer = consumed(office, 0, 1, 2)
    row = office.row()
    assert row is not None
    office.put(3, 4, 5)
    consumer.retire()
    office.sorter.trim("q", 4, control_table="Control")
    office.sorter.stores.control("Control").checkpoints.commit(row, row.reset(0, "reset:1", 0.0))
    wake(consumer)
    (parked,) = consumer.parked()
    assert (parked.seq, parked.damaged, consumer.checkpoint("q")) == (3, True, 2)
    assert "seq 3 was not consumed before" in parked.error


def test_a_run_that_parks_a_queue_below_the_floor_is_passed_by_the_reset(office: Office) -> None:
    consumer = consumed(office, *range(11))
    row = office.row()
    assert row is not None
    # As the version before wrote it: nobody knows what the consumer has had.
    office.sorter.stores.control("Control").checkpoints.commit(row, replace(row, version=row.version + 1, began=None))
    operator = office.hire(Clerk())
    store = office.interrupt(operator)
    store.before["commit"] = trims(office, 8)
    store.after["commit"] = [lambda: wake(consumer)]
    assert moves(operator.reset(3)) == [("q", 10, 8, "reset")]
    assert (consumer.parked(), consumer.checkpoint("q")) == ([], 8)


def test_a_queue_whose_messages_were_trimmed_is_freed_by_a_reset(office: Office) -> None:
    consumer = consumed(office, 0)
    office.put(1, 2, 3)
    consumer.retire()
    office.sorter.trim("q", 2, control_table="Control")
    wake(consumer)
    assert [one.damaged for one in consumer.parked()] == [True]
    office.clock.move(IDLE)
    consumer.reset("earliest")
    assert consumer.parked() == []
    assert consumer.catch_up("q") == 1


def test_a_queue_without_a_checkpoint_gets_one(office: Office) -> None:
    consumer = consumed(office, 0)
    office.put(0, 1, queue="new")
    assert moves(consumer.reset("latest", queues=["new"])) == [("new", -1, 1, "reset")]
    assert consumer.catch_up("new") == 0


def test_a_queue_that_has_not_begun_is_left_alone(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(), start=7)
    wake(consumer)
    office.put(5, queue="unbegun")
    assert [one.queue for one in consumer.reset("earliest")] == ["q"]
    assert office.row("unbegun") is None


def test_many_pages_of_queues_are_reset(office: Office) -> None:
    consumer = consumed(office, 0)
    for number in range(250):
        office.put(0, queue=f"q{number}")
    assert len(consumer.reset("latest")) == 250
    assert consumer.reset("latest") == []


@pytest.mark.parametrize(("to", "by"), [(None, None), ("earliest", 1)])
def test_a_reset_has_one_target(office: Office, to: str | None, by: int | None) -> None:
    with pytest.raises(InvalidInput, match="give one"):
        consumed(office, 0).reset(to, by=by)


def test_a_target_that_is_none_is_refused(office: Office) -> None:
    with pytest.raises(InvalidInput, match="it must be 'earliest', 'latest' or a seq"):
        consumed(office, 0).reset("yesterday")
    with pytest.raises(InvalidInput):
        consumed(office, 0).reset(by=True)


def test_a_consumer_or_queue_that_is_not_known_is_named(office: Office) -> None:
    consumer = consumed(office, 0)
    with pytest.raises(QueueNotFound):
        consumer.reset("latest", queues=["nowhere"])
    with pytest.raises(ConsumerNotFound, match="no consumer 'biling' is registered; there are 'billing'"):
        office.hire(Clerk(), "biling").reset("latest")


def test_late_messages_are_listed_and_every_slot_can_be_seen(office: Office) -> None:
    office.put(0, 3)
    office.sorter.skip("q", [1, 2], "lost")
    office.sorter.put({"queue": "q", "seq": 2, "text": "late"})
    (late,) = office.sorter.late("q")
    assert (late.seq, late.message["text"], late.reason) == (2, "late", "lost")
    assert office.sorter.late("q", limit=1) == []
    slots = [office.sorter.slot("q", seq) for seq in (0, 1, 2, 4)]
    assert [one and (one.is_tombstone, one.late is not None) for one in slots] == [
        (False, False),
        (True, False),
        (True, True),
        None,
    ]
    with pytest.raises(InvalidInput, match="limit is 0"):
        office.sorter.late("q", 0)
