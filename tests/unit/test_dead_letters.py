"""After the last attempt: parked for good, or dead; then redriven in order, or discarded with a reason."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest

from stream_sort import (
    Batch,
    CheckpointConflict,
    CursorLost,
    DeadLetter,
    InvalidInput,
    MissingItems,
    NotParked,
    StoreUnavailable,
)
from stream_sort.consume.stuck_messages import StuckMessages
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk, Office, ends, fail, fail_twice, wake


@pytest.fixture
def office() -> Office:
    return Office()


def give_up(office: Office, clerk: Clerk, **options: Any) -> Any:
    """A consumer whose poison messages had all their attempts."""
    consumer = office.hire(clerk, max_attempts=2, **options)
    for _ in range(4):
        wake(consumer)
        office.clock.move(1_000)
    return consumer


def test_after_max_attempts_a_queue_stays_parked(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1, 2)
    consumer = give_up(office, clerk)
    (parked,) = consumer.parked()
    assert (parked.seq, parked.attempts, parked.next_try) == (1, 2, None)
    assert (clerk.seqs(), office.waker.sent) == ([0], [])
    assert ends(wake(consumer)) == ["waiting"]


def test_after_max_attempts_a_message_is_set_aside_and_the_queue_goes_on(office: Office) -> None:
    clerk = Clerk(poison={1, 3})
    office.put(*range(5))
    consumer = give_up(office, clerk, on_poison="dead_letter")
    letters = consumer.dead_letters()
    assert [(letter.seq, letter.attempts, letter.error) for letter in letters] == [
        (1, 2, "ValueError: poison 1"),
        (3, 2, "ValueError: poison 3"),
    ]
    assert [letter.next_try for letter in letters] == [None, None]
    assert (clerk.seqs(), consumer.parked(), consumer.checkpoint("q")) == ([0, 2, 4], [], 4)


def test_behind_a_dead_letter_chunks_are_whole_again(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(*range(17))
    wake(office.hire(clerk, batch_size=8, on_poison="dead_letter", max_attempts=1))
    assert [len(seqs) for _, seqs in clerk.batches] == [8, 4, 2, 1, 8, 8]


def test_what_was_given_up_is_told_once(office: Office) -> None:
    office.put(0)
    (served,) = wake(office.hire(Clerk(poison={0}), on_poison="dead_letter", max_attempts=1))
    assert served.dead == [DeadLetter("q", 0, "ValueError: poison 0", 1, office.clock())]
    assert (served.ended, served.delivered, served.parked) == ("done", 0, None)


def test_a_dead_letter_that_cannot_be_recorded_is_not_passed_over(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(Clerk(poison={0}), on_poison="dead_letter", max_attempts=1)
    store = office.interrupt(consumer)
    store.before["commit"] = fail_twice(store)
    (served,) = wake(consumer)
    assert (served.ended, served.dead, consumer.checkpoint("q")) == ("failed", [], -1)


def test_redrive_delivers_a_parked_queue_in_order(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1, 2, 3)
    consumer = give_up(office, clerk)
    clerk.poison.clear()
    assert consumer.redrive("q") == 3
    assert (clerk.seqs(), consumer.parked()) == ([0, 1, 2, 3], [])


def test_redrive_of_a_message_that_still_fails_starts_its_attempts_anew(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1)
    consumer = give_up(office, clerk)
    clerk.attempts.clear()
    assert consumer.redrive("q", 1) == 0
    (parked,) = consumer.parked()
    assert (parked.attempts, parked.next_try, clerk.attempts) == (2, None, [1, 2])


def test_redrive_delivers_dead_letters_lowest_first_each_by_itself(office: Office) -> None:
    clerk = Clerk(poison={1, 2, 4})
    office.put(*range(6))
    consumer = give_up(office, clerk, on_poison="dead_letter")
    clerk.poison.clear()
    clerk.batches.clear()
    assert consumer.redrive("q") == 3
    assert clerk.batches == [("q", (1,)), ("q", (2,)), ("q", (4,))]
    assert (consumer.dead_letters(), consumer.checkpoint("q")) == ([], 5)


def test_the_first_dead_letter_that_fails_again_ends_a_redrive(office: Office) -> None:
    clerk = Clerk(poison={1, 2, 4})
    office.put(*range(6))
    consumer = give_up(office, clerk, on_poison="dead_letter")
    clerk.poison = {2}
    assert consumer.redrive("q") == 1
    assert [(letter.seq, letter.attempts) for letter in consumer.dead_letters()] == [(2, 3), (4, 2)]
    assert clerk.attempts[-1] == 3


def test_one_dead_letter_can_be_redriven_alone(office: Office) -> None:
    clerk = Clerk(poison={1, 2})
    office.put(*range(4))
    consumer = give_up(office, clerk, on_poison="dead_letter")
    clerk.poison.clear()
    assert consumer.redrive("q", 2) == 1
    assert [letter.seq for letter in consumer.dead_letters()] == [1]


def test_i4_effects_of_a_redriven_message_happen_once(office: Office) -> None:
    fails = [True]

    def handle(batch: Batch) -> None:
        batch.transaction.put("Effects", {"id": str(batch.seqs[0])})
        if fails[0]:
            raise ValueError("not yet")

    office.put(0)
    consumer = give_up(office, handle, on_poison="dead_letter")  # type: ignore[arg-type]
    fails[0] = False
    consumer.redrive("q")
    with pytest.raises(NotParked):
        consumer.redrive("q")
    effects = office.sorter.stores.control("Control").checkpoints._control.effects  # type: ignore[attr-defined]
    assert [effect.request["Item"]["id"] for effect in effects] == ["0"]


def test_two_redrives_at_once_end_in_one_of_them(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0)
    consumer = give_up(office, clerk, on_poison="dead_letter")
    other = office.hire(clerk)
    clerk.poison.clear()
    office.interrupt(consumer).before["settle"] = [lambda: other.redrive("q")]
    with pytest.raises(CheckpointConflict):
        consumer.redrive("q")
    assert consumer.dead_letters() == []


def test_a_redrive_takes_no_note_of_another_one_back(office: Office) -> None:
    office.put(0)
    consumer = give_up(office, Clerk(poison={0}), on_poison="dead_letter")
    (letter,) = consumer.dead_letters()
    store = office.interrupt(consumer)

    def while_another_one_fails_to_note_its_own(_: Batch) -> None:
        store.before["settle"] = [fail]
        with pytest.raises(StoreUnavailable):
            StuckMessages(consumer._context).redrive(letter)

    assert office.hire(while_another_one_fails_to_note_its_own).redrive("q") == 1
    assert consumer.dead_letters() == []


def test_a_dead_letter_whose_item_is_gone_is_named(office: Office) -> None:
    office.put(0, 1)
    consumer = give_up(office, Clerk(poison={0}), on_poison="dead_letter")
    office.lose_item(0)
    with pytest.raises(MissingItems, match="seq 0"):
        consumer.redrive("q")
    consumer.discard("q", 0, "trimmed")
    assert consumer.dead_letters() == []


def test_discard_gives_a_dead_letter_up_for_good_and_keeps_the_reason(office: Office) -> None:
    office.put(0, 1)
    consumer = give_up(office, Clerk(poison={0}), on_poison="dead_letter")
    consumer.discard("q", 0, "a test message")
    assert consumer.dead_letters() == []
    kept = office.sorter.stores.control("Control").checkpoints._control.dead  # type: ignore[attr-defined]
    assert kept[("billing", "q", 0)].discarded == "a test message"
    with pytest.raises(NotParked):
        consumer.discard("q", 0, "again")


def test_discard_of_the_message_a_queue_is_parked_at_lets_the_queue_go_on(office: Office) -> None:
    clerk = Clerk(poison={1})
    office.put(0, 1, 2)
    consumer = give_up(office, clerk)
    office.waker.sent.clear()
    consumer.discard("q", 1, "never mind")
    assert (consumer.checkpoint("q"), consumer.parked(), office.waker.sent) == (1, [], [("q", 0.0)])
    wake(consumer)
    assert (clerk.seqs(), consumer.dead_letters()) == ([0, 2], [])
    kept = office.sorter.stores.control("Control").checkpoints._control.dead  # type: ignore[attr-defined]
    assert (kept[("billing", "q", 1)].discarded, kept[("billing", "q", 1)].attempts) == ("never mind", 2)


def test_discard_stands_even_if_no_wake_can_be_sent(office: Office) -> None:
    office.put(0, 1)
    consumer = give_up(office, Clerk(poison={0}))
    office.waker.fails = True
    consumer.discard("q", 0, "never mind")
    assert consumer.checkpoint("q") == 0


def test_discard_of_a_queue_that_goes_on_meanwhile_is_refused(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0, 1)
    consumer = give_up(office, clerk)
    other = office.hire(clerk)
    clerk.poison.clear()
    office.interrupt(consumer).before["commit"] = [lambda: other.redrive("q")]
    with pytest.raises(CheckpointConflict):
        consumer.discard("q", 0, "too late")
    assert clerk.seqs() == [0, 1]


def test_i3_discard_sets_no_checkpoint_back(office: Office) -> None:
    clerk = Clerk(poison={3})
    office.put(*range(5))
    consumer = give_up(office, clerk)
    control, row = office.sorter.stores.control("Control"), office.row()
    assert row is not None
    assert row.parked is not None
    # A row that an earlier version left: parked at what was delivered meanwhile.
    control.checkpoints.commit(row, row.moved(2, "earlier", office.clock(), replace(row.parked, seq=0)))
    with pytest.raises(InvalidInput, match="the checkpoint is 2"):
        consumer.discard("q", 0, "as parked says")
    assert consumer.checkpoint("q") == 2
    clerk.poison.clear()
    assert (consumer.redrive("q"), consumer.parked()) == (2, [])


@pytest.mark.parametrize("seq", [None, 0, 7])
def test_there_must_be_something_to_redrive_or_discard(office: Office, seq: int | None) -> None:
    office.put(0, 1)
    consumer = give_up(office, Clerk(poison={1}))
    with pytest.raises(NotParked, match="nothing is parked or dead at queue 'other'"):
        consumer.redrive("other", seq)
    if seq is not None:
        with pytest.raises(NotParked, match=f"queue 'q', seq {seq}"):
            consumer.redrive("q", seq)
        with pytest.raises(NotParked):
            consumer.discard("q", seq, "why")


def test_discard_of_a_message_that_is_dead_and_parked_again_after_a_reset_lets_the_queue_go_on(office: Office) -> None:
    office.put(0, 1, 2)
    office.hire(Clerk(poison={1}), max_attempts=1, on_poison="dead_letter").catch_up("q")
    clerk = Clerk(poison={1})
    consumer = office.hire(clerk, max_attempts=1, on_poison="park")
    consumer.reset(to=0, force=True)
    consumer.catch_up("q")
    assert ([one.seq for one in consumer.dead_letters()], [one.seq for one in consumer.parked()]) == ([1], [1])
    consumer.discard("q", 1, "junk")
    assert (consumer.dead_letters(), consumer.parked()) == ([], [])
    assert [(one.seq, one.discarded) for one in consumer.discarded("q")] == [(1, "junk")]
    assert (consumer.catch_up("q"), clerk.seqs()) == (1, [0, 2])


def test_a_dead_letter_can_be_discarded_while_its_queue_is_damaged_at_the_same_seq(office: Office) -> None:
    office.put(0, 1)
    consumer = office.hire(Clerk(poison={0}), max_attempts=1, on_poison="dead_letter")
    consumer.catch_up("q")
    consumer.reset(to=0, force=True)
    office.lose_cursor()
    with pytest.raises(CursorLost):
        consumer.catch_up("q")
    assert [(one.seq, one.damaged) for one in consumer.parked()] == [(0, True)]
    consumer.discard("q", 0, "junk")
    assert (consumer.dead_letters(), [one.seq for one in consumer.parked()]) == ([], [0])


def test_what_a_handler_held_when_it_failed_is_let_go_before_the_run_is_over() -> None:
    office, held = Office(), list[weakref.ref[set[int]]]()

    def handle(batch: Batch) -> None:
        parsed = {batch.seqs[0]}
        held.append(weakref.ref(parsed))
        raise ValueError(batch.seqs[0])

    consumer = office.hire(handle, max_attempts=1, on_poison="dead_letter")
    office.put(0, 1, 2)
    (served,) = consumer.process([Wake("q")])
    gc.collect()
    assert sorted(served.causes) == [0, 1, 2]
    assert all(cause.__traceback__ is not None for cause in served.causes.values())
    assert [one() for one in held if one() is not None] == []
