"""What a living process could not record is no death: it is recorded once the control table can be written again."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import Batch, StoreError, StoreUnavailable
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk, Office, control_of, ends, give_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import OrderedConsumer
    from stream_sort.model.consumption import Served

RUN = 60.0
HOUR = 3_600.0
WRITES = ("commit", "create", "settle")


class Outage:
    """A control table that can be read, and written unless it is `down`, which `lasts` for so many writes.

    In the queue `bug_in` every write meets a bug of ours.
    """

    def __init__(self, consumer: OrderedConsumer) -> None:
        self._store = control_of(consumer)
        self.down = False
        self.lasts = math.inf
        self.refused = 0
        self.error: Exception = StoreUnavailable("throttled")
        self.bug_in = ""
        self.on_refusal: Callable[[], object] = lambda: None
        give_control(consumer, self)

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            if self.bug_in and name == "commit" and given[0].queue == self.bug_in:
                raise KeyError("nobody thought of this")
            if self.down and name in WRITES:
                self.refused += 1
                self.down = self.refused < self.lasts
                self.on_refusal()
                raise self.error
            return getattr(self._store, name)(*given, **named)

        return call


class Bank:
    """A consumer whose control table cannot be written any more once its handler was called, whatever that did.

    Its queues have waited for an hour: so their messages are tried with a note.
    """

    def __init__(self, *queues: str, max_attempts: int = 1, on_poison: str = "dead_letter", poison: str = "") -> None:
        self.office = Office()
        self.poison = poison
        self.attempts: list[int] = []
        self._terms = {"max_attempts": max_attempts, "on_poison": on_poison}
        for queue in queues:
            self.office.put(0, queue=queue)
            self.office.hire(Clerk()).catch_up(queue)
            self.office.put(1, queue=queue)
        self.office.clock.move(HOUR)
        self.consumer = self.office.hire(self._handle, **self._terms)
        self.outage = Outage(self.consumer)

    def run(self, *queues: str) -> list[Served]:
        """One run of a function whose time is limited, that begins while the table can be written."""
        self.outage.down = False
        return self.consumer.process([Wake(queue) for queue in queues], lambda: RUN)

    def recover(self) -> None:
        """The table can be written, and the handler does nothing to it any more."""
        self.outage.down = False
        self.consumer._context = replace(self.consumer._context, handler=Clerk())

    def others(self) -> OrderedConsumer:
        """Another process of the same consumer; all that it has to do it does well."""
        return self.office.hire(Clerk(), **self._terms)

    def _handle(self, batch: Batch) -> None:
        self.attempts.append(batch.attempt)
        self.outage.down = True
        if batch.queue == self.poison:
            raise ValueError("no such account")


def process(consumer: OrderedConsumer) -> Any:
    (served,) = consumer.process([Wake("q")], lambda: RUN)
    return served.delivered


def catch_up(consumer: OrderedConsumer) -> Any:
    return consumer.catch_up("q")


def redrive(consumer: OrderedConsumer) -> Any:
    return consumer.redrive("q")


@pytest.mark.parametrize(
    ("run", "max_attempts", "outages"),
    [(process, 1, 1), (process, 2, 1), (process, 3, 4), (catch_up, 1, 1), (catch_up, 5, 8), (redrive, 1, 3)],
)
def test_a_message_that_was_handled_well_is_not_given_up_for_outages_that_its_process_outlived(
    run: Callable[[OrderedConsumer], Any], max_attempts: int, outages: int
) -> None:
    bank = Bank("q", max_attempts=max_attempts)
    for _ in range(outages):
        assert ends(bank.run("q")) == ["failed"]
        bank.office.clock.move(HOUR)
    bank.recover()
    assert run(bank.consumer) == 1
    assert (bank.consumer.dead_letters(), bank.consumer.parked(), bank.consumer.checkpoint("q")) == ([], [], 1)
    assert bank.attempts == [1] * outages


def test_a_message_that_was_handled_well_is_not_given_up_for_an_answer_that_nobody_knows() -> None:
    bank = Bank("q")
    bank.outage.error = StoreError("PutItem on table 'Control': KMSDisabledException", code="KMSDisabledException")
    assert ends(bank.run("q")) == ["failed"]
    bank.office.clock.move(HOUR)
    bank.recover()
    assert (process(bank.consumer), bank.consumer.dead_letters()) == (1, [])


def test_a_message_that_was_handled_well_is_not_given_up_for_bugs_of_ours_that_its_process_outlived() -> None:
    bank = Bank("q")
    bank.outage.error = RuntimeError("a bug of ours")
    # The commit, the queue parked for the bug, and the note taken back.
    bank.outage.lasts = 3
    assert ends(bank.run("q")) == ["failed"]
    bank.consumer._context = replace(bank.consumer._context, handler=Clerk())
    for _ in range(3):
        bank.office.clock.move(1_000)
        bank.consumer.process([Wake("q")], lambda: RUN)
    assert (bank.consumer.dead_letters(), bank.consumer.parked(), bank.consumer.checkpoint("q")) == ([], [], 1)


@pytest.mark.parametrize("tries", [1, 4])
def test_a_bug_of_ours_that_comes_up_again_and_again_leaves_no_note_to_be_taken_for_a_death(tries: int) -> None:
    bank = Bank("q")
    bank.outage.error = RuntimeError("a bug of ours")
    bank.run("q")
    for _ in range(tries):
        bank.office.clock.move(HOUR)
        (served,) = bank.consumer.process([Wake("q")], lambda: RUN)
        assert (served.ended, type(served.error)) == ("failed", StoreUnavailable)
    bank.recover()
    assert (process(bank.consumer), bank.consumer.dead_letters()) == (1, [])
    assert bank.attempts == [1]


def test_a_bug_of_ours_that_never_ends_does_not_hold_its_queue_up_for_ever() -> None:
    bank = Bank("q", max_attempts=5)
    bank.outage.error = RuntimeError("a bug of ours")
    bank.run("q")
    seen = [ends(bank.consumer.process([Wake("q")], lambda: RUN)) for _ in range(30)]
    assert (seen[0], seen[-1]) == (["failed"], ["waiting"])
    bank.office.clock.move(HOUR)
    bank.recover()
    assert (process(bank.consumer), bank.consumer.checkpoint("q")) == (1, 1)


def test_a_bug_of_ours_in_one_queue_keeps_what_is_left_of_no_other_from_being_recorded() -> None:
    bank = Bank("worse", "q")
    assert ends(bank.run("worse", "q")) == ["failed"] * 2
    bank.recover()
    bank.outage.bug_in = "worse"
    for _ in range(2):
        assert ends(bank.consumer.process([Wake("idle")], lambda: RUN)) == ["done"]
        assert bank.office.waker.sent == [("q", 0.0)]
    bank.outage.bug_in = ""
    bank.run("idle")
    assert bank.office.waker.sent == [("q", 0.0), ("worse", 0.0)]


def test_what_is_left_unrecorded_in_many_queues_does_not_use_up_the_time_of_a_run() -> None:
    queues = [f"q{number}" for number in range(12)]
    bank = Bank(*queues)
    seconds = bank.office.ticks

    def time_out() -> None:
        seconds[0] += 5.0

    bank.outage.on_refusal = time_out
    for _ in range(10):
        seconds[0] = 0.0
        bank.outage.down = True
        bank.consumer.process([Wake(queue) for queue in queues], lambda: RUN - seconds[0])
        assert seconds[0] < RUN, "Lambda would have killed it"


def test_a_wake_that_comes_again_does_not_wait_for_a_note_of_its_own_process() -> None:
    bank = Bank("q")
    bank.run("q")
    assert ends(bank.others().process([Wake("q")], lambda: RUN)) == ["waiting"]
    bank.recover()
    assert (ends(bank.run("q")), bank.consumer.checkpoint("q")) == (["done"], 1)


def test_a_note_is_taken_back_and_its_queue_woken_when_its_process_next_works_elsewhere() -> None:
    bank = Bank("q", "other")
    bank.run("q")
    bank.recover()
    assert ends(bank.run("other")) == ["done"], "nothing is to be told of the queue that was not asked for"
    assert bank.office.waker.sent == [("q", 0.0)]
    bank.office.clock.move(HOUR)
    others = bank.others()
    others.process([Wake("q")], lambda: RUN)
    assert (others.dead_letters(), others.checkpoint("q")) == ([], 1)


def test_a_note_is_taken_back_at_the_end_of_the_run_if_the_table_is_back() -> None:
    bank = Bank("q")
    # The commit and the first try to take the note back, each sent twice.
    bank.outage.lasts = 4
    assert ends(bank.run("q")) == ["failed"]
    assert (bank.consumer.parked(), bank.others().catch_up("q")) == ([], 1)


def test_a_failure_is_recorded_at_the_end_of_the_run_if_the_table_is_back() -> None:
    bank = Bank("q", max_attempts=3, poison="q")
    bank.outage.lasts = 4
    (served,) = bank.run("q")
    assert (served.ended, served.error, [served.parked]) == ("parked", None, bank.consumer.parked())
    assert [one.attempts for one in bank.consumer.parked()] == [1]


def test_while_the_table_is_out_of_reach_a_queue_fails_and_is_not_given_up() -> None:
    bank = Bank("q")
    bank.run("q")
    for _ in range(3):
        bank.office.clock.move(HOUR)
        (served,) = bank.consumer.process([Wake("q")], lambda: RUN)
        assert (served.ended, type(served.error)) == ("failed", StoreUnavailable)
        with pytest.raises(StoreUnavailable):
            bank.consumer.catch_up("q")
    assert bank.attempts == [1]
    bank.recover()
    assert (catch_up(bank.consumer), bank.consumer.dead_letters()) == (1, [])


def test_a_queue_that_somebody_else_got_on_with_is_left_to_them() -> None:
    bank = Bank("q", max_attempts=3)
    bank.run("q")
    bank.office.clock.move(HOUR)
    assert bank.others().catch_up("q") == 1
    bank.office.put(2)
    bank.recover()
    assert (catch_up(bank.consumer), bank.consumer.checkpoint("q")) == (1, 2)


@pytest.mark.parametrize("on_poison", ["park", "dead_letter"])
@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_failure_that_could_not_be_recorded_is_told_by_the_run_that_records_it(
    max_attempts: int, on_poison: str
) -> None:
    bank = Bank("q", "other", max_attempts=max_attempts, on_poison=on_poison, poison="q")
    assert ends(bank.run("q")) == ["failed"]
    bank.recover()
    other, told = bank.run("other")
    assert (other.ended, told.queue, told.handler_failures) == ("done", "q", 0)
    assert (told.dead, [told.parked]) == (bank.consumer.dead_letters(), bank.consumer.parked() or [None])
    # Of the death that the note suspected nothing is left: it was one attempt.
    (stuck,) = bank.consumer.stuck("q")
    assert (stuck.attempts, stuck.error) == (1, "ValueError: no such account")


def test_an_outage_costs_a_run_one_write_more_however_much_is_kept() -> None:
    bank = Bank("q0", "q1", "q2")
    assert ends(bank.run("q0", "q1", "q2")) == ["failed"] * 3
    bank.outage.refused = 0
    assert ends(bank.consumer.process([Wake("idle")], lambda: RUN)) == ["done"]
    assert bank.outage.refused == 2, "one, sent twice"


def test_of_what_is_kept_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_sort.consume.unrecorded.MOST", 2)
    bank = Bank("q0", "q1", "q2")
    bank.run("q0", "q1", "q2")
    bank.recover()
    bank.run("idle")
    assert bank.office.waker.sent == [("q1", 0.0), ("q2", 0.0)]


class Faults:
    """A control table whose writes fail as planned, one letter each: o is done, b fails before, a after it was done."""

    def __init__(self, store: Any, plan: tuple[str, ...]) -> None:
        self._store = store
        self._plan = list(plan)

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            what = self._plan.pop(0) if self._plan and name in WRITES else "o"
            if what == "b":
                raise StoreUnavailable("before")
            answer = getattr(self._store, name)(*given, **named)
            if what == "a":
                raise StoreUnavailable("after")
            return answer

        return call


def check_faults(plan: tuple[str, ...], run: Callable[[OrderedConsumer], Any], poison: set[int], **terms: Any) -> None:
    """Whatever is lost of the first writes after a pause: only poison is given up, after all its attempts."""
    office, clerk = Office(), Clerk(poison=poison)
    consumer = office.hire(clerk, on_poison="dead_letter", **terms)
    office.put(0)
    consumer.catch_up("q")
    office.put(1, 2)
    office.clock.move(HOUR)
    give_control(consumer, Faults(control_of(consumer), plan))
    for _ in range(12):
        if consumer.checkpoint("q") == 2:
            break
        with suppress(StoreUnavailable):
            run(consumer)
        office.clock.move(HOUR)
    attempts = [n for (_, seqs), n in zip(clerk.batches, clerk.attempts, strict=True) if seqs == (1,)]
    assert ({letter.seq for letter in consumer.dead_letters()}, consumer.checkpoint("q")) == (poison, 2)
    if poison:
        assert attempts == list(range(1, terms["max_attempts"] + 1))


@pytest.mark.parametrize("run", [process, catch_up])
@pytest.mark.parametrize("poison", [set(), {1}], ids=["good", "poison"])
@pytest.mark.parametrize("batch_size", [1, 100])
@pytest.mark.parametrize("max_attempts", [1, 2, 3])
def test_only_poison_is_given_up_whatever_happens_to_four_writes(
    run: Callable[[OrderedConsumer], Any], poison: set[int], batch_size: int, max_attempts: int
) -> None:
    # The longer one: a note is found where it was not known to stand, and cannot be taken back.
    for plan in (*product("oba", repeat=4), tuple("baobb")):
        check_faults(plan, run, poison, batch_size=batch_size, max_attempts=max_attempts)
