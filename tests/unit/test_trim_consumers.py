"""I5: nothing is trimmed before every consumer passed it, whoever comes while it is trimmed."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import NotConsumed
from stream_sort.model.consumption import Subscription
from stream_sort.upkeep.trimmer import Trimmer
from tests.consumers import Clerk, Interrupted, Office, wake


@pytest.fixture
def office() -> Office:
    office = Office()
    office.put(*range(10))
    office.sorter.stores.control("Control").create_table()
    return office


def stored(office: Office) -> list[int]:
    return office.sorter.stores.items._tables.queues["q"].firsts  # type: ignore[attr-defined,no-any-return]


def trim(office: Office, through: int) -> int:
    return office.sorter.trim("q", through, control_table="Control")


def test_i5_what_a_consumer_has_not_passed_is_not_trimmed(office: Office) -> None:
    clerk = Clerk(poison={5})
    office.hire(Clerk(), "search").catch_up("q")
    office.hire(clerk).catch_up("q")
    with pytest.raises(NotConsumed, match="through 5: consumer 'billing' stands at 4") as caught:
        trim(office, 5)
    assert (caught.value.consumer, caught.value.checkpoint, caught.value.dead) == ("billing", 4, None)
    assert len(stored(office)) == 10
    assert trim(office, 4) == 5
    assert stored(office) == [5, 6, 7, 8, 9]


def test_i5_a_dead_letter_is_kept_until_it_is_settled(office: Office) -> None:
    clerk = Clerk(poison={3})
    consumer = office.hire(clerk, on_poison="dead_letter", max_attempts=1)
    consumer.catch_up("q")
    with pytest.raises(NotConsumed, match="keeps seq 3 as a dead letter; redrive or discard it") as caught:
        trim(office, 6)
    assert (caught.value.dead, len(stored(office))) == (3, 10)
    assert trim(office, 2) == 3
    clerk.poison.clear()
    consumer.redrive("q")
    assert trim(office, 6) == 4


def test_i5_a_consumer_that_has_not_begun_in_the_queue_stands_before_its_start(office: Office) -> None:
    consumer = office.hire(Clerk())
    consumer.process([])
    with pytest.raises(NotConsumed, match="stands at -1"):
        trim(office, 0)
    assert len(stored(office)) == 10


def test_a_consumer_that_starts_at_a_later_seq_needs_nothing_before_it(office: Office) -> None:
    consumer = office.hire(Clerk(), start=6)
    consumer.process([])
    assert trim(office, 5) == 6
    with pytest.raises(NotConsumed):
        trim(office, 6)


def test_a_consumer_that_comes_after_a_trim_begins_behind_the_floor(office: Office) -> None:
    trim(office, 6)
    clerk, early = Clerk(), Clerk()
    assert office.hire(clerk).catch_up("q") == 3
    assert office.hire(early, "early", start=2).catch_up("q") == 3
    assert clerk.seqs() == early.seqs() == [7, 8, 9]


def test_i5_a_consumer_that_is_setting_its_first_checkpoints_holds_up_a_trim(office: Office) -> None:
    trim(office, 4)
    office.sorter.stores.control("Control").subscriptions.register(Subscription("latest", "latest", 0.0, ready=False))
    with pytest.raises(NotConsumed, match="'latest'"):
        trim(office, 4)


def interrupted(office: Office) -> tuple[Trimmer, Interrupted]:
    stores = office.sorter.stores
    cursors: Any = Interrupted(stores.cursors)
    return Trimmer(stores.items, cursors, stores.control("Control")), cursors


def test_i5_a_consumer_that_begins_before_the_floor_is_set_gets_everything(office: Office) -> None:
    trimmer, cursors = interrupted(office)
    clerk = Clerk(poison={0})
    consumer = office.hire(clerk)
    cursors.before["set_floor"] = [lambda: wake(consumer)]
    with pytest.raises(NotConsumed, match="stands at -1"):
        trimmer.trim("q", 6)
    assert len(stored(office)) == 10
    clerk.poison.clear()
    consumer.redrive("q")
    assert clerk.seqs() == list(range(10))
    assert trim(office, 6) == 7


@pytest.mark.parametrize("is_retired", [False, True], ids=["new", "retired before"])
def test_i5_what_a_consumer_that_registers_during_a_trim_never_gets_is_not_left_stored(
    office: Office, *, is_retired: bool
) -> None:
    trimmer, cursors = interrupted(office)
    clerk = Clerk()
    consumer = office.hire(clerk)
    if is_retired:
        consumer.process([])
        consumer.retire()
    cursors.before["set_floor"] = [lambda: consumer.process([])]
    assert trimmer.trim("q", 6) == 7
    wake(consumer)
    assert (clerk.seqs(), stored(office)) == ([7, 8, 9], [7, 8, 9])


def test_i5_a_consumer_that_read_the_row_before_the_floor_begins_behind_it_if_the_trim_came_first(
    office: Office,
) -> None:
    trimmer, cursors = interrupted(office)
    clerk = Clerk()
    consumer = office.hire(clerk)
    control = office.interrupt(consumer)

    def trim_twice() -> None:
        # The consumer is registered and has read the row, but has no checkpoint yet.
        with pytest.raises(NotConsumed):
            trimmer.trim("q", 6)
        cursors.store.set_floor("q", 6)
        assert trimmer.trim("q", 6) == 7

    control.before["create"] = [trim_twice]
    wake(consumer)
    assert clerk.seqs() == [7, 8, 9]


def test_without_a_control_table_no_consumer_is_asked(office: Office) -> None:
    office.hire(Clerk()).process([])
    assert office.sorter.trim("q", 6, control_table=None) == 7
