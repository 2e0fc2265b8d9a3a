"""Writes of a consumer whose answers are lost: nothing is given up, done twice, or left out of the figures for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, StoreUnavailable, TryLater
from stream_sort.model.consumption import Wake
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.ports.time_limit import seconds_left
from tests.consumers import (
    Clerk,
    Office,
    control_of,
    ends,
    fail,
    fail_twice,
    give_control,
    interrupt_registration,
    is_given_up,
    wake,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import OrderedConsumer

RUN = 60.0
HOUR = 3_600.0


def process(consumer: OrderedConsumer) -> None:
    """One run of a function whose time is limited."""
    consumer.process([Wake("q")], lambda: RUN)


@pytest.fixture
def office() -> Office:
    return Office()


def lose_the_reply() -> None:
    """What happens when a write is done, and its answer is lost."""
    raise StoreUnavailable("the reply was lost")


@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
@pytest.mark.parametrize("max_attempts", [2, 5])
def test_a_failure_that_could_not_be_recorded_at_once_takes_no_attempt_back(
    office: Office, max_attempts: int, on_poison: str
) -> None:
    office.put(0)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk, max_attempts=max_attempts, on_poison=on_poison)
    store = office.interrupt(consumer)
    for _ in range(10):
        # The precaution is noted, and what the handler's failure comes to is refused once.
        store.after["commit"] = [lambda: store.before.update(commit=[fail])]
        process(consumer)
        office.clock.move(HOUR)
    assert clerk.attempts == list(range(1, max_attempts + 1))
    assert is_given_up(consumer)


def test_a_first_failure_is_counted_although_the_second_try_could_not_be_noted(office: Office) -> None:
    office.put(0)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk, max_attempts=3)
    office.interrupt(consumer).before["commit"] = [fail]
    for _ in range(5):
        process(consumer)
        office.clock.move(HOUR)
    assert clerk.attempts == [1, 2, 3]


@pytest.mark.parametrize("max_attempts", [1, 2, 5])
def test_a_good_message_is_not_given_up_for_replies_that_were_lost(office: Office, max_attempts: int) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk, max_attempts=max_attempts, on_poison="dead_letter")
    office.put(0)
    process(consumer)
    office.put(1)
    # Nobody comes for longer than a run: somebody may have died of it.
    office.clock.move(RUN + CLOCKS_DIFFER + 10)
    store = office.interrupt(consumer)
    for _ in range(max_attempts):
        store.after["commit"] = [lose_the_reply]
        process(consumer)
        office.clock.move(RUN + 40)
    assert (clerk.seqs(), consumer.dead_letters(), consumer.parked()) == ([0, 1], [], [])


def test_a_message_whose_commit_was_done_is_not_delivered_again_for_a_lost_reply(office: Office) -> None:
    office.put(0, 1)
    clerk = Clerk()
    consumer = office.hire(clerk, batch_size=1)
    office.interrupt(consumer).after["commit"] = [lose_the_reply]
    assert ends(wake(consumer)) == ["done"]
    assert clerk.seqs() == [0, 1]


def test_a_reply_that_was_lost_twice_is_not_taken_for_a_parked_queue(office: Office) -> None:
    office.put(0)
    tries: list[int] = []

    def handle(batch: Batch) -> None:
        tries.append(batch.attempt)
        if batch.attempt == 1:
            raise ValueError("the first time")
        store.after["commit"] = fail_twice(store)

    consumer = office.hire(handle)
    store = office.interrupt(consumer)
    assert ends(wake(consumer)) == ["done"]
    assert (tries, consumer.checkpoint("q"), consumer.parked()) == ([1, 2], 0, [])


def test_what_is_behind_a_commit_whose_reply_was_lost_twice_does_not_sleep(office: Office) -> None:
    office.put(*range(5))
    tries: list[tuple[int, ...]] = []

    def handle(batch: Batch) -> None:
        tries.append(batch.seqs)
        if tries == [(0,)]:
            raise ValueError("the first time")
        if tries == [(0,), (0,)]:
            store.after["commit"] = fail_twice(store)

    consumer = office.hire(handle, batch_size=1)
    store = office.interrupt(consumer)
    assert ends(wake(consumer)) == ["done"]
    assert tries == [(0,), (0,), (1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(("max_attempts", "poison"), [(1, set()), (1, {0}), (2, {0})])
def test_a_note_that_was_written_and_twice_not_answered_is_no_attempt(
    office: Office, max_attempts: int, poison: set[int]
) -> None:
    office.put(0)
    clerk = Clerk(poison=poison)
    consumer = office.hire(clerk, max_attempts=max_attempts, on_poison="dead_letter")
    store = office.interrupt(consumer)
    store.after["commit"] = fail_twice(store)
    for _ in range(6):
        process(consumer)
        office.clock.move(HOUR)
    assert clerk.attempts == (list(range(1, max_attempts + 1)) if poison else [1])
    assert [letter.attempts for letter in consumer.dead_letters()] == [max_attempts] * len(poison)


def test_a_note_that_may_have_been_written_is_taken_back_at_once(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(), max_attempts=1)
    store = office.interrupt(consumer)
    store.after["commit"] = fail_twice(store)
    assert ends(wake(consumer)) == ["failed"]
    assert consumer.parked() == []


def test_a_redrive_whose_note_got_no_reply_is_no_attempt(office: Office) -> None:
    office.put(0)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    wake(consumer)
    (letter,) = consumer.dead_letters()
    office.interrupt(consumer).after["settle"] = [lose_the_reply]
    with pytest.raises(StoreUnavailable):
        consumer.redrive("q")
    assert consumer.dead_letters() == [letter]


def test_a_first_failure_is_counted_although_the_success_after_it_could_not_be_recorded(office: Office) -> None:
    office.put(0)
    tries: list[int] = []

    def handle(batch: Batch) -> None:
        tries.append(batch.attempt)
        if len(tries) == 2:
            store.before["commit"] = fail_twice(store)
            return
        raise ValueError("all the other times")

    consumer = office.hire(handle, max_attempts=3)
    store = office.interrupt(consumer)
    for _ in range(5):
        process(consumer)
        office.clock.move(HOUR)
    # The second one succeeded: that it comes again is the store's fault.
    assert tries == [1, 2, 2, 3]


class Tardy:
    """A control table whose first commit is heard, not answered, and done after whatever comes next."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._late: list[Any] | None = None
        self._is_first = True

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if name == "commit" and self._is_first:
                self._is_first, self._late = False, [given, named]
                raise StoreUnavailable("timed out")
            answer = getattr(self._store, name)(*given, **named)
            if self._late is not None:
                (late_given, late_named), self._late = self._late, None
                self._store.commit(*late_given, **late_named)
            return answer

        return call


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_message_is_not_given_up_for_a_note_that_was_written_late(max_attempts: int) -> None:
    office = Office()
    office.put(0)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk, max_attempts=max_attempts, on_poison="dead_letter")
    give_control(consumer, Tardy(control_of(consumer)))
    for _ in range(6):
        consumer.process([Wake("q")], lambda: 60.0)
        office.clock.move(3_600)
    assert clerk.attempts == [*range(1, max_attempts + 1)]
    assert [letter.attempts for letter in consumer.dead_letters()] == [max_attempts]


@pytest.mark.parametrize("fails", [True, False])
def test_i7_a_queue_whose_checkpoint_cannot_be_written_is_waited_for_once(*, fails: bool) -> None:
    office = Office()
    office.put(0, queue="bad")
    office.put(0, queue="good")
    waits: list[float] = []

    class Deaf:
        """A control table that does not answer for one queue, once its handler was called."""

        def __init__(self, store: Any) -> None:
            self.store = store
            self.is_deaf = False

        def __getattr__(self, name: str) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                if self.is_deaf and name == "commit" and given[0].queue == "bad":
                    waits.append(min(10.0, seconds_left()))
                    raise StoreUnavailable("timed out")
                return getattr(self.store, name)(*given, **named)

            return call

    def handle(batch: Batch) -> None:
        if batch.queue == "bad":
            deaf.is_deaf = True
            if fails:
                raise ValueError("no such account")

    consumer = office.hire(handle)
    deaf = Deaf(control_of(consumer))
    give_control(consumer, deaf)
    served = consumer.process([Wake("bad"), Wake("good")], lambda: 60.0)
    assert [one.ended for one in served] == ["failed", "done"]
    assert waits[0] == 10.0
    assert set(waits[1:]) == {0.0}, "tried again, and not waited for"


def test_messages_whose_commit_is_found_later_are_counted_as_delivered(office: Office) -> None:
    office.put(*range(5))
    tries: list[tuple[int, ...]] = []

    def handle(batch: Batch) -> None:
        tries.append(batch.seqs)
        if tries == [(0,)]:
            raise ValueError("the first time")
        if tries == [(0,), (0,)]:
            store.after["commit"] = fail_twice(store)

    consumer = office.hire(handle, batch_size=1)
    store = office.interrupt(consumer)
    (served,) = wake(consumer)
    assert (served.ended, served.delivered) == ("done", 5)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_a_run_whose_commit_was_done_and_twice_not_answered_is_no_failure(office: Office, batch_size: int) -> None:
    office.put(*range(5))
    clerk = Clerk()
    consumer = office.hire(clerk, batch_size=batch_size)
    store = office.interrupt(consumer)
    store.after["commit"] = fail_twice(store)
    (served,) = wake(consumer)
    assert (served.ended, served.delivered, served.error) == ("done", 5, None)
    assert clerk.seqs() == [0, 1, 2, 3, 4]


def test_catch_up_counts_what_it_delivered_although_no_answer_came(office: Office) -> None:
    office.put(*range(5))
    consumer = office.hire(Clerk(), batch_size=2)
    store = office.interrupt(consumer)
    store.after["commit"] = fail_twice(store)
    assert consumer.catch_up("q") == 5


@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_message_whose_giving_up_is_found_later_is_counted_as_dead(office: Office, max_attempts: int) -> None:
    office.put(0, 1, 2)

    def handle(batch: Batch) -> None:
        if 0 in batch.seqs:
            if len(batch) == 1 and batch.attempt == max_attempts:
                store.after["commit"] = fail_twice(store)
            raise ValueError("no such account")

    consumer = office.hire(handle, max_attempts=max_attempts, on_poison="dead_letter")
    store = office.interrupt(consumer)
    (served,) = wake(consumer)
    assert served.dead == consumer.dead_letters() != []
    assert (served.ended, served.delivered, consumer.checkpoint("q")) == ("done", 2, 2)


def test_a_message_that_nobody_is_left_to_give_up_is_counted_once_although_no_answer_came(office: Office) -> None:
    """Its last process died: the next one gives it up unseen."""
    office.put(0, 1)

    class Death(BaseException):
        pass

    def handle(batch: Batch) -> None:
        if 0 in batch.seqs:
            raise Death

    consumer = office.hire(handle, max_attempts=1, batch_size=1, on_poison="dead_letter")
    with pytest.raises(Death):
        process(consumer)
    office.clock.move(HOUR)
    store = office.interrupt(consumer)
    store.after["commit"] = fail_twice(store)
    (served,) = wake(consumer)
    assert served.dead == consumer.dead_letters() != []
    assert (served.ended, served.delivered) == ("done", 1)


def test_what_was_neither_written_nor_answered_is_a_failure_and_in_no_figure(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    store = office.interrupt(consumer)
    store.before["commit"] = fail_twice(store)
    (served,) = wake(consumer)
    assert (served.ended, served.delivered) == ("failed", 0)
    assert consumer.checkpoint("q") == -1


def test_a_forced_run_does_not_go_on_from_a_note_of_its_own_that_nobody_answered(office: Office) -> None:
    office.put(0)
    clerk = Clerk()
    consumer = office.hire(clerk, max_attempts=1)
    store = office.interrupt(consumer)
    # The note is written and not answered, and neither is the note that takes it back.
    store.after["commit"] = [lambda: store.before.update(commit=[lambda: store.before.update(fail_all), fail]), fail]
    fail_all: dict[str, Any] = {"commit": fail_twice(store)}
    with pytest.raises(StoreUnavailable):
        consumer.catch_up("q", force=True)
    assert clerk.attempts == [], "it does not go on from a note as if that had been an attempt"


class Unanswered:
    """A control table that does what it is told and never says so; it can be read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            answer = getattr(self._store, name)(*given, **named)
            if name == "commit":
                self.commits += 1
                assert self.commits < 100, "endless"
                raise StoreUnavailable("the reply was lost")
            return answer

        return call


def down(batch: Batch) -> None:
    raise TryLater(f"seq {batch.seqs[0]}: the service is down")


@pytest.mark.parametrize(("handler", "max_attempts"), [(Clerk(), 1), (down, 5)])
@pytest.mark.parametrize("force", [True, False])
def test_a_run_ends_while_no_write_is_answered(
    office: Office, handler: Callable[[Batch], Any], max_attempts: int, *, force: bool
) -> None:
    office.put(0)
    consumer = office.hire(handler, max_attempts=max_attempts)
    give_control(consumer, Unanswered(control_of(consumer)))
    with pytest.raises(StoreUnavailable):
        consumer.catch_up("q", force=force)


def test_a_queue_that_was_parked_without_an_answer_is_a_failure_and_comes_again(office: Office) -> None:
    """A run that ends as waiting would acknowledge its wake, and nobody would wake the queue when its time has come."""
    office.put(0)

    def handle(batch: Batch) -> None:
        store.after["commit"] = fail_twice(store)
        down(batch)

    consumer = office.hire(handle)
    store = office.interrupt(consumer)
    (served,) = wake(consumer)
    assert (served.ended, type(served.error)) == ("failed", StoreUnavailable)


def fail_to_read_the_registration(consumer: OrderedConsumer) -> None:
    """Once, the next time it is read."""
    interrupt_registration(consumer).before["register"] = [fail]


@pytest.mark.parametrize("pause", [0.0, 1_000.0], ids=["fresh", "overdue"])
def test_an_attempt_counts_once_although_the_registration_could_not_be_read_after_it(
    office: Office, pause: float
) -> None:
    tries: list[int] = []

    def handle(batch: Batch) -> None:
        if 1 not in batch.seqs:
            return
        tries.append(batch.attempt)
        # The registration is read again once a minute.
        office.clock.move(61.0)
        if len(tries) == 1:
            fail_to_read_the_registration(consumer)
        raise ValueError("no such account")

    consumer = office.hire(handle, max_attempts=2, batch_size=1, on_poison="dead_letter")
    office.put(0)
    consumer.catch_up("q")
    office.put(1)
    office.clock.move(pause)
    for _ in range(4):
        consumer.process([Wake("q")], lambda: 300.0)
        office.clock.move(HOUR)
    assert tries == [1, 2]
    assert [(letter.attempts, letter.error) for letter in consumer.dead_letters()] == [
        (2, "ValueError: no such account")
    ]
