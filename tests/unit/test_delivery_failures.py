"""What fails is tried again in place, then parked; a damaged queue is parked until somebody repairs it."""

from __future__ import annotations

import itertools

import pytest

from stream_sort import Batch, CursorLost, MissingItems, Parked
from stream_sort.model.retries import LONGEST_DELAY, delay_before, text_of
from tests.consumers import Clerk, Office, ends, fail, wake


@pytest.fixture
def office() -> Office:
    return Office()


def parked(office: Office) -> Parked:
    row = office.row()
    assert row is not None
    assert row.parked is not None
    return row.parked


def test_a_failing_message_is_tried_again_in_place_first(office: Office) -> None:
    calls = itertools.count()

    def fails_once(_: Batch) -> None:
        if next(calls) == 0:
            raise ConnectionError("just once")

    office.put(0)
    (served,) = wake(office.hire(fails_once))
    assert (served.ended, served.delivered, served.handler_failures) == ("done", 1, 1)
    assert office.waker.sent == []


def test_a_queue_is_parked_with_seq_error_attempts_and_next_try(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk(poison={1}))
    (served,) = wake(consumer)
    now = office.clock()
    expected = Parked("q", 1, "ValueError: poison 1", 2, now, now + 4)
    assert (served.ended, served.parked, served.delivered) == ("parked", expected, 1)
    assert consumer.parked() == [expected]
    assert (consumer.checkpoint("q"), office.waker.sent) == (0, [("q", 4.0)])


def test_the_next_try_comes_later_each_time_up_to_a_cap(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}), max_attempts=14)
    began = office.clock()
    for _ in range(12):
        wake(consumer)
        office.clock.move(office.waker.sent[-1][1])
    delays = [delay for _, delay in office.waker.sent]
    assert delays == [4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900]
    assert (parked(office).attempts, parked(office).since) == (13, began)
    assert delay_before(10**6) == LONGEST_DELAY


def test_a_wake_before_its_time_is_ignored(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk)
    wake(consumer)
    before = office.row()
    store = office.interrupt(consumer)
    office.clock.move(2.9)
    assert ends(wake(consumer)) == ["waiting"]
    assert (store.calls, office.row(), len(clerk.batches)) == (["standing"], before, 2)
    office.clock.move(1.1)
    assert ends(wake(consumer)) == ["parked"]


def test_a_wake_that_comes_a_little_early_is_on_time(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}))
    wake(consumer)
    office.clock.move(3.0)
    assert ends(wake(consumer)) == ["parked"]


def test_a_parked_queue_goes_on_when_its_message_succeeds(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(*range(5))
    consumer = office.hire(clerk)
    wake(consumer)
    clerk.poison.clear()
    office.clock.move(4)
    assert ends(wake(consumer)) == ["done"]
    assert (clerk.seqs(), consumer.parked()) == ([0, 1, 2, 3, 4], [])


def test_the_message_at_fault_is_tried_by_itself_when_its_time_has_come(office: Office) -> None:
    clerk = Clerk(poison={3})
    office.put(*range(20))
    consumer = office.hire(clerk)
    wake(consumer)
    clerk.batches.clear()
    office.clock.move(4)
    wake(consumer)
    assert clerk.batches == [("q", (3,))]


def test_chunks_grow_again_when_it_succeeds(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(*range(20))
    consumer = office.hire(clerk, batch_size=8)
    wake(consumer)
    clerk.batches.clear()
    clerk.poison.clear()
    office.clock.move(4)
    wake(consumer)
    assert [len(seqs) for _, seqs in clerk.batches] == [1, 2, 4, 8, 5]


def test_each_message_has_its_own_tries_in_place(office: Office) -> None:
    tried: set[int] = set()

    def fails_each_once(batch: Batch) -> None:
        if batch.seqs[0] not in tried:
            tried.add(batch.seqs[0])
            raise ConnectionError("once each")

    office.put(0, 1, 2)
    (served,) = wake(office.hire(fails_each_once, batch_size=1))
    assert (served.ended, served.handler_failures) == ("done", 3)


def test_catch_up_leaves_a_parked_queue_alone_until_its_time_has_come_unless_forced(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0, 1)
    consumer = office.hire(clerk)
    wake(consumer)
    before = office.row()
    assert [consumer.catch_up("q") for _ in range(5)] == [0] * 5
    assert office.row() == before
    assert consumer.catch_up("q", force=True) == 0
    assert parked(office).attempts == 3
    clerk.poison.clear()
    assert consumer.catch_up("q") == 0
    assert (consumer.catch_up("q", force=True), consumer.parked()) == (2, [])


def test_a_polling_loop_of_catch_up_does_not_burn_the_attempts_of_a_message(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=5, on_poison="dead_letter")
    began = office.clock()
    tried_at = []
    while not consumer.dead_letters():
        before = len(clerk.attempts)
        consumer.catch_up("q")
        tried_at += [office.clock() - began] * (len(clerk.attempts) - before)
        office.clock.move(1)
    assert clerk.attempts == [1, 2, 3, 4, 5]
    assert tried_at == [0, 0, 3, 10, 25]


def test_a_catch_up_that_meets_a_queue_another_run_just_parked_stops_there(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(Clerk())
    office.interrupt(consumer).before["commit"] = [lambda: wake(office.hire(Clerk(poison={0})))]
    assert consumer.catch_up("q") == 0
    assert [one.seq for one in consumer.parked()] == [0]


def test_parking_that_cannot_be_recorded_is_reported_back(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}))
    store = office.interrupt(consumer)

    def stay_out_of_reach() -> None:
        store.before["commit"] = [stay_out_of_reach]
        fail()

    store.before["commit"] = [stay_out_of_reach]
    assert ends(wake(consumer)) == ["failed"]


def test_parking_that_is_refused_once_is_recorded_at_the_second_try(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}))
    office.interrupt(consumer).before["commit"] = [fail]
    assert ends(wake(consumer)) == ["parked"]


def test_a_wake_that_cannot_be_sent_leaves_the_parked_queue_to_the_sweep(office: Office) -> None:
    office.put(0)
    office.waker.fails = True
    assert ends(wake(office.hire(Clerk(poison={0})))) == ["parked"]


def test_a_hole_is_never_passed_over_and_parks_the_queue(office: Office) -> None:
    clerk = Clerk()
    office.put(*range(6))
    put_back = office.lose_item(3)
    consumer = office.hire(clerk)
    (served,) = wake(consumer)
    assert (served.ended, clerk.seqs(), consumer.checkpoint("q")) == ("parked", [0, 1, 2], 2)
    assert (parked(office).seq, parked(office).damaged) == (3, True)
    assert parked(office).error.startswith("MissingItems: queue 'q': seq 3 not stored")
    assert consumer.catch_up("q") == 0
    with pytest.raises(MissingItems):
        consumer.catch_up("q", force=True)
    put_back()
    office.clock.move(10)
    wake(consumer)
    assert clerk.seqs() == [0, 1, 2, 3, 4, 5]


def test_a_damaged_queue_is_tried_for_ever_and_never_given_up(office: Office) -> None:
    office.put(0, 1)
    office.lose_item(0)
    consumer = office.hire(Clerk(), on_poison="dead_letter", max_attempts=2)
    for _ in range(5):
        assert ends(wake(consumer)) == ["parked"]
        office.clock.move(1_000)
    # No try was one of the message.
    assert (parked(office).attempts, consumer.dead_letters()) == (0, [])


def test_what_a_damaged_queue_did_to_a_message_does_not_count_against_it(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    put_back = office.lose_item(0)
    consumer = office.hire(clerk, on_poison="dead_letter", max_attempts=2)
    for _ in range(5):
        wake(consumer)
        office.clock.move(1_000)
    put_back()
    (served,) = wake(consumer)
    assert (served.ended, [letter.attempts for letter in served.dead]) == ("done", [2])
    assert clerk.attempts == [1, 2]


def test_i10_a_lost_cursor_parks_the_queue_and_is_not_recreated(office: Office) -> None:
    clerk = Clerk()
    office.put(0, 1)
    consumer = office.hire(clerk)
    wake(consumer)
    row = office.lose_cursor()
    assert ends(wake(consumer)) == ["parked"]
    assert parked(office).error.startswith("CursorLost")
    assert office.sorter.stores.cursors.get("q") is None
    with pytest.raises(CursorLost):
        consumer.catch_up("q", force=True)
    office.sorter.stores.cursors.create(row)
    office.put(2)
    office.clock.move(10)
    assert ends(wake(consumer)) == ["done"]
    assert clerk.seqs() == [0, 1, 2]


def test_wakes_of_a_queue_without_its_cursor_do_not_multiply(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.lose_cursor()
    wake(consumer)
    assert ends(wake(consumer) + wake(consumer)) == ["waiting", "waiting"]
    assert office.waker.sent == [("q", 2.0)]


def test_a_queue_whose_cursor_is_back_with_nothing_due_is_parked_no_longer(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    row = office.lose_cursor()
    wake(consumer)
    office.sorter.stores.cursors.create(row)
    assert len(consumer.parked()) == 1
    office.clock.move(10)
    assert ends(wake(consumer, position=0)) == ["done"]
    assert consumer.parked() == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("x" * 5_000), "ValueError: " + "x" * 987 + "…"),
        (ValueError("half \ud800 of a pair"), "ValueError: half ? of a pair"),
        (Unspeakable(), "Unspeakable: <KeyError>"),
        (KeyError(), "KeyError: "),
    ],
    ids=["long", "no text", "unspeakable", "empty"],
)
def test_any_error_can_be_told_and_kept(office: Office, error: Exception, text: str) -> None:
    def handle(_: Batch) -> None:
        raise error

    office.put(0)
    wake(office.hire(handle))
    assert parked(office).error == text


def test_an_error_is_told_with_its_cause() -> None:
    error = ValueError("no")
    error.__cause__ = TimeoutError("late")
    assert text_of(error) == "ValueError: no (TimeoutError: late)"
