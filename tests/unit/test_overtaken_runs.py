"""A run that another one overtook raises no false alarm: what it finds missing was delivered and trimmed meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort import CheckpointConflict, CursorLost, MissingItems, Trimmed
from stream_sort.model.consumption import Checkpoint
from stream_sort.testing.contract_examples import arrival
from stream_sort.testing.simulation.simulator import simulate
from tests.consumers import Clerk, Office, control_of, ends, give_control, wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import OrderedConsumer
    from stream_sort.model.consumption import Standing

RUN = 60.0


@pytest.fixture
def office() -> Office:
    return Office()


def overtake(office: Office, consumer: OrderedConsumer, step: str, *happenings: Callable[[], object]) -> None:
    """Let something happen once a consumer has read or made its checkpoint."""
    office.interrupt(consumer).after[step] = list(happenings)


def deliver_and_trim(office: Office, through: int) -> Callable[[], None]:
    """What another run of the same consumer does, and a trim after it."""

    def happens() -> None:
        office.hire(Clerk()).catch_up("q")
        office.sorter.trim("q", through, control_table="Control")

    return happens


def test_a_catch_up_that_was_overtaken_does_not_say_that_consumed_messages_were_trimmed_unread(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk())
    overtake(office, consumer, "create", deliver_and_trim(office, 2))
    assert consumer.catch_up("q") == 0
    assert (consumer.checkpoint("q"), consumer.parked()) == (2, [])


def test_a_catch_up_that_was_overtaken_goes_on_from_where_the_other_run_is(office: Office) -> None:
    office.put(0, 1, 2)
    clerk = Clerk()
    consumer = office.hire(clerk)

    def more_comes() -> None:
        deliver_and_trim(office, 2)()
        office.put(3, 4)

    overtake(office, consumer, "create", more_comes)
    assert (consumer.catch_up("q"), clerk.seqs()) == (2, [3, 4])


def test_a_run_of_process_that_was_overtaken_ends_as_overtaken(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk())
    overtake(office, consumer, "create", deliver_and_trim(office, 2))
    (served,) = wake(consumer)
    assert (served.ended, served.parked) == ("overtaken", None)
    assert isinstance(served.error, CheckpointConflict)
    assert consumer.parked() == []


def test_a_redrive_that_was_overtaken_raises_no_false_alarm(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(0, 1, 2)
    consumer = office.hire(clerk)
    wake(consumer)
    clerk.poison.clear()

    def redriven_elsewhere() -> None:
        office.hire(Clerk()).redrive("q")
        office.sorter.trim("q", 2, control_table="Control")

    store = office.interrupt(consumer)
    # The second look is that of the delivery; the first one only finds what is stuck.
    store.after["standing"] = [lambda: store.after.update(standing=[redriven_elsewhere])]
    assert consumer.redrive("q") == 0
    assert (consumer.checkpoint("q"), consumer.parked()) == (2, [])


def test_a_redrive_that_was_overtaken_parks_no_message_that_the_other_run_delivered(office: Office) -> None:
    clerk = Clerk(poison={0})
    office.put(*range(6))
    consumer = office.hire(clerk, batch_size=1)
    wake(consumer)
    left = [RUN]

    def redriven_elsewhere() -> None:
        office.hire(Clerk()).catch_up("q", force=True)
        office.put(6)
        left[0] = 0.0

    store = office.interrupt(consumer)
    # The second note is that of the second try: what failed at the first one is to be recorded still.
    store.after["commit"] = [lambda: store.before.update(commit=[redriven_elsewhere])]
    assert consumer.redrive("q", time_left=lambda: left[0]) == 0
    assert (consumer.checkpoint("q"), consumer.parked()) == (5, [])
    assert office.waker.sent[-1] == ("q", 0.0)


def test_a_dead_letter_that_another_run_redrove_before_it_was_trimmed_is_a_conflict_and_no_loss(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk(poison={1}), on_poison="dead_letter", max_attempts=1)
    consumer.catch_up("q")

    def redriven_elsewhere() -> None:
        office.hire(Clerk()).redrive("q")
        office.sorter.trim("q", 2, control_table="Control")

    overtake(office, consumer, "of_queue", redriven_elsewhere)
    with pytest.raises(CheckpointConflict):
        consumer.redrive("q")
    assert consumer.dead_letters() == []


def test_a_dead_letter_that_still_stands_and_was_trimmed_is_named_as_before(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk(poison={1}), on_poison="dead_letter", max_attempts=1)
    consumer.catch_up("q")
    consumer.retire()
    office.sorter.trim("q", 2, control_table="Control")
    with pytest.raises(Trimmed):
        consumer.redrive("q")


def test_a_hole_that_was_mended_before_it_could_be_recorded_is_not_raised(office: Office) -> None:
    office.put(0, 1, 2)
    put_back = office.lose_item(0)
    clerk = Clerk()
    consumer = office.hire(clerk)

    def mended() -> None:
        put_back()
        wake(office.hire(Clerk()))
        office.put(3)

    office.interrupt(consumer).before["commit"] = [mended]
    assert (consumer.catch_up("q"), clerk.seqs()) == (1, [3])


def test_a_true_hole_is_still_raised_and_parked(office: Office) -> None:
    office.put(0, 1, 2)
    office.lose_item(0)
    consumer = office.hire(Clerk())
    with pytest.raises(MissingItems):
        consumer.catch_up("q")
    assert [one.damaged for one in consumer.parked()] == [True]
    office.clock.move(10)
    assert ends(wake(consumer)) == ["parked"]


def test_i10_a_hole_in_a_queue_whose_cursor_was_lost_meanwhile_is_told_as_the_lost_cursor(office: Office) -> None:
    office.put(0, 1, 2)
    office.lose_item(0)
    consumer = office.hire(Clerk())
    overtake(office, consumer, "create", office.lose_cursor)
    assert ends(wake(consumer)) == ["parked"]
    assert [one.error.split(":")[0] for one in consumer.parked()] == ["CursorLost"]


def test_i3_a_lost_cursor_sets_no_checkpoint_back_that_somebody_else_made_meanwhile(office: Office) -> None:
    office.put(1)
    # A writer died before it advanced the queue over this one.
    office.sorter.stores.items.put(arrival("q", 0), office.clock())
    consumer = office.hire(Clerk())
    made = Checkpoint("billing", "q", 1)

    def begins_elsewhere_and_loses_the_row() -> None:
        office.sorter.stores.control("Control").checkpoints.create(made)
        office.lose_cursor()

    store = office.interrupt(consumer)
    store.after["standing"] = [
        lambda: store.after.update(standing=[begins_elsewhere_and_loses_the_row]),
    ]
    (served,) = wake(consumer)
    assert (served.ended, type(served.error)) == ("failed", CursorLost)
    assert office.row() == made


def test_i10_a_queue_that_begins_while_it_is_read_is_not_taken_for_one_whose_cursor_is_lost(office: Office) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk)
    control = control_of(consumer)

    class Torn:
        """Reads the cursor row before the queue begins, and the checkpoint after it."""

        def __init__(self) -> None:
            self.reads = 0

        def standing(self, name: str, queue: str, slot: int | None = None) -> Standing:
            self.reads += 1
            if self.reads > 1:
                return control.standing(name, queue, slot)
            office.put(0)
            office.hire(Clerk()).catch_up("q")
            office.put(1)
            return replace(control.standing(name, queue, slot), cursor=None)

        def __getattr__(self, name: str) -> object:
            return getattr(control, name)

    give_control(consumer, Torn())
    assert ends(wake(consumer)) == ["done"]
    assert (clerk.seqs(), consumer.parked()) == ([1], [])


def test_i5_the_seed_in_which_a_reader_was_overtaken_holds() -> None:
    simulate(21_469)


@pytest.mark.parametrize("forced", [False, True])
def test_a_queue_that_is_opened_elsewhere_while_a_first_run_looks_is_delivered_from_there(
    office: Office, *, forced: bool
) -> None:
    office.sorter.open("q", first_seq=0)
    # Stored, and its writer died before it moved the cursor.
    office.sorter.stores.items.put(arrival("q", 0), office.clock())
    clerk = Clerk()
    consumer = office.hire(clerk)
    overtake(office, consumer, "standing", lambda: office.sorter.open("q", first_seq=-1), lambda: office.put(-1))
    if forced:
        consumer.catch_up("q", force=True)
    else:
        wake(consumer, position=-1)
    assert clerk.seqs() == [-1, 0]
