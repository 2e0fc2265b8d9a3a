"""A retired consumer that comes back behind a trim is told so, and gets past it by a discard with a reason."""

from __future__ import annotations

import pytest

from stream_sort import (
    CheckpointConflict,
    NotParked,
    OrderedConsumer,
    QueueDamaged,
    SettingsError,
    TableNotFound,
    Trimmed,
)
from tests.consumers import Clerk, Office, wake


@pytest.fixture
def office() -> Office:
    office = Office()
    office.put(*range(10))
    return office


def left_behind(office: Office, clerk: Clerk) -> OrderedConsumer:
    """Stood at 4 when it was retired; 0 to 7 are trimmed."""
    clerk.poison.add(5)
    consumer = office.hire(clerk)
    wake(consumer)
    clerk.poison.clear()
    consumer.retire()
    assert office.sorter.trim("q", 7, control_table="Control") == 8
    office.clock.now += 1_000
    return consumer


def test_it_is_parked_as_trimmed_with_the_floor_and_the_way_out(office: Office) -> None:
    consumer = left_behind(office, Clerk())
    (served,) = wake(consumer)
    assert isinstance(served.error, Trimmed)
    assert (served.error.queue, served.error.floor) == ("q", 7)
    (parked,) = consumer.parked()
    assert (parked.seq, parked.damaged) == (5, True)
    assert parked.error.startswith("Trimmed: queue 'q' is trimmed up to seq 7, and seq 5 was not consumed")
    assert "discard('q', 5, reason)" in parked.error
    with pytest.raises(Trimmed):
        consumer.redrive("q")
    with pytest.raises(Trimmed):
        consumer.catch_up("q", force=True)


def test_a_discard_of_the_parked_seq_moves_it_to_the_floor_and_it_goes_on(office: Office) -> None:
    clerk = Clerk()
    consumer = left_behind(office, clerk)
    wake(consumer)
    with pytest.raises(NotParked):
        consumer.discard("q", 6, "not this one")
    consumer.discard("q", 5, "archived")
    assert (consumer.checkpoint("q"), consumer.parked(), consumer.dead_letters()) == (7, [], [])
    wake(consumer)
    assert clerk.seqs() == [0, 1, 2, 3, 4, 8, 9]
    assert office.sorter.trim("q", 9, control_table="Control") == 1


def test_a_discard_is_on_condition_that_nobody_got_on_meanwhile(office: Office) -> None:
    consumer = left_behind(office, Clerk())
    wake(consumer)
    office.interrupt(consumer).before["commit"] = [lambda: office.hire(Clerk()).discard("q", 5, "first")]
    with pytest.raises(CheckpointConflict):
        consumer.discard("q", 5, "second")


def test_a_hole_above_the_floor_is_still_damage_that_nobody_can_discard(office: Office) -> None:
    consumer = left_behind(office, Clerk())
    wake(consumer)
    consumer.discard("q", 5, "archived")
    office.lose_item(8)
    wake(consumer)
    assert consumer.parked()[0].error.startswith("MissingItems")
    with pytest.raises(QueueDamaged, match="put what is missing again"):
        consumer.discard("q", 8, "no")
    office.put(8)
    assert consumer.redrive("q") == 2


def test_a_discard_on_a_queue_without_its_cursor_says_what_it_is_and_what_to_do(office: Office) -> None:
    consumer = office.hire(Clerk())
    wake(consumer)
    office.lose_cursor()
    wake(consumer)
    with pytest.raises(QueueDamaged, match="stream-sort recover q") as caught:
        consumer.discard("q", 10, "no")
    assert caught.value.problem.startswith("CursorLost")


def test_what_is_below_the_floor_but_still_stored_is_not_discarded(office: Office) -> None:
    clerk = Clerk({5})
    consumer = office.hire(clerk)
    wake(consumer)
    clerk.poison.clear()
    consumer.retire()
    put_back = office.lose_item(5)
    office.clock.now += 1_000
    wake(consumer)
    # A trim that died before it deleted anything.
    office.sorter.stores.cursors.set_floor("q", 7)
    put_back()
    with pytest.raises(QueueDamaged):
        consumer.discard("q", 5, "no need")
    assert consumer.redrive("q") == 5


def test_a_dead_letter_behind_a_trim_says_so_and_can_be_discarded(office: Office) -> None:
    consumer = office.hire(Clerk({5}), on_poison="dead_letter", max_attempts=1)
    consumer.catch_up("q")
    consumer.retire()
    office.sorter.trim("q", 7, control_table="Control")
    with pytest.raises(Trimmed, match=r"discard\('q', 5, reason\)"):
        consumer.redrive("q")
    consumer.discard("q", 5, "archived")
    assert consumer.dead_letters() == []


def test_a_retired_consumer_without_a_checkpoint_in_the_queue_starts_behind_the_floor(office: Office) -> None:
    clerk = Clerk()
    consumer = office.hire(clerk)
    consumer.process([])
    consumer.retire()
    office.sorter.trim("q", 7, control_table="Control")
    wake(consumer)
    assert clerk.seqs() == [8, 9]


@pytest.mark.parametrize("name", ["", False, 5, pytest.param(object(), id="object"), [], "a b"], ids=ascii)
def test_a_control_table_that_has_no_name_is_refused_in_memory_too(office: Office, name: str) -> None:
    with pytest.raises(SettingsError, match="must be the name or the ARN of a DynamoDB table"):
        office.sorter.trim("q", 7, control_table=name)
    with pytest.raises(SettingsError):
        office.hire(Clerk(), control_table=name)
    assert next(office.sorter.read("q"))["seq"] == 0


def test_a_control_table_that_nobody_used_does_not_stand_for_no_consumers(office: Office) -> None:
    office.hire(Clerk()).process([])
    for _ in range(2):
        with pytest.raises(TableNotFound, match="'Contrl'"):
            office.sorter.trim("q", 7, control_table="Contrl")
    assert next(office.sorter.read("q"))["seq"] == 0
