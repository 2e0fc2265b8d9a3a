"""An exception that nobody expected is recorded for its queue, and stops no other one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InternalError
from stream_sort.aws_lambda.redrives import RedriveRequest, redrive
from stream_sort.aws_lambda.wakes import batch_response
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk, Office, control_of, ends, give_control, wake

if TYPE_CHECKING:
    from stream_sort import OrderedConsumer


class Buggy:
    """A store in which one method has a bug, met by one queue only."""

    def __init__(self, store: Any, method: str, queue: str = "worse") -> None:
        self._store, self._method, self._queue = store, method, queue
        self.mended = False

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if name == self._method and not self.mended and self._queue in str(arguments):
                raise KeyError("nobody thought of this")
            return getattr(self._store, name)(*arguments, **named)

        return call


@pytest.fixture
def office() -> Office:
    office = Office()
    for queue in ("a", "worse", "z"):
        office.put(0, 1, queue=queue)
    return office


def with_buggy_control(consumer: OrderedConsumer, method: str) -> Buggy:
    control = Buggy(control_of(consumer), method)
    give_control(consumer, control)
    return control


def with_buggy_items(office: Office) -> Buggy:
    stores = office.sorter.stores
    items = Buggy(stores.items, "page")
    office.sorter._queues = replace(office.sorter._queues, items=items)  # type: ignore[arg-type]
    return items


def test_a_bug_in_one_queue_parks_that_queue_and_all_others_are_delivered(office: Office) -> None:
    items = with_buggy_items(office)
    clerk = Clerk()
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    served = wake(consumer, "a", "worse", "z")
    assert ends(served) == ["done", "parked", "done"]
    assert (clerk.seqs("a"), clerk.seqs("z")) == ([0, 1], [0, 1])
    (parked,) = consumer.parked()
    assert (parked.queue, parked.seq, parked.attempts, parked.damaged) == ("worse", 0, 0, False)
    assert parked.error.startswith("InternalError: queue 'worse': unexpected KeyError('nobody thought of this')")
    assert isinstance(served[1].error, InternalError)
    assert isinstance(served[1].error.__cause__, KeyError)
    items.mended = True
    office.clock.move(2)
    assert ends(wake(consumer, "worse")) == ["done"]
    assert clerk.seqs("worse") == [0, 1]


def test_a_bug_is_no_attempt_at_a_message_however_long_it_lasts(office: Office) -> None:
    with_buggy_items(office)
    consumer = office.hire(Clerk(), max_attempts=1, on_poison="dead_letter")
    for _ in range(5):
        assert ends(wake(consumer, "worse")) == ["parked"]
        office.clock.move(1_000)
    assert ([one.attempts for one in consumer.parked()], consumer.dead_letters()) == ([0], [])


def test_a_message_that_our_code_cannot_take_can_be_discarded(office: Office) -> None:
    items = with_buggy_items(office)
    clerk = Clerk()
    consumer = office.hire(clerk)
    wake(consumer, "worse")
    consumer.discard("worse", 0, "our code stumbles over it")
    items.mended = True
    wake(consumer, "worse")
    assert clerk.seqs("worse") == [1]


def test_catch_up_raises_a_bug_by_its_name(office: Office) -> None:
    with_buggy_items(office)
    with pytest.raises(InternalError, match="unexpected KeyError"):
        office.hire(Clerk()).catch_up("worse")


@pytest.mark.parametrize("method", ["standing", "create", "commit"])
def test_a_bug_that_cannot_be_recorded_is_reported_back_for_its_own_records_only(office: Office, method: str) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk)
    with_buggy_control(consumer, method)
    wakes = [Wake(queue, None, (f"record of {queue}",)) for queue in ("a", "worse", "z")]
    served = consumer.process(wakes)
    assert ends(served) == ["done", "failed", "done"]
    assert batch_response(wakes, served) == {"batchItemFailures": [{"itemIdentifier": "record of worse"}]}
    assert (clerk.seqs("a"), clerk.seqs("z")) == ([0, 1], [0, 1])


def test_a_bug_while_what_is_left_is_handed_over_stops_no_other_queue(office: Office) -> None:
    consumer = office.hire(Clerk(), batch_size=1)
    consumer._context = replace(consumer._context, waker=Buggy(office.waker, "wake"))  # type: ignore[arg-type]
    times = iter([60.0, 60.0, 60.0, 60.0])
    served = consumer.process([Wake(queue) for queue in ("a", "worse", "z")], lambda: next(times, 0.0))
    assert [(one.queue, one.ended) for one in served if one.ended != "handed over"] == [("worse", "failed")]
    assert [queue for queue, _ in office.waker.sent] == ["z", "a"]


def test_a_bug_in_one_queue_stops_no_redrive_of_the_others(office: Office) -> None:
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk)
    wake(consumer, "a", "worse", "z")
    clerk.poison.clear()
    with_buggy_control(consumer, "of_queue")
    done = redrive(consumer, RedriveRequest(), None)
    assert (done.queues, done.delivered) == (3, 4)
    (failed,) = done.failed
    assert failed["queue"] == "worse"
    assert failed["error"].startswith("InternalError: queue 'worse': unexpected KeyError")


class BadWaker:
    """A waker of a user's that raises what it likes."""

    def wake(self, queue: str, delay: float) -> None:
        raise KeyError(f"no way to wake {queue} in {delay}")


def test_a_queue_that_is_parked_is_so_whatever_its_waker_raises(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.waker = BadWaker()  # type: ignore[assignment]
    consumer = office.hire(clerk)
    wakes = [Wake(queue, None, (f"record of {queue}",)) for queue in ("a", "worse")]
    served = consumer.process(wakes)
    assert (ends(served), [one.error for one in served]) == (["parked"] * 2, [None] * 2)
    assert batch_response(wakes, served) == {"batchItemFailures": []}
    assert {one.error for one in consumer.parked()} == {"ValueError: poison 0"}


def test_a_discard_that_is_done_says_so_whatever_its_waker_raises(office: Office) -> None:
    office.waker = BadWaker()  # type: ignore[assignment]
    consumer = office.hire(Clerk(poison={0}))
    wake(consumer, "a")
    consumer.discard("a", 0, "not ours")
    assert [one.seq for one in consumer.discarded("a")] == [0]


def test_a_waker_with_a_bug_makes_no_attempt_count_twice() -> None:
    office, clerk = Office(), Clerk(poison={0})
    office.put(0)
    office.waker = BadWaker()  # type: ignore[assignment]
    consumer = office.hire(clerk, max_attempts=5, on_poison="dead_letter")
    for _ in range(6):
        wake(consumer)
        office.clock.move(3_600)
    assert (clerk.attempts, [one.attempts for one in consumer.dead_letters()]) == ([1, 2, 3, 4, 5], [5])
