"""Who only asks is not made known; who is retired is waited for no more, and goes on where it was if it comes back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from stream_sort import NotConsumed, NotParked, OrderedConsumer, SettingsError
from stream_sort.registrar import Registrar
from stream_sort.watcher import Watcher
from tests.consumers import Clerk, Office, wake

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def office() -> Office:
    return Office()


def known(office: Office) -> list[str]:
    return [one.name for one in office.sorter.stores.control("Control").consumers()]


@pytest.mark.parametrize(
    "ask",
    [
        lambda it: it.checkpoint("q"),
        lambda it: it.parked(),
        lambda it: it.dead_letters(),
        lambda it: it.discard("q", 0, "typo"),
        lambda it: it.redrive("q"),
        lambda it: it.retire(),
    ],
    ids=["checkpoint", "parked", "dead_letters", "discard", "redrive", "retire"],
)
@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_consumer_that_is_only_asked_is_not_registered(
    office: Office, ask: Callable[[OrderedConsumer], object], start: str
) -> None:
    office.put(0, 1)
    with suppress(NotParked):
        ask(office.hire(Clerk(), "biling", start=start))
    assert known(office) == []


@pytest.mark.parametrize(("start", "at"), [("earliest", -1), ("latest", 2), (1, 0), (9, 8)])
def test_the_checkpoint_of_a_consumer_that_never_ran_is_where_it_would_begin(
    office: Office, start: str | int, at: int
) -> None:
    office.put(0, 1, 2)
    assert office.hire(Clerk(), start=start).checkpoint("q") == at


def test_a_registered_start_counts_for_the_checkpoint_of_a_queue_not_begun(office: Office) -> None:
    office.put(0, queue="other")
    wake(office.hire(Clerk(), start=2), "other")
    office.put(0, 1, 2)
    assert office.hire(Clerk(), start="earliest").checkpoint("q") == 1


def test_a_retired_consumer_lags_behind_nothing_and_is_woken_for_nothing(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.put(1, 2, 3)
    office.clock.now += 600
    watcher = Watcher(office.sorter.stores.control("Control"), office.sorter.stores.cursors)
    assert (watcher.lagging(office.clock()), dict(watcher.watched.lag)) == (["q"], {"billing": 3})
    consumer.retire()
    assert (watcher.lagging(office.clock()), dict(watcher.watched.lag)) == ([], {})
    assert known(office) == []


@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_a_retired_consumer_that_comes_back_goes_on_where_it_was(office: Office, start: str) -> None:
    office.put(0, 1)
    clerk = Clerk()
    consumer = office.hire(clerk, start=start)
    wake(consumer)
    office.put(2)
    wake(consumer)
    consumer.retire()
    office.put(3, 4)
    wake(consumer)
    assert known(office) == ["billing"]
    assert clerk.seqs() == ([0, 1, 2, 3, 4] if start == "earliest" else [2, 3, 4])


def test_a_trim_does_not_wait_for_a_retired_consumer_which_is_told_of_the_hole_if_it_comes_back(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.put(1, 2, 3)
    with pytest.raises(NotConsumed):
        office.sorter.trim("q", 2, control_table="Control")
    consumer.retire()
    assert office.sorter.trim("q", 2, control_table="Control") == 3
    wake(consumer)
    (parked,) = consumer.parked()
    assert (parked.seq, parked.damaged) == (1, True)
    assert "trimmed up to seq 2" in parked.error


def test_what_a_retired_consumer_parked_can_still_be_seen(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk({0}))
    wake(consumer)
    consumer.retire()
    assert [one.seq for one in consumer.parked()] == [0]


def test_a_consumer_retired_while_it_starts_leaves_no_half_registration(office: Office) -> None:
    office.put(0, 1)
    control = office.sorter.stores.control("Control")
    consumer = office.hire(Clerk(), start="latest")
    registrar = Registrar(control, office.sorter.stores.cursors, office.clock, office.sorter.in_flight)
    make_ready = control.make_ready
    control.make_ready = lambda one: (consumer.retire(), make_ready(one))[1]  # type: ignore[method-assign]
    registrar.register("billing", "latest")
    assert known(office) == []


def test_asking_needs_no_handler(office: Office) -> None:
    office.put(0, 1)
    wake(office.hire(Clerk({0})))
    asking = OrderedConsumer("billing", sorter=office.sorter)
    assert (asking.checkpoint("q"), [one.seq for one in asking.parked()], asking.dead_letters()) == (-1, [0], [])
    asking.discard("q", 0, reason="not needed")
    assert asking.checkpoint("q") == 0
    asking.retire()
    assert known(office) == []


@pytest.mark.parametrize(
    "call",
    [
        wake,
        lambda it: it.catch_up("q"),
        lambda it: it.redrive("q"),
        lambda it: it.lambda_handler({"Records": []}, None),
    ],
    ids=["process", "catch_up", "redrive", "lambda_handler"],
)
def test_what_needs_a_handler_says_so_where_there_is_none(
    office: Office, call: Callable[[OrderedConsumer], object]
) -> None:
    office.put(0)
    asking = OrderedConsumer("billing", sorter=office.sorter)
    with pytest.raises(SettingsError, match=r"consumer 'billing' has no handler; give it one: OrderedConsumer"):
        call(asking)
    assert known(office) == []
