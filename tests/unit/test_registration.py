"""Where a consumer starts: at the first message, at the positions of the moment, or at a seq."""

from __future__ import annotations

from typing import Any

import pytest

from stream_sort import StoreUnavailable
from stream_sort.consume.registration import Registration
from stream_sort.model.consumption import LATEST, Checkpoint, Subscription
from stream_sort.model.records import QueuePage
from stream_sort.ports.in_flight import InFlight
from tests.consumers import Clerk, Interrupted, Office, OnePort, fail, interrupt_registration, wake


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def clerk() -> Clerk:
    return Clerk()


def test_a_consumer_starts_at_the_first_message(office: Office, clerk: Clerk) -> None:
    office.put(0, 1)
    wake(office.hire(clerk))
    assert clerk.seqs() == [0, 1]


def test_a_latest_consumer_starts_behind_what_is_released_when_it_registers(office: Office, clerk: Clerk) -> None:
    office.put(0, 1)
    consumer = office.hire(clerk, start="latest")
    assert (consumer.catch_up("q"), consumer.checkpoint("q")) == (0, 1)
    office.put(2)
    wake(consumer)
    assert clerk.seqs() == [2]


def test_a_latest_consumer_gets_all_of_a_queue_that_begins_later(office: Office, clerk: Clerk) -> None:
    office.put(0)
    consumer = office.hire(clerk, start="latest")
    consumer.catch_up("q")
    office.put(0, 1, queue="new")
    wake(consumer, "new")
    assert clerk.seqs("new") == [0, 1]


def test_a_latest_consumer_leaves_a_queue_that_has_not_begun_to_be_opened_elsewhere(
    office: Office, clerk: Clerk
) -> None:
    office.put(100)
    consumer = office.hire(clerk, start="latest")
    wake(consumer)
    office.sorter.open("q", first_seq=100)
    wake(consumer)
    assert clerk.seqs() == [100]


@pytest.mark.parametrize(("start", "seqs"), [(3, [3, 4]), ("3", [3, 4]), (-7, [0, 1, 2, 3, 4]), (9, [])])
def test_a_consumer_may_start_at_a_seq(office: Office, clerk: Clerk, start: int | str, seqs: list[int]) -> None:
    office.put(*range(5))
    wake(office.hire(clerk, start=start))
    assert clerk.seqs() == seqs


def test_a_start_beyond_the_position_is_kept_to_when_the_queue_gets_there(office: Office, clerk: Clerk) -> None:
    office.put(0, 1)
    consumer = office.hire(clerk, start=3)
    wake(consumer)
    assert consumer.checkpoint("q") == 2
    office.put(2, 3, 4)
    wake(consumer)
    assert clerk.seqs() == [3, 4]


def test_where_a_consumer_starts_is_decided_when_it_is_first_registered(office: Office, clerk: Clerk) -> None:
    wake(office.hire(clerk, start=2))
    office.put(*range(4))
    second = office.hire(clerk, start="earliest")
    assert (second.asked_start, second.start) == ("earliest", "earliest")
    wake(second)
    assert clerk.seqs() == [2, 3]
    assert (second.asked_start, second.start) == ("earliest", "2")


def test_a_consumer_is_registered_once_a_process(office: Office, clerk: Clerk) -> None:
    consumer = office.hire(clerk)
    store = interrupt_registration(consumer)
    wake(consumer)
    wake(consumer)
    assert store.calls == ["register"]


def test_a_registration_that_fails_delivers_nothing_and_is_made_again(office: Office, clerk: Clerk) -> None:
    office.put(0)
    consumer = office.hire(clerk, start="latest")
    store = interrupt_registration(consumer)
    store.before["make_ready"] = [fail]
    with pytest.raises(StoreUnavailable):
        wake(consumer)
    assert clerk.batches == []
    office.put(1)
    wake(consumer)
    assert clerk.seqs() == [1]


class OneByOne:
    """Cursors whose listing has one queue a page."""

    def __init__(self, cursors: Any, between: Any = None) -> None:
        self._cursors = cursors
        self._between = between
        self.get = cursors.get

    def queues(self, start: int | None = None) -> QueuePage:
        index = start or 0
        if index and self._between:
            self._between()
        names = sorted(self._cursors.queues().queues)
        return QueuePage((names[index],), index + 1 if index + 1 < len(names) else None)


def registration(office: Office, cursors: Any) -> Registration:
    control = office.sorter.stores.control("Control")
    return Registration(control.subscriptions, control.checkpoints, cursors, office.clock, InFlight(1))


def test_every_page_of_queues_gets_its_checkpoints(office: Office) -> None:
    for queue in "abc":
        office.put(0, 1, queue=queue)
    registration(office, OneByOne(office.sorter.stores.cursors)).register("late", LATEST)
    assert [office.row(queue, "late") for queue in "abc"] == [Checkpoint("late", queue, 1) for queue in "abc"]
    control = office.sorter.stores.control("Control")
    assert control.subscriptions.consumers() == [Subscription("late", LATEST, office.clock(), ready=True)]


def test_a_registration_that_was_killed_goes_on_where_it_was_and_does_not_begin_anew(office: Office) -> None:
    queues = [f"q{number}" for number in range(250)]
    for queue in queues:
        office.put(0, queue=queue)
    control = office.sorter.stores.control("Control")
    store = Interrupted(OnePort(control.subscriptions, control.checkpoints))
    store.before["make_ready"] = [fail]
    with pytest.raises(StoreUnavailable):
        Registration(store, store, office.sorter.stores.cursors, office.clock, InFlight(1)).register("late", LATEST)  # type: ignore[arg-type]
    assert store.calls.count("create") == len(queues)
    store.calls.clear()
    Registration(store, store, office.sorter.stores.cursors, office.clock, InFlight(1)).register("late", LATEST)  # type: ignore[arg-type]
    assert store.calls == ["register", "of_queues", "make_ready"]


def test_a_retired_latest_consumer_that_comes_back_needs_no_pass_over_all_queues(office: Office, clerk: Clerk) -> None:
    office.put(0)
    wake(office.hire(clerk, start="latest"))
    office.hire(clerk).retire()
    control = office.sorter.stores.control("Control")
    store = Interrupted(OnePort(control.subscriptions, control.checkpoints))
    Registration(store, store, office.sorter.stores.cursors, office.clock, InFlight(1)).register("billing", LATEST)  # type: ignore[arg-type]
    assert store.calls == ["register"]


@pytest.mark.parametrize("retired_first", [True, False])
def test_a_retired_latest_consumer_that_comes_back_gets_all_of_a_queue_it_had_not_begun(
    office: Office, clerk: Clerk, *, retired_first: bool
) -> None:
    office.put(0, queue="old")
    consumer = office.hire(clerk, start="latest")
    wake(consumer, "old")
    if retired_first:
        consumer.retire()
    office.put(0, 1, 2, queue="new")
    if not retired_first:
        consumer.retire()
    wake(consumer, "new")
    assert clerk.seqs("new") == [0, 1, 2]


def test_a_latest_consumer_that_is_retired_for_a_moment_while_it_starts_starts_at_the_latest_everywhere(
    office: Office, clerk: Clerk
) -> None:
    for queue in "abc":
        office.put(0, 1, queue=queue)
    control = office.sorter.stores.control("Control")
    cursors = OneByOne(office.sorter.stores.cursors)
    get = cursors.get

    def get_while_it_is_retired(queue: str) -> Any:
        if queue == "a":
            control.subscriptions.retire("billing", office.clock())
        return get(queue)

    cursors.get = get_while_it_is_retired
    registration(office, cursors).register("billing", LATEST)
    wake(office.hire(clerk, start="latest"), "a", "b", "c")
    assert clerk.batches == []


def test_a_slow_registration_stops_when_another_one_is_through(office: Office) -> None:
    office.put(0, queue="a")
    control = office.sorter.stores.control("Control")

    def another_one_is_through() -> None:
        registration(office, office.sorter.stores.cursors).register("late", LATEST)
        office.put(0, queue="new")

    office.put(0, queue="b")
    slow = registration(office, OneByOne(office.sorter.stores.cursors, another_one_is_through))
    assert slow.register("late", LATEST) == LATEST
    assert control.subscriptions.consumers()[0].ready
    assert office.row("new", "late") is None


def test_i3_a_slow_registration_sets_no_checkpoint_once_another_one_is_through(office: Office, clerk: Clerk) -> None:
    office.put(0, queue="old")
    control, cursors = office.sorter.stores.control("Control"), office.sorter.stores.cursors

    class Slow:
        """Cursor rows that are read while somebody else registers, and a queue begins behind that."""

        def queues(self, start: Any = None) -> QueuePage:
            page = cursors.queues(start)
            return QueuePage((*page.queues, "new"))

        def get(self, queue: str) -> Any:
            if queue == "new":
                Registration(control.subscriptions, control.checkpoints, cursors, office.clock, InFlight(1)).register(
                    "billing", LATEST
                )
                office.put(0, 1, queue="new")
            return cursors.get(queue)

    slow = Registration(control.subscriptions, control.checkpoints, Slow(), office.clock, InFlight(1))  # type: ignore[arg-type]  # what it needs
    slow.register("billing", LATEST)
    consumer = office.hire(clerk, start="latest")
    wake(consumer, "new")
    assert clerk.seqs("new") == [0, 1]
    assert consumer.checkpoint("old") == 0
