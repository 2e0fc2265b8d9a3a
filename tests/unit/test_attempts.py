"""max_attempts is how often the handler is given a message by itself, whether it fails or kills its process."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import pytest

from stream_sort import Batch, OrderedConsumer, PartlyDone, StoreUnavailable, TryLater
from stream_sort.model.consumption import Wake
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.model.retries import LONGEST_RUN
from stream_sort.sorter import Sorter
from tests.consumers import Clerk, Office, ends, fail, is_given_up, wake

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = 60.0
HOUR = 3_600.0


class Death(BaseException):
    """Ends a process: no line of the services catches it."""


class Killer:
    """A handler that one message kills; it notes the batches it was given."""

    def __init__(self, *deadly: int) -> None:
        self.deadly = set(deadly)
        self.batches: list[tuple[int, ...]] = []
        self.attempts: list[int] = []

    def __call__(self, batch: Batch) -> None:
        self.batches.append(batch.seqs)
        self.attempts.append(batch.attempt)
        if self.deadly.intersection(batch.seqs):
            raise Death


def process(consumer: OrderedConsumer) -> None:
    """One run of a function whose time is limited."""
    consumer.process([Wake("q")], lambda: RUN)


def catch_up(consumer: OrderedConsumer) -> None:
    consumer.catch_up("q")


def kill_until_it_is_given_up(office: Office, consumer: OrderedConsumer, run: Callable[[OrderedConsumer], None]) -> int:
    """How many processes died."""
    deaths = 0
    while not is_given_up(consumer):
        try:
            run(consumer)
        except Death:
            deaths += 1
            assert deaths < 20, "never set aside"
        office.clock.move(LONGEST_RUN + CLOCKS_DIFFER)
    return deaths


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.mark.parametrize(("writes", "reads"), [(-15.0, 0.0), (-CLOCKS_DIFFER, 0.0), (0.0, CLOCKS_DIFFER)])
def test_a_fresh_message_of_a_machine_whose_clock_is_behind_is_not_given_up_for_one_death(
    office: Office, writes: float, reads: float
) -> None:
    sorter, killer = office.sorter, Killer(1)

    def machine(ahead: float) -> Sorter:
        return Sorter(sorter.homes, sorter.options, lambda: office.clock() + ahead)

    writer, reader = machine(writes), machine(reads)
    consumer = OrderedConsumer("billing", killer, sorter=reader, max_attempts=2, on_poison="dead_letter")
    office.put(0)
    consumer.process([Wake("q")], lambda: 10.0)
    office.clock.move(300)
    writer.put({"queue": "q", "seq": 1})
    with pytest.raises(Death):
        consumer.process([Wake("q")], lambda: 10.0)
    killer.deadly.clear()
    office.clock.move(300)
    consumer.process([Wake("q")], lambda: 10.0)
    assert (killer.batches, consumer.dead_letters()) == ([(0,), (1,), (1,)], [])


@pytest.mark.parametrize("run", [10.0, RUN])
@pytest.mark.parametrize("max_attempts", [2, 3])
def test_a_message_that_hangs_each_run_is_called_once_more_than_its_attempts_at_the_most(
    office: Office, run: float, max_attempts: int
) -> None:
    office.put(0)
    killer = Killer(0)
    consumer = office.hire(killer, max_attempts=max_attempts, on_poison="dead_letter")
    for _ in range(100):
        with suppress(Death):
            consumer.process([Wake("q")], lambda: run)
        if consumer.dead_letters():
            break
        office.clock.move(run)
    assert len(killer.batches) <= max_attempts + 1
    assert [letter.attempts for letter in consumer.dead_letters()] == [max_attempts]


@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("others", [0, 6], ids=["alone", "among others"])
@pytest.mark.parametrize("max_attempts", [1, 2, 3, 5])
def test_a_message_that_fails_is_given_to_the_handler_by_itself_exactly_max_attempts_times(
    office: Office, max_attempts: int, others: int, batch_size: int, on_poison: str
) -> None:
    clerk = Clerk(poison={others // 2})
    office.put(*range(others + 1))
    consumer = office.hire(clerk, max_attempts=max_attempts, batch_size=batch_size, on_poison=on_poison)
    for _ in range(10):
        wake(consumer)
        office.clock.move(HOUR)
    tries = [n for (_, seqs), n in zip(clerk.batches, clerk.attempts, strict=True) if seqs == (others // 2,)]
    assert tries == list(range(1, max_attempts + 1))
    given_up = consumer.dead_letters() or consumer.parked()
    assert [(one.seq, one.attempts, one.next_try) for one in given_up] == [(others // 2, max_attempts, None)]


def test_two_attempts_are_two_calls_of_the_handler(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=2, batch_size=1)
    while not is_given_up(consumer):
        wake(consumer)
        office.clock.move(HOUR)
    assert clerk.attempts == [1, 2]


def test_a_message_that_failed_at_the_end_of_a_batch_has_all_its_attempts_left(office: Office) -> None:
    alone: list[int] = []

    def partly(batch: Batch) -> None:
        if batch.seqs == (2,):
            alone.append(batch.attempt)
        raise PartlyDone(min(batch.seqs[-1], 1)) from ValueError("never")

    office.put(0, 1, 2)
    consumer = office.hire(partly, max_attempts=2, on_poison="dead_letter")
    for _ in range(4):
        wake(consumer)
        office.clock.move(HOUR)
    assert alone == [1, 2]


def test_the_second_try_comes_at_once_and_all_others_after_a_while(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=5)
    calls = []
    for _ in range(4):
        wake(consumer)
        calls.append(len(clerk.batches))
        office.clock.move(HOUR)
    assert calls == [2, 3, 4, 5]


def test_a_run_whose_time_is_over_after_the_first_try_has_counted_one(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=3)
    times = iter([RUN])
    (served,) = consumer.process([Wake("q")], lambda: next(times, 0.0))
    assert (served.ended, [one.attempts for one in consumer.parked()]) == ("parked", [1])
    for _ in range(3):
        office.clock.move(HOUR)
        wake(consumer)
    assert clerk.attempts == [1, 2, 3]


@pytest.mark.parametrize("run", [process, catch_up])
@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("max_attempts", [1, 2, 3, 5])
def test_a_message_that_kills_its_process_kills_exactly_max_attempts_of_them(
    office: Office, max_attempts: int, batch_size: int, on_poison: str, run: Callable[[OrderedConsumer], None]
) -> None:
    killer = Killer(0)
    office.put(0)
    consumer = office.hire(killer, max_attempts=max_attempts, batch_size=batch_size, on_poison=on_poison)
    assert kill_until_it_is_given_up(office, consumer, run) == max_attempts
    given_up = consumer.dead_letters() or consumer.parked()
    assert [(one.seq, one.attempts) for one in given_up] == [(0, max_attempts)]


@pytest.mark.parametrize("run", [process, catch_up])
@pytest.mark.parametrize("max_attempts", [1, 2, 3])
def test_of_several_messages_the_search_for_the_deadly_one_does_not_count(
    office: Office, max_attempts: int, run: Callable[[OrderedConsumer], None]
) -> None:
    killer = Killer(3)
    office.put(*range(6))
    consumer = office.hire(killer, max_attempts=max_attempts, on_poison="dead_letter")
    deaths = kill_until_it_is_given_up(office, consumer, run)
    assert killer.batches.count((3,)) == max_attempts
    # Twice in a batch of six: unnoted, and noted.
    assert deaths == max_attempts + 2
    run(consumer)
    assert consumer.checkpoint("q") == 5


@pytest.mark.parametrize("run", [process, catch_up])
def test_behind_other_messages_a_deadly_one_kills_as_many(
    office: Office, run: Callable[[OrderedConsumer], None]
) -> None:
    killer = Killer(2)
    office.put(0, 1, 2, 3)
    consumer = office.hire(killer, max_attempts=2, batch_size=1, on_poison="dead_letter")
    assert kill_until_it_is_given_up(office, consumer, run) == 2
    run(consumer)
    assert [seqs for seqs in killer.batches if seqs != (2,)] == [(0,), (1,), (3,)]


@pytest.mark.parametrize("run", [process, catch_up])
def test_a_message_that_nobody_was_there_for_is_not_given_up_for_a_death_that_was_only_suspected(
    office: Office, run: Callable[[OrderedConsumer], None]
) -> None:
    clerk = Clerk(poison={1})
    consumer = office.hire(clerk, max_attempts=2, batch_size=1, on_poison="dead_letter")
    office.put(0)
    run(consumer)
    office.put(1)
    office.clock.move(HOUR)
    run(consumer)
    assert (clerk.attempts, [one.attempts for one in consumer.dead_letters()]) == ([1, 1, 2], [2])


def test_a_suspicion_leaves_no_trace_where_the_message_succeeds_or_fails_by_itself(office: Office) -> None:
    clerk = Clerk(poison={1})
    consumer = office.hire(clerk, max_attempts=5)
    office.put(0)
    process(consumer)
    office.put(1)
    office.clock.move(HOUR)
    process(consumer)
    assert [one.attempts for one in consumer.parked()] == [2]
    clerk.poison.clear()
    office.clock.move(4)
    process(consumer)
    assert (clerk.attempts, consumer.parked()) == ([1, 1, 2, 3], [])


def test_a_death_at_the_second_try_of_a_run_counts_the_first_one_too(office: Office) -> None:
    calls: list[int] = []

    def kills_fails_kills(batch: Batch) -> None:
        if batch.seqs != (0,):
            calls.append(batch.attempt)
            if len(calls) == 2:
                raise ValueError("not yet")
            raise Death

    office.put(0)
    consumer = office.hire(kills_fails_kills, max_attempts=3, on_poison="dead_letter")
    process(consumer)
    office.put(1)
    assert kill_until_it_is_given_up(office, consumer, process) == 2
    # The second process cannot know of the first one for certain, before it dies, too.
    assert calls == [1, 1, 2]
    assert [one.attempts for one in consumer.dead_letters()] == [3]


class Plan:
    """A handler that fails or kills as planned, call after call with one message; then it kills."""

    def __init__(self, plan: str) -> None:
        self.plan = plan
        self.attempts: list[int] = []

    def __call__(self, batch: Batch) -> None:
        if batch.seqs == (0,):
            return
        self.attempts.append(batch.attempt)
        if self.plan[len(self.attempts) - 1 :][:1] == "F":
            raise ValueError("no")
        raise Death


@pytest.mark.parametrize("run", [process, catch_up])
@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("max_attempts", [2, 3, 4, 5])
def test_failures_and_deaths_of_one_message_add_up_to_max_attempts(
    max_attempts: int, batch_size: int, run: Callable[[OrderedConsumer], None]
) -> None:
    for calls in product("FD", repeat=max_attempts - 1):
        office, plan = Office(), Plan("F" + "".join(calls))
        consumer = office.hire(plan, max_attempts=max_attempts, batch_size=batch_size, on_poison="dead_letter")
        office.put(0)
        run(consumer)
        office.put(1)
        kill_until_it_is_given_up(office, consumer, run)
        assert plan.attempts == list(range(1, max_attempts + 1)), plan.plan
        assert [one.attempts for one in consumer.dead_letters()] == [max_attempts], plan.plan


def test_a_first_death_does_not_count_if_the_next_process_lives_and_only_that_one(office: Office) -> None:
    plan = Plan("DFDF")
    consumer = office.hire(plan, max_attempts=4, on_poison="dead_letter")
    office.put(0)
    process(consumer)
    office.put(1)
    kill_until_it_is_given_up(office, consumer, process)
    assert plan.attempts == [1, 1, 2, 4]


@pytest.mark.parametrize("run", [process, catch_up])
@pytest.mark.parametrize("max_attempts", [2, 3, 5])
def test_a_deadly_message_that_comes_to_an_idle_queue_kills_exactly_max_attempts_processes(
    office: Office, max_attempts: int, run: Callable[[OrderedConsumer], None]
) -> None:
    killer = Killer(1)
    consumer = office.hire(killer, max_attempts=max_attempts, batch_size=1, on_poison="dead_letter")
    office.put(0)
    run(consumer)
    office.clock.move(10)
    office.put(1)
    assert kill_until_it_is_given_up(office, consumer, run) == max_attempts


@pytest.mark.parametrize("max_attempts", [2, 3, 5])
def test_a_deadly_message_that_waited_out_a_pause_kills_one_process_fewer_and_never_one_more(
    office: Office, max_attempts: int
) -> None:
    killer = Killer(1)
    consumer = office.hire(killer, max_attempts=max_attempts, batch_size=1, on_poison="dead_letter")
    office.put(0)
    process(consumer)
    office.clock.move(10)
    office.put(1)
    office.clock.move(HOUR)
    # The tables look the same as if a process had died of it that could note nothing.
    assert kill_until_it_is_given_up(office, consumer, process) == max_attempts - 1


def test_a_queues_very_first_message_is_no_suspect_however_long_it_waited(office: Office) -> None:
    killer = Killer(0)
    office.put(0)
    office.clock.move(HOUR)
    consumer = office.hire(killer, max_attempts=2, on_poison="dead_letter")
    assert kill_until_it_is_given_up(office, consumer, process) == 2


def test_what_gets_on_costs_one_commit_and_with_one_attempt_two(office: Office) -> None:
    for max_attempts, commits in ((2, 1), (1, 2)):
        office.put(0, queue=f"q{max_attempts}")
        consumer = office.hire(Clerk(), max_attempts=max_attempts)
        store = office.interrupt(consumer)
        assert ends(wake(consumer, f"q{max_attempts}")) == ["done"]
        assert store.calls.count("commit") == commits
        # Of several messages none is tried by itself.
        office.put(1, 2, queue=f"q{max_attempts}")
        store.calls.clear()
        wake(consumer, f"q{max_attempts}")
        assert store.calls.count("commit") == 1


def test_deaths_in_redrives_of_a_dead_letter_are_counted(office: Office) -> None:
    killer = Killer(0)
    office.put(0)
    consumer = office.hire(killer, max_attempts=1, on_poison="dead_letter")
    kill_until_it_is_given_up(office, consumer, process)
    for _ in range(3):
        with pytest.raises(Death):
            consumer.redrive("q")
    assert killer.attempts == [1, 2, 3, 4]
    (letter,) = consumer.dead_letters()
    assert (letter.attempts, letter.error.split(":")[0]) == (4, "TryUnderWay")
    killer.deadly.clear()
    assert (consumer.redrive("q"), consumer.dead_letters()) == (1, [])


@pytest.mark.parametrize("outage", [TryLater("later"), StoreUnavailable("no answer")], ids=["later", "store"])
def test_a_redrive_that_no_message_is_at_fault_for_is_no_attempt(office: Office, outage: Exception) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    process(consumer)
    clerk.poison.clear()
    store = office.interrupt(consumer)

    def fail() -> None:
        raise outage

    # The first one notes the attempt.
    store.after["settle"] = [lambda: store.before.update(settle=[fail])]
    with suppress(StoreUnavailable):
        consumer.redrive("q")
    assert [letter.attempts for letter in consumer.dead_letters()] == [1]
    assert (consumer.redrive("q"), clerk.attempts) == (1, [1, 2, 2])


def test_a_redrive_whose_failure_could_not_be_recorded_is_an_attempt(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk, max_attempts=1, on_poison="dead_letter")
    process(consumer)
    store = office.interrupt(consumer)
    # The first one notes the attempt.
    store.after["settle"] = [lambda: store.before.update(settle=[fail])]
    with pytest.raises(StoreUnavailable):
        consumer.redrive("q")
    assert [letter.attempts for letter in consumer.dead_letters()] == [2]
    assert (consumer.redrive("q"), clerk.attempts) == (0, [1, 2, 3])


def test_a_redrive_in_an_outage_that_could_not_be_recorded_either_is_no_attempt(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}), max_attempts=1, on_poison="dead_letter")
    process(consumer)

    def handle(_: Batch) -> None:
        store.before["settle"] = [fail]
        raise TryLater("later")

    later = office.hire(handle, on_poison="dead_letter")
    store = office.interrupt(later)
    with pytest.raises(StoreUnavailable):
        later.redrive("q")
    assert [letter.attempts for letter in consumer.dead_letters()] == [1]


@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("is_skipped", [False, True], ids=["plain", "behind a tombstone"])
@pytest.mark.parametrize("trouble", ["damage", "bug"])
def test_a_queue_that_is_damaged_for_a_while_forgets_no_attempt_at_its_message(
    office: Office, trouble: str, batch_size: int, *, is_skipped: bool
) -> None:
    clerk = Clerk(poison={2})
    consumer = office.hire(clerk, max_attempts=5, batch_size=batch_size, on_poison="dead_letter")
    office.put(0)
    process(consumer)
    office.put(*([] if is_skipped else [1]), 2)
    if is_skipped:
        office.sorter.skip("q", [1], reason="lost")
    for _ in range(10):
        process(consumer)
        office.clock.move(HOUR)
        if is_given_up(consumer):
            break
        stumble(office, trouble, lambda: process(consumer))
        office.clock.move(HOUR)
    alone = [n for (_, seqs), n in zip(clerk.batches, clerk.attempts, strict=True) if seqs == (2,)]
    assert alone == [1, 2, 3, 4, 5]
    assert [(letter.seq, letter.attempts) for letter in consumer.dead_letters()] == [(2, 5)]


def stumble(office: Office, trouble: str, run: Callable[[], None]) -> None:
    """Run while the queue has no cursor row, or while our own code fails."""
    items = office.sorter.stores.items
    if trouble == "damage":
        row = office.lose_cursor()
        run()
        office.sorter.stores.cursors._tables.cursors["q"] = row  # type: ignore[attr-defined]
    else:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(items), "page", lambda *_: 1 / 0)
            run()


def test_a_damaged_queue_is_tried_again_after_as_long_as_it_was_damaged(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}), max_attempts=5)
    process(consumer)
    office.clock.move(HOUR)
    office.lose_cursor()
    waits = []
    for _ in range(5):
        process(consumer)
        (parked,) = consumer.parked()
        assert (parked.damaged, parked.attempts) == (True, 2)
        assert parked.next_try is not None
        waits.append(parked.next_try - office.clock())
        office.clock.move(waits[-1])
    assert waits == [2.0, 2.0, 4.0, 8.0, 16.0]


@pytest.mark.parametrize("pause", [300.0, 900.0])
def test_a_deadly_message_is_given_up_however_soon_forced_runs_follow_each_other(office: Office, pause: float) -> None:
    killer = Killer(0)
    consumer = office.hire(killer, max_attempts=3, on_poison="dead_letter")
    office.put(0)
    for _ in range(20):
        with suppress(Death):
            consumer.catch_up("q", force=True)
        office.clock.move(pause)
    assert [one.attempts for one in consumer.dead_letters()] == [3]


def test_a_forced_run_leaves_a_last_attempt_alone_that_may_be_under_way_and_a_redrive_does_not(office: Office) -> None:
    plan, clerk = Plan("FD"), Clerk()
    consumer = office.hire(plan, max_attempts=2)
    office.put(0)
    consumer.catch_up("q")
    office.put(1)
    with suppress(Death):
        consumer.catch_up("q")
    other = office.hire(clerk, max_attempts=2)
    assert (plan.attempts, other.catch_up("q", force=True), clerk.batches) == ([1, 2], 0, [])
    assert (other.redrive("q"), clerk.seqs()) == (1, [1])


def test_a_smaller_batch_size_takes_no_attempt_back_from_a_message_behind_skipped_ones(office: Office) -> None:
    clerk = Clerk(poison={3})
    office.sorter.skip("q", (0, 1, 2))
    office.put(3)
    office.hire(clerk, max_attempts=3, on_poison="dead_letter").catch_up("q")
    office.clock.move(HOUR)
    office.hire(clerk, max_attempts=3, on_poison="dead_letter", batch_size=1).catch_up("q")
    assert clerk.attempts == [1, 2, 3]
