"""When time is short a run hands over what is left; but never before it got on, and never a trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable
from stream_sort.aws_lambda.wakes import batch_response
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk, NotedWaker, Office, control_of, ends, give_control, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import Batch, OrderedConsumer


@pytest.fixture
def office() -> Office:
    return Office()


class Timed:
    """A run of so many seconds, of which each batch takes some."""

    def __init__(self, office: Office, seconds: float, batch_takes: float) -> None:
        self._office = office
        self._end = office.ticks[0] + seconds
        self._batch_takes = batch_takes

    def takes_time(self, handler: Callable[[Batch], object]) -> Callable[[Batch], object]:
        def handle(batch: Batch) -> object:
            self._office.ticks[0] += self._batch_takes
            return handler(batch)

        return handle

    def left(self) -> float:
        return self._end - self._office.ticks[0]


class SlowWaker(NotedWaker):
    """SQS out of reach, unless that is over: each wake takes five seconds to fail."""

    def __init__(self, office: Office) -> None:
        super().__init__(fails=True)
        self._office = office

    def wake(self, queue: str, delay: float) -> None:
        self._office.ticks[0] += 5.0 * self.fails
        super().wake(queue, delay)


class SlowOutage:
    """A control table whose commits take two seconds to fail once the time that is left is short."""

    def __init__(self, store: Any, office: Office, timed: Timed) -> None:
        self._store = store
        self._office = office
        self._timed = timed
        self.is_over = False

    def __getattr__(self, name: str) -> Any:
        if name == "commit" and self._timed.left() < 15.0 and not self.is_over:
            return self._fail
        return getattr(self._store, name)

    def _fail(self, *_: Any) -> None:
        self._office.ticks[0] += 2.0
        raise StoreUnavailable("out of reach")


class SlowTable:
    """A control table that takes a quarter of a second for each commit."""

    def __init__(self, store: Any, office: Office) -> None:
        self._store = store
        self._office = office
        self.seconds = 0.25

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *arguments: Any) -> Any:
        self._office.ticks[0] += self.seconds
        return self._store.commit(*arguments)


def run(
    office: Office, handler: Callable[[Batch], object], *queues: str, seconds: float, takes: float = 1.0
) -> list[str]:
    """One invocation; how its queues ended."""
    timed = Timed(office, seconds, takes)
    consumer = office.hire(timed.takes_time(handler), batch_size=2)
    return ends(consumer.process([Wake(queue) for queue in queues or ("q",)], timed.left))


def test_what_is_left_is_handed_to_a_new_wake(office: Office) -> None:
    clerk = Clerk()
    office.put(*range(10))
    assert run(office, clerk, seconds=4.5) == ["handed over"]
    assert (clerk.seqs(), office.waker.sent) == ([0, 1, 2, 3, 4, 5], [("q", 0.0)])
    while office.waker.sent:
        office.waker.sent.clear()
        run(office, clerk, seconds=4.5)
    assert clerk.seqs() == list(range(10))


def test_enough_time_hands_nothing_over(office: Office) -> None:
    clerk = Clerk()
    office.put(*range(10))
    assert run(office, clerk, seconds=60) == ["done"]
    assert (clerk.seqs(), office.waker.sent) == (list(range(10)), [])


NAMES = tuple(f"queue {number}" for number in range(40))


def hire_for_a_minute(office: Office, handler: Callable[[Batch], object]) -> tuple[OrderedConsumer, Timed]:
    """A consumer whose run takes a minute, each of its batches a second, and each of its wakes five."""
    office.waker = SlowWaker(office)
    timed = Timed(office, 60.0, 1.0)
    for name in NAMES:
        office.put(*range(8), queue=name)
    return office.hire(timed.takes_time(handler), batch_size=2), timed


def test_handing_over_many_queues_while_no_wake_can_be_sent_ends_in_time_and_all_come_again(office: Office) -> None:
    clerk = Clerk()
    consumer, timed = hire_for_a_minute(office, clerk)
    wakes = [Wake(name, None, (name,)) for name in (*NAMES, "idle")]
    served = consumer.process(wakes, timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    assert ends(served) == ["failed"] * 40 + ["done"]
    assert {type(one.error) for one in served} == {StoreUnavailable, type(None)}
    assert [one["itemIdentifier"] for one in batch_response(wakes, served)["batchItemFailures"]] == list(NAMES)
    wake(consumer, *NAMES)
    assert all(clerk.seqs(name) == list(range(8)) for name in NAMES)


def test_trouble_is_recorded_in_time_although_no_wake_can_be_sent(office: Office) -> None:
    consumer, timed = hire_for_a_minute(office, Clerk(poison={0}))
    served = consumer.process([Wake(name) for name in NAMES], timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    assert ends(served) == ["parked"] * 40
    # The time was enough to try some of the messages by themselves.
    assert sorted({one.attempts for one in consumer.parked()}) == [0, 1]
    assert len(consumer.parked()) == 40


def test_trouble_that_cannot_be_recorded_in_time_is_kept_for_the_next_run(office: Office) -> None:
    consumer, timed = hire_for_a_minute(office, Clerk(poison={0}))
    outage = SlowOutage(control_of(consumer), office, timed)
    give_control(consumer, outage)
    served = consumer.process([Wake(name) for name in NAMES], timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    assert (set(ends(served)), consumer.parked()) == ({"failed"}, [])
    outage.is_over, office.waker.fails = True, False
    wake(consumer, "idle")
    parked = consumer.parked()
    assert {one.attempts for one in parked} == {1}, "what failed by itself"
    assert sorted(office.waker.sent) == sorted((one.queue, 2.0) for one in parked)


@pytest.mark.parametrize("count", [1, 8], ids=["a message alone", "a chunk"])
def test_giving_back_many_queues_in_trouble_ends_in_time_although_the_table_is_slow(office: Office, count: int) -> None:
    names = [f"queue {number}" for number in range(100)]
    for name in names:
        office.put(*range(count), queue=name)
    clerk, timed = Clerk(poison={0}), Timed(office, 59.9, 0.5)
    consumer = office.hire(timed.takes_time(clerk), batch_size=2)
    table = SlowTable(control_of(consumer), office)
    give_control(consumer, table)
    served = consumer.process([Wake(name, None, (name,)) for name in names], timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    recorded = [one.queue for one in consumer.parked()]
    assert 30 < len(recorded) < 100
    assert sorted(recorded) == sorted(one.queue for one in served if one.ended == "parked")
    assert {one.ended for one in served if one.queue not in recorded} == {"failed"}
    table.seconds = 0.0
    wake(consumer, "idle")
    # What failed by itself is kept until it is recorded; what was not tried by itself just comes again.
    assert len(consumer.parked()) == (100 if count == 1 else len(recorded))
    assert {one.attempts for one in consumer.parked()} == {int(count == 1)}
    clerk.poison.clear()
    office.clock.move(1_000)
    wake(consumer, *names)
    assert all(clerk.seqs(name) == list(range(count)) for name in names)


def test_a_slow_handler_is_handed_over_and_not_given_back_though_little_time_is_left(office: Office) -> None:
    clerk = Clerk()
    office.put(*range(8), queue="slow")
    assert run(office, clerk, "slow", seconds=60.0, takes=58.0) == ["handed over"]
    assert [queue for queue, _ in office.waker.sent] == ["slow"]


@pytest.mark.parametrize("seconds", [0.0, 0.001, 1.0])
def test_even_with_no_time_at_all_a_run_gets_on(office: Office, seconds: float) -> None:
    clerk = Clerk()
    office.put(*range(6))
    office.put(0, queue="other")
    runs, queues = 0, ["q", "other"]
    while queues:
        office.waker.sent.clear()
        run(office, clerk, *queues, seconds=seconds)
        queues, runs = [queue for queue, _ in office.waker.sent], runs + 1
        assert runs < 20
    assert (clerk.seqs(), clerk.seqs("other")) == (list(range(6)), [0])


def test_i7_queues_that_did_not_get_their_turn_are_handed_over_too(office: Office) -> None:
    clerk = Clerk()
    names = [f"queue {number}" for number in range(5)]
    for name in names:
        office.put(0, queue=name)
    assert run(office, clerk, *names, seconds=4.0) == ["handed over"] * 5
    assert [queue for queue, _ in clerk.done] == names[:3]
    assert [queue for queue, _ in office.waker.sent] == names[3:] + names[:3]


def test_a_wake_that_cannot_be_sent_is_reported_back(office: Office) -> None:
    office.put(*range(6))
    office.waker.fails = True
    assert run(office, Clerk(), seconds=1.0) == ["failed"]


def test_i7_a_slow_poison_message_is_found_over_several_runs_and_holds_nothing_else_up(office: Office) -> None:
    """Each run has time for one call of the handler only: it must not begin at the whole chunk again for ever."""
    clerk = Clerk(poison={3})
    office.put(*range(8))
    for _ in range(30):
        run(office, clerk, seconds=1.5)
        office.clock.move(1_000)
    row = office.row()
    assert row is not None
    assert row.parked is not None
    assert (clerk.seqs(), row.parked.seq, row.parked.next_try) == ([0, 1, 2], 3, None)
    assert row.parked.error == "ValueError: poison 3"


def test_a_trouble_that_is_over_is_handed_over_like_any_rest(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1)
    assert run(office, clerk, seconds=3.5) == ["handed over"]
    assert (clerk.batches, office.waker.sent) == ([("q", (0, 1)), ("q", (0,))], [("q", 0.0)])


def test_a_part_of_the_time_is_kept_for_handing_over(office: Office) -> None:
    clerk = Clerk()
    office.put(*range(8))
    left = iter([10.0, 2.1, 1.9])
    consumer = office.hire(clerk, batch_size=2)
    assert ends(consumer.process([Wake("q")], lambda: next(left))) == ["handed over"]
    assert clerk.seqs() == [0, 1, 2, 3]


def test_a_message_that_never_failed_by_itself_is_not_given_up(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1)
    timed = Timed(office, 1.5, 1.0)
    consumer = office.hire(timed.takes_time(clerk), on_poison="dead_letter", max_attempts=1)
    (served,) = consumer.process([Wake("q")], timed.left)
    assert (served.ended, served.dead, office.waker.sent) == ("parked", [], [("q", 2.0)])
    assert served.parked is not None
    assert (served.parked.seq, served.parked.attempts) == (0, 0)
    office.clock.move(2)
    (served,) = wake(office.hire(clerk, on_poison="dead_letter", max_attempts=1))
    assert ([letter.seq for letter in served.dead], clerk.seqs()) == ([1], [0])


def test_a_message_given_up_at_the_last_moment_leaves_the_rest_to_a_new_wake(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0, 1)
    timed = Timed(office, 1.5, 1.0)
    consumer = office.hire(timed.takes_time(clerk), batch_size=1, on_poison="dead_letter", max_attempts=1)
    (served,) = consumer.process([Wake("q")], timed.left)
    assert (served.ended, [letter.seq for letter in served.dead]) == ("handed over", [0])
    assert office.waker.sent == [("q", 0.0)]


def with_dead_letters(office: Office, count: int, clerk: Clerk, timed: Timed) -> OrderedConsumer:
    """A consumer that is parked behind so many dead letters; its messages are mended by now, and take their time."""
    office.put(*range(count))
    clerk.poison = set(range(count + 1))
    options: dict[str, Any] = {"batch_size": 1, "max_attempts": 1}
    wake(office.hire(clerk, on_poison="dead_letter", **options))
    office.put(count)
    wake(office.hire(clerk, **options))
    clerk.poison = set()
    return office.hire(timed.takes_time(clerk), on_poison="dead_letter", **options)


def test_a_redrive_begins_no_dead_letter_that_there_may_be_no_time_for(office: Office) -> None:
    clerk, timed = Clerk(), Timed(office, 60.0, 12.0)
    consumer = with_dead_letters(office, 6, clerk, timed)
    delivered = consumer.redrive("q", time_left=timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    assert delivered == 4
    assert [(one.seq, one.attempts) for one in consumer.dead_letters()] == [(4, 1), (5, 1)]


def test_a_redrive_begins_no_parked_message_that_there_may_be_no_time_for(office: Office) -> None:
    clerk, timed = Clerk(), Timed(office, 23.0, 12.0)
    consumer = with_dead_letters(office, 1, clerk, timed)
    delivered = consumer.redrive("q", time_left=timed.left)
    assert timed.left() > 0, "Lambda would have killed it"
    assert delivered == 1
    assert ([one.seq for one in consumer.parked()], consumer.dead_letters()) == ([1], [])
    assert consumer.redrive("q", time_left=Timed(office, 60.0, 12.0).left) == 1


def test_a_handler_that_does_parts_in_transactions_gets_on_in_short_runs(office: Office) -> None:
    done: list[int] = []

    def handle(batch: Batch) -> int:
        batch.transaction.put("Effects", {"id": str(batch.seqs[0])})
        done.append(batch.seqs[0])
        return batch.seqs[0]

    office.put(*range(4))
    for _ in range(20):
        run(office, handle, seconds=1.0)
        office.clock.move(1_000)
    effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
    assert [effect.request["Item"]["id"] for effect in effects] == ["0", "1", "2", "3"]


def test_a_queue_alone_with_its_failure_pauses_before_it_is_tried_again(office: Office) -> None:
    for queue in ("q", "one", "other"):
        office.put(0, queue=queue)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk)
    wake(consumer)
    assert office.pauses == [0.2]
    wake(consumer, "one", "other")
    assert office.pauses == [0.2]
