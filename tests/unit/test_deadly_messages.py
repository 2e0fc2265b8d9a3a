"""A message that kills its process is counted like any other that fails: the queue is parked before it is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, OrderedConsumer, Parked, PartlyDone
from stream_sort.model.consumption import Wake
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.model.retries import (
    ENDED,
    LAST_ERROR,
    LONGEST_RUN,
    UNDER_WAY,
    is_crash_guard,
    last_error,
    under_way,
)
from stream_sort.sorter import Sorter
from tests.consumers import Clerk, Office, ends, fail_twice, wake
from tests.unit.queues import forget_arrival, tables_of

if TYPE_CHECKING:
    from stream_sort.model.consumption import Served

RUN = 60.0
HOUR = 3_600.0


class Death(BaseException):
    """Ends a process: no line of the services catches it."""


class Mortal(Clerk):
    """A handler that dies of some messages."""

    def __init__(self, *deadly: int) -> None:
        super().__init__()
        self.deadly = set(deadly)

    def __call__(self, batch: Batch) -> None:
        if self.deadly.intersection(batch.seqs):
            self.batches.append((batch.queue, batch.seqs))
            raise Death
        super().__call__(batch)


@pytest.fixture
def office() -> Office:
    return Office()


def run(consumer: OrderedConsumer, *queues: str) -> list[Served]:
    """One run of a function whose time is limited."""
    return consumer.process([Wake(queue) for queue in queues or ("q",)], lambda: RUN)


def dies(consumer: OrderedConsumer, *queues: str) -> None:
    with pytest.raises(Death):
        run(consumer, *queues)


def parked(office: Office) -> Parked | None:
    row = office.row()
    assert row is not None
    return row.parked


def die_until_it_counts(office: Office, consumer: OrderedConsumer, times: int = 1) -> None:
    """A death that nobody could note; then so many that were."""
    dies(consumer)
    office.clock.move(RUN + CLOCKS_DIFFER)
    for _ in range(times):
        dies(consumer)
        office.clock.move(RUN + CLOCKS_DIFFER)


def test_a_first_death_leaves_nothing_but_the_time_at_which_somebody_began(office: Office) -> None:
    office.put(0)
    dies(office.hire(Mortal(0)))
    row = office.row()
    assert row is not None
    assert (row.seq, row.parked, row.committed_at) == (-1, None, office.clock())


def test_where_nobody_got_on_for_a_run_the_queue_is_parked_before_its_message_is_tried(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Mortal(0))
    dies(consumer)
    office.clock.move(RUN - 1)
    dies(consumer)
    assert parked(office) is None
    office.clock.move(1)
    dies(consumer)
    now = office.clock()
    assert consumer.parked() == [Parked("q", 0, UNDER_WAY, 1, now, now + RUN + CLOCKS_DIFFER)]


def test_a_death_before_is_counted_once_no_clock_that_is_behind_can_have_told_it(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Mortal(0))
    dies(consumer)
    office.clock.move(RUN + CLOCKS_DIFFER)
    dies(consumer)
    now = office.clock()
    # This try, and the one before, of which somebody seems to have died.
    assert consumer.parked() == [Parked("q", 0, UNDER_WAY, 2, now, now + RUN + CLOCKS_DIFFER)]


def test_other_wakes_wait_until_the_run_that_parked_it_is_certainly_over(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0)
    consumer = office.hire(clerk)
    die_until_it_counts(office, consumer)
    office.clock.move(-2)
    before = len(clerk.batches)
    assert ends(run(consumer)) == ["waiting"]
    assert len(clerk.batches) == before


def test_a_message_that_succeeds_after_all_leaves_no_trace(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0, 1)
    consumer = office.hire(clerk, batch_size=1)
    die_until_it_counts(office, consumer, times=2)
    clerk.deadly.clear()
    assert ends(run(consumer)) == ["done"]
    assert (clerk.seqs(), consumer.parked(), consumer.dead_letters()) == ([0, 1], [], [])


def test_a_deadly_message_is_set_aside_after_its_last_attempt_and_the_rest_goes_on(office: Office) -> None:
    clerk = Mortal(1)
    office.put(*range(4))
    consumer = office.hire(clerk, batch_size=1, max_attempts=3, on_poison="dead_letter")
    die_until_it_counts(office, consumer, times=2)
    deaths = clerk.batches.count(("q", (1,)))
    (served,) = run(consumer)
    (letter,) = served.dead
    assert (letter.seq, letter.error, letter.attempts, served.ended) == (1, ENDED, 3, "done")
    assert (clerk.seqs(), consumer.checkpoint("q"), consumer.parked()) == ([0, 2, 3], 3, [])
    assert clerk.batches.count(("q", (1,))) == deaths == 3


def test_a_deadly_message_parks_its_queue_for_good_after_its_last_attempt(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0, 1)
    consumer = office.hire(clerk, batch_size=1, max_attempts=3)
    die_until_it_counts(office, consumer, times=2)
    (served,) = run(consumer)
    assert (served.ended, served.parked, len(clerk.batches)) == ("parked", parked(office), 3)
    (stays,) = consumer.parked()
    assert (stays.seq, stays.error, stays.attempts, stays.next_try) == (0, ENDED, 3, None)
    office.clock.move(100_000)
    assert ends(run(consumer)) == ["waiting"]


def test_of_several_messages_none_is_counted_and_then_each_is_tried_by_itself(office: Office) -> None:
    clerk = Mortal(5)
    office.put(*range(8))
    consumer = office.hire(clerk, batch_size=8)
    die_until_it_counts(office, consumer)
    several = parked(office)
    assert several is not None
    assert (several.seq, several.attempts) == (0, 0)
    clerk.batches.clear()
    dies(consumer)
    assert [seqs for _, seqs in clerk.batches] == [(0,), (1,), (2,), (3,), (4,), (5,)]
    found = parked(office)
    assert found is not None
    assert (found.seq, found.attempts, consumer.checkpoint("q")) == (5, 1, 4)


def test_whatever_its_place_the_deadly_message_alone_is_set_aside(office: Office) -> None:
    for deadly in range(6):
        office.put(*range(6), queue=f"q{deadly}")
        clerk = Mortal(deadly)
        consumer = office.hire(clerk, name=f"c{deadly}", batch_size=4, max_attempts=2, on_poison="dead_letter")
        for _ in range(20):
            office.clock.move(RUN + CLOCKS_DIFFER)
            try:
                run(consumer, f"q{deadly}")
            except Death:
                continue
            break
        assert clerk.seqs(f"q{deadly}") == [seq for seq in range(6) if seq != deadly]
        assert [letter.seq for letter in consumer.dead_letters()] == [deadly]


def test_chunks_grow_again_behind_what_a_run_may_have_died_of(office: Office) -> None:
    clerk = Mortal(1)
    office.put(*range(20))
    consumer = office.hire(clerk, batch_size=4)
    die_until_it_counts(office, consumer)
    clerk.deadly.clear()
    clerk.batches.clear()
    store = office.interrupt(consumer)
    run(consumer)
    assert [len(seqs) for _, seqs in clerk.batches] == [1, 1, 1, 1, 2, 4, 4, 4, 2]
    # Two commits for each of the four suspects, one for each other chunk.
    assert store.calls.count("commit") == 4 * 2 + 5


def test_a_failure_in_place_of_a_death_is_counted_once(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0)
    consumer = office.hire(clerk)
    die_until_it_counts(office, consumer)
    clerk.deadly.clear()
    clerk.poison = {0}
    assert ends(run(consumer)) == ["parked"]
    failed = parked(office)
    assert failed is not None
    assert (failed.error, failed.attempts, clerk.attempts) == ("ValueError: poison 0", 3, [3])


def test_deaths_and_failures_of_a_message_count_together(office: Office) -> None:
    clerk = Mortal()
    clerk.poison = {0}
    office.put(0, 1)
    consumer = office.hire(clerk, batch_size=1, max_attempts=5, on_poison="dead_letter")
    run(consumer)
    office.clock.move(4)
    clerk.deadly, clerk.poison = {0}, set()
    for _ in range(3):
        dies(consumer)
        office.clock.move(RUN + CLOCKS_DIFFER)
    (served,) = run(consumer)
    # Two failures, and three deaths, all of them noted: what failed before is never tried without a note.
    assert [(letter.seq, letter.attempts, letter.error) for letter in served.dead] == [
        (0, 5, f"{ENDED}{LAST_ERROR}ValueError: poison 0")
    ]
    assert len(clerk.batches) == 6


def test_a_store_that_fails_meanwhile_is_no_fault_of_the_message(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0)
    consumer = office.hire(clerk)
    die_until_it_counts(office, consumer)
    before = parked(office)
    clerk.deadly.clear()
    store = office.interrupt(consumer)
    store.after["commit"] = [lambda: store.before.update(commit=fail_twice(store))]
    assert ends(run(consumer)) == ["failed"]
    assert (parked(office), store.calls.count("commit")) == (before, 4)
    assert ends(run(consumer)) == ["done"]


def test_a_run_that_loses_the_precaution_does_not_call_the_handler(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0)
    consumer = office.hire(clerk)
    die_until_it_counts(office, consumer)
    clerk.batches.clear()
    office.interrupt(consumer).before["commit"] = [lambda: run(office.hire(Clerk()))]
    assert ends(run(consumer)) == ["overtaken"]
    assert clerk.batches == []


def test_a_redrive_tries_a_deadly_message_afresh(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0, 1)
    consumer = office.hire(clerk, batch_size=1, max_attempts=1)
    dies(consumer)
    office.clock.move(RUN + CLOCKS_DIFFER)
    assert ends(run(consumer)) == ["parked"]
    with pytest.raises(Death):
        consumer.redrive("q")
    again = parked(office)
    assert again is not None
    assert (again.attempts, again.next_try) == (1, office.clock() + LONGEST_RUN + CLOCKS_DIFFER)
    clerk.deadly.clear()
    assert consumer.redrive("q") == 2
    assert consumer.parked() == []


def test_who_is_forced_tries_a_message_once_more_that_was_given_up_for_deaths(office: Office) -> None:
    clerk = Mortal(0)
    office.put(0)
    consumer = office.hire(clerk, max_attempts=1)
    dies(consumer)
    office.clock.move(RUN + CLOCKS_DIFFER)
    assert ends(run(consumer)) == ["parked"]
    assert consumer.catch_up("q") == 0
    with pytest.raises(Death):
        consumer.catch_up("q", force=True)
    again = parked(office)
    assert again is not None
    assert again.attempts == 2
    office.clock.move(LONGEST_RUN + CLOCKS_DIFFER)
    assert consumer.catch_up("q", force=True) == 0
    assert [(one.attempts, one.next_try) for one in consumer.parked()] == [(2, None)]


def test_a_run_without_a_limit_is_thought_dead_after_the_longest_that_lambda_allows(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Mortal(0))
    for seconds, is_noted in ((0, False), (LONGEST_RUN - 1, False), (1, True)):
        office.clock.move(seconds)
        with pytest.raises(Death):
            wake(consumer)
        assert (parked(office) is not None) == is_noted


@pytest.mark.parametrize("batch_size", [1, 100])
def test_a_busy_queue_does_not_hide_that_nobody_gets_on(office: Office, batch_size: int) -> None:
    office.put(0)
    consumer = office.hire(Mortal(0), batch_size=batch_size)
    for seq in range(1, 7):
        dies(consumer)
        office.clock.move(RUN / 6)
        office.put(seq)
    assert parked(office) is None
    dies(consumer)
    assert parked(office) is not None


@pytest.mark.parametrize(
    ("batch_size", "came_late", "is_noted"),
    [(5, (), True), (5, (4,), False), (4, (4,), True)],
    ids=["the cursor rests", "the cursor moved", "the cursor runs ahead"],
)
def test_of_items_that_others_wrote_the_cursor_tells_how_long_they_are_due(
    office: Office, batch_size: int, came_late: tuple[int, ...], *, is_noted: bool
) -> None:
    office.put(*range(5 - len(came_late)))
    consumer = office.hire(Mortal(0), batch_size=batch_size)
    dies(consumer)
    office.clock.move(RUN + CLOCKS_DIFFER)
    office.put(*came_late)
    for seq in tables_of(office.sorter).queues["q"].slots:
        forget_arrival(office.sorter, seq)
    dies(consumer)
    assert (parked(office) is not None) == is_noted


def test_who_is_forced_and_loses_a_commit_forgets_what_failed_before(office: Office) -> None:
    calls: list[tuple[int, ...]] = []

    def partly(batch: Batch) -> None:
        calls.append(batch.seqs)
        if batch.seqs == (0, 1):
            raise PartlyDone(0) from ValueError("not yet")
        raise ValueError("never")

    office.put(0, 1)
    consumer = office.hire(partly)

    def overtaken() -> None:
        wake(office.hire(Clerk()))
        office.put(2)

    office.interrupt(consumer).before["commit"] = [overtaken]
    assert consumer.catch_up("q") == 0
    # Seq 1 failed before: that is no try of seq 2.
    assert calls == [(0, 1), (2,), (2,)]
    assert [(one.seq, one.attempts) for one in consumer.parked()] == [(2, 2)]


def test_who_is_forced_and_loses_a_second_try_gives_the_next_message_two_of_its_own(office: Office) -> None:
    calls: list[tuple[int, ...]] = []

    def at_the_second_try(batch: Batch) -> None:
        calls.append(batch.seqs)
        if calls != [(0,), (0,)]:
            raise ValueError("not now")

    office.put(0)
    consumer = office.hire(at_the_second_try)

    def overtaken() -> None:
        office.hire(Clerk()).catch_up("q", force=True)
        office.put(1)

    store = office.interrupt(consumer)
    # The first commit is the note before the second try.
    store.after["commit"] = [lambda: store.before.update(commit=[overtaken])]
    assert consumer.catch_up("q") == 0
    assert calls == [(0,), (0,), (1,), (1,)]


def test_who_is_overtaken_before_a_second_try_does_not_make_it(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = office.hire(clerk)
    office.interrupt(consumer).before["commit"] = [lambda: wake(office.hire(Clerk()))]
    assert ends(wake(consumer)) == ["overtaken"]
    assert clerk.batches == [("q", (0,))]


def test_while_a_retry_runs_nobody_is_told_that_its_process_ended(office: Office) -> None:
    office.put(0)
    seen: list[list[str]] = []

    def handle(_: Batch) -> None:
        seen.append([one.error for one in consumer.parked()])
        raise ValueError("db is down")

    consumer = office.hire(handle)
    for _ in range(3):
        run(consumer)
        office.clock.move(HOUR)
    assert seen == [[], *[[f"{UNDER_WAY}{LAST_ERROR}ValueError: db is down"]] * 3]


def test_a_message_that_failed_and_then_killed_its_processes_keeps_its_last_error(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk(poison={0}), max_attempts=4)
    run(consumer)
    for _ in range(2):
        office.clock.move(HOUR)
        dies(office.hire(Mortal(0), max_attempts=4))
    assert [one.error for one in consumer.parked()] == [f"{UNDER_WAY}{LAST_ERROR}ValueError: poison 0"]
    office.clock.move(HOUR)
    run(consumer)
    (stays,) = consumer.parked()
    assert (stays.error, stays.next_try) == (f"{ENDED}{LAST_ERROR}ValueError: poison 0", None)


def test_a_redrive_that_kills_its_process_keeps_the_error_before(office: Office) -> None:
    office.put(0)
    terms = {"max_attempts": 1, "on_poison": "dead_letter"}
    run(office.hire(Clerk(poison={0}), **terms))
    for _ in range(2):
        with pytest.raises(Death):
            office.hire(Mortal(0), **terms).redrive("q")
    (letter,) = office.hire(Clerk(), **terms).dead_letters()
    assert letter.error == f"{UNDER_WAY}{LAST_ERROR}ValueError: poison 0"


def test_what_an_earlier_version_noted_before_a_try_is_known() -> None:
    assert is_crash_guard(Parked("q", 0, ENDED, 1, 0.0, 1.0))
    long = under_way("x" * 1_000)
    assert (len(long), under_way(last_error(long))) == (1_000, long)


def hire_elsewhere(office: Office, ahead: float, **terms: Any) -> tuple[OrderedConsumer, Clerk]:
    """A process of the same consumer on a machine whose clock is ahead."""
    sorter = Sorter(office.sorter.homes, office.sorter.options, lambda: office.clock() + ahead)
    clerk = Clerk()
    return OrderedConsumer("billing", clerk, sorter=sorter, waker=office.waker, **terms), clerk


@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
@pytest.mark.parametrize("max_attempts", [1, 2, 3])
@pytest.mark.parametrize("ahead", [3.0, 8.0, 60.0])
@pytest.mark.parametrize("passed", [0.0, 10.0, 59.5])
def test_a_message_in_hand_is_left_to_its_process_by_machines_whose_clocks_are_a_minute_ahead(
    office: Office, max_attempts: int, on_poison: str, ahead: float, passed: float
) -> None:
    terms = {"max_attempts": max_attempts, "on_poison": on_poison}
    elsewhere, clerk = hire_elsewhere(office, ahead, **terms)
    tries: list[int] = []

    def handle(batch: Batch) -> None:
        tries.append(batch.attempt)
        if len(tries) < max_attempts:
            raise ValueError("not yet")
        office.clock.move(passed)
        assert ends(run(elsewhere)) == ["waiting"]

    office.put(0)
    consumer = office.hire(handle, **terms)
    ended = ""
    while len(tries) < max_attempts:
        (ended,) = ends(run(consumer))
        office.clock.move(HOUR)
    assert (ended, clerk.batches, consumer.checkpoint("q")) == ("done", [], 0)
    assert (consumer.parked(), consumer.dead_letters()) == ([], [])
