"""What is not the message's fault uses up none of its attempts: the queue waits, and is tried again for ever."""

from __future__ import annotations

import pytest

from stream_sort import (
    Batch,
    HandlerProblem,
    PartlyDone,
    StoreUnavailable,
    StreamSortError,
    TableNotFound,
    TryLater,
)
from tests.consumers import Clerk, Office, ends, wake

DAY = 86_400.0


@pytest.fixture
def office() -> Office:
    return Office()


class Target:
    """A handler whose target is out of order until somebody mends it."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error
        self.clerk = Clerk()
        self.calls = 0

    def __call__(self, batch: Batch) -> None:
        self.calls += 1
        if self.error is not None:
            raise self.error
        self.clerk(batch)


def test_it_is_a_handlers_problem_that_may_pass() -> None:
    assert issubclass(TryLater, HandlerProblem)
    assert TryLater.retryable
    assert not HandlerProblem.retryable


@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
def test_an_outage_of_a_day_neither_parks_a_queue_for_good_nor_sets_a_message_aside(
    office: Office, on_poison: str
) -> None:
    office.put(*range(5))
    target = Target(TryLater("the bank is closed"))
    consumer = office.hire(target, on_poison=on_poison, max_attempts=2)
    ended = office.clock() + DAY
    while office.clock() < ended:
        assert ends(wake(consumer)) == ["parked"]
        (parked,) = consumer.parked()
        assert (parked.seq, parked.attempts, parked.error) == (0, 0, "TryLater: the bank is closed")
        assert parked.next_try is not None
        assert 0 < parked.next_try - office.clock() <= 900
        office.clock.now = parked.next_try
    assert consumer.dead_letters() == []
    target.error = None
    assert ends(wake(consumer)) == ["done"]
    assert target.clerk.seqs() == [0, 1, 2, 3, 4]


def test_the_tries_of_an_outage_come_further_and_further_apart_up_to_15_minutes(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Target(TryLater("closed")))
    delays = []
    for _ in range(12):
        wake(consumer)
        (parked,) = consumer.parked()
        assert parked.next_try is not None
        delays.append(parked.next_try - office.clock())
        office.clock.now = parked.next_try
    assert delays == [2, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert office.waker.sent == [("q", delay) for delay in delays]


def test_an_outage_is_met_once_a_wake_not_once_a_message(office: Office) -> None:
    office.put(*range(50))
    target = Target(TryLater("closed"))
    (served,) = wake(office.hire(target))
    assert (target.calls, served.handler_failures, served.ended) == (1, 1, "parked")


def test_an_outage_in_the_middle_of_a_batch_keeps_what_was_done(office: Office) -> None:
    office.put(*range(5))

    def handle(batch: Batch) -> None:
        raise PartlyDone(batch.seqs[1]) from TryLater("closed")

    consumer = office.hire(handle)
    (served,) = wake(consumer)
    (parked,) = consumer.parked()
    assert (served.ended, served.delivered, parked.seq, parked.attempts) == ("parked", 2, 2, 0)
    assert parked.error == "PartlyDone: the handler got as far as seq 1 (TryLater: closed)"


def test_attempts_from_before_an_outage_count_after_it(office: Office) -> None:
    office.put(0)
    target = Target(ValueError("poison"))
    consumer = office.hire(target, max_attempts=3)
    for error in (TryLater("closed"), ValueError("poison"), TryLater("closed")):
        target.error = error
        wake(consumer)
        office.clock.now += 1_000
    (parked,) = consumer.parked()
    assert (parked.attempts, parked.error) == (2, "TryLater: closed")
    target.error = ValueError("poison")
    wake(consumer)
    assert consumer.parked()[0].next_try is None


@pytest.mark.parametrize("error", [StoreUnavailable("throttled"), TableNotFound("no table 'Other'")], ids=repr)
def test_what_a_handler_meets_in_tables_of_its_own_is_not_the_messages_fault(
    office: Office, error: StreamSortError
) -> None:
    office.put(0)
    consumer = office.hire(Target(error), max_attempts=1, on_poison="dead_letter")
    assert ends(wake(consumer)) == ["parked"]
    assert (consumer.parked()[0].attempts, consumer.dead_letters()) == (0, [])


def test_a_dead_letter_that_is_redriven_into_an_outage_has_no_attempt_more(office: Office) -> None:
    office.put(0)
    target = Target(ValueError("poison"))
    consumer = office.hire(target, max_attempts=1, on_poison="dead_letter")
    wake(consumer)
    target.error = TryLater("closed")
    assert consumer.redrive("q") == 0
    (letter,) = consumer.dead_letters()
    assert (letter.attempts, letter.error) == (1, "TryLater: closed")


def test_an_effect_on_a_table_that_is_missing_is_not_the_messages_fault(office: Office) -> None:
    office.put(0)
    consumer = office.hire(lambda _: None, max_attempts=2, on_poison="dead_letter")
    store = office.interrupt(consumer)

    def missing() -> None:
        raise TryLater("Put on table 'Payments': no table of that name")

    store.before["commit"] = [missing]
    assert ends(wake(consumer)) == ["parked"]
    assert consumer.parked()[0].attempts == 0


def test_a_queue_in_an_outage_of_half_a_minute_is_counted_as_parked(office: Office) -> None:
    from stream_sort.upkeep.lag_watch import LagWatch  # noqa: PLC0415  # here only

    office.put(0)
    consumer = office.hire(Target(TryLater("closed")))
    watcher = LagWatch(
        office.sorter.stores.control("Control").subscriptions,
        office.sorter.stores.control("Control").checkpoints,
        office.sorter.stores.cursors,
    )
    counts = []
    for _ in range(7):
        wake(consumer)
        watcher.lagging(office.clock())
        counts.append(watcher.watched.parked["billing"])
        office.clock.now = consumer.parked()[0].next_try or 0.0
    assert counts == [0, 0, 0, 0, 0, 1, 1]
