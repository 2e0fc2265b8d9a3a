"""Who only asks is not made known; who is retired is waited for no more, and goes on where it was if it comes back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from stream_sort import (
    Batch,
    ConsumerNotFound,
    MissingItems,
    NotConsumed,
    NotParked,
    OrderedConsumer,
    SettingsError,
    StoreUnavailable,
    StreamSortError,
)
from stream_sort.consume.registration import Registration
from stream_sort.consume.session import EARLY
from stream_sort.model.records import QueuePage
from stream_sort.ports.in_flight import InFlight
from stream_sort.upkeep.lag_watch import LagWatch
from tests.consumers import Clerk, Office, interrupt_registration, wake

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3_600.0


@pytest.fixture
def office() -> Office:
    return Office()


def known(office: Office) -> list[str]:
    return [one.name for one in office.sorter.stores.control("Control").subscriptions.consumers()]


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


@pytest.mark.parametrize("start", ["latest", 2])
@pytest.mark.parametrize("asked", ["earliest", "latest"])
def test_the_checkpoint_of_a_retired_consumer_in_a_queue_not_begun_is_where_it_would_come_back(
    office: Office, start: str | int, asked: str
) -> None:
    office.put(0, queue="other")
    wake(office.hire(Clerk(), start=start), "other")
    office.hire(Clerk()).retire()
    office.put(0, 1, 2)
    clerk = Clerk()
    consumer = office.hire(clerk, start=asked)
    at = consumer.checkpoint("q")
    wake(consumer)
    assert clerk.seqs()[0] == at + 1


def test_a_retired_consumer_lags_behind_nothing_and_is_woken_for_nothing(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.put(1, 2, 3)
    office.clock.now += 600
    watcher = LagWatch(
        office.sorter.stores.control("Control").subscriptions,
        office.sorter.stores.control("Control").checkpoints,
        office.sorter.stores.cursors,
    )
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


def test_i5_a_retired_consumer_that_delivers_in_a_warm_process_is_registered_again_within_a_minute(
    office: Office,
) -> None:
    office.put(0)
    warm = office.hire(Clerk())
    wake(warm)
    office.hire(Clerk()).retire()
    office.clock.move(60)
    office.put(1)
    wake(warm)
    assert known(office) == ["billing"]
    office.put(2, 3)
    with pytest.raises(NotConsumed):
        office.sorter.trim("q", 2, control_table="Control")


def test_i5_a_long_run_reads_its_registration_again_every_minute(office: Office) -> None:
    office.put(0, 1, 2, 3)
    listed: list[list[str]] = []

    def slow(batch: Batch) -> None:
        if batch.seqs == (0,):
            office.hire(Clerk()).retire()
        listed.append(known(office))
        office.clock.move(31)

    office.hire(slow, batch_size=1).catch_up("q")
    assert listed == [[], [], ["billing"], ["billing"]]


@pytest.mark.parametrize("error", [StoreUnavailable("out of reach"), KeyError("a bug")], ids=repr)
def test_a_long_run_that_cannot_read_its_registration_stops_and_tells_what_it_delivered(
    office: Office, error: Exception
) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(lambda _: office.clock.move(61), batch_size=1)
    store = interrupt_registration(consumer)

    def fails() -> None:
        raise error

    store.after["register"] = [lambda: store.before.update(register=[fails])]
    (served,) = wake(consumer)
    assert (served.ended, served.delivered, consumer.checkpoint("q")) == ("failed", 1, 0)
    assert isinstance(served.error, StreamSortError)


def test_the_sweeps_cold_start_does_not_bring_a_retired_consumer_back(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.put(1, 2)
    consumer.retire()
    control, cursors = office.sorter.stores.control("Control"), office.sorter.stores.cursors
    cold = Registration(control.subscriptions, control.checkpoints, cursors, office.clock, office.sorter.in_flight)
    cold.introduce("billing", "earliest")
    assert known(office) == []
    assert office.sorter.trim("q", 2, control_table="Control") == 2


def test_who_introduced_a_retired_consumer_and_then_delivers_brings_it_back(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    office.hire(Clerk()).catch_up("q")
    office.hire(Clerk()).retire()
    consumer._registration.introduce("billing", "earliest")
    assert known(office) == []
    wake(consumer)
    assert known(office) == ["billing"]


def test_a_latest_consumer_that_was_retired_while_the_sweep_introduced_it_stays_retired(office: Office) -> None:
    office.put(0, queue="a")
    office.put(0, queue="b")
    control, cursors = office.sorter.stores.control("Control"), office.sorter.stores.cursors

    class Paged:
        """Cursors whose listing has a second page, before which the consumer is retired."""

        get = staticmethod(cursors.get)

        def queues(self, start: object = None) -> QueuePage:
            if start is not None:
                control.subscriptions.retire("billing", office.clock())
            return QueuePage(("b",)) if start is not None else QueuePage(("a",), next=1)

    Registration(control.subscriptions, control.checkpoints, Paged(), office.clock, InFlight(1)).introduce(
        "billing", "latest"
    )  # type: ignore[arg-type]
    assert known(office) == []
    assert office.row("b") is None


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
    registration = Registration(
        control.subscriptions, control.checkpoints, office.sorter.stores.cursors, office.clock, office.sorter.in_flight
    )
    make_ready = control.subscriptions.make_ready
    control.subscriptions.make_ready = lambda one: (consumer.retire(), make_ready(one))[1]  # type: ignore[method-assign]
    registration.register("billing", "latest")
    assert known(office) == []


def test_a_long_redrive_of_a_consumer_that_was_retired_meanwhile_loses_nothing_to_a_trim(office: Office) -> None:
    seen: list[int] = []

    def redrive(batch: Batch) -> None:
        seen.extend(batch.seqs)
        if batch.seqs == (0,):
            OrderedConsumer("billing", sorter=office.sorter).retire()
        if batch.seqs == (2,):
            with pytest.raises(NotConsumed, match="dead letter"):
                office.sorter.trim("q", through=4, control_table="Control")
        office.clock.move(100.0)

    office.put(*range(5))
    terms = {"max_attempts": 1, "on_poison": "dead_letter"}
    wake(office.hire(Clerk(set(range(5))), **terms))
    assert office.hire(redrive, **terms).redrive("q") == 5
    assert (seen, known(office)) == ([0, 1, 2, 3, 4], ["billing"])


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


def test_a_reset_of_a_retired_consumer_says_that_it_is_retired_and_what_brings_it_back(office: Office) -> None:
    office.put(0)
    consumer = office.hire(Clerk())
    wake(consumer)
    consumer.retire()
    with pytest.raises(ConsumerNotFound, match=r"'billing' is retired\. .* when it next delivers: run") as raised:
        consumer.reset("earliest")
    assert raised.value.retired
    wake(consumer)
    assert [one.new for one in consumer.reset("earliest", force=True)] == [-1]


def test_a_latest_consumer_that_was_retired_goes_on_where_it_was(office: Office) -> None:
    clerk = Clerk()
    office.put(0)
    wake(office.hire(Clerk(), start="latest"))
    office.put(0, 1, 2, queue="r")
    wake(office.hire(clerk, start="latest"), "r")
    office.hire(Clerk()).retire()
    office.put(1, 2)
    office.put(3, queue="r")
    back = office.hire(clerk, start="latest")
    wake(back, "q")
    wake(back, "r")
    assert (clerk.seqs("q"), clerk.seqs("r")) == ([1, 2], [0, 1, 2, 3])


def test_catch_up_raises_a_hole_at_each_try_and_answers_0_in_between(office: Office) -> None:
    office.put(0, 1, 2)
    consumer = office.hire(Clerk())
    office.lose_item(1)
    for _ in range(3):
        with pytest.raises(MissingItems):
            consumer.catch_up("q")
        (parked,) = consumer.parked()
        assert parked.next_try is not None
        if parked.next_try - office.clock() > EARLY:
            assert consumer.catch_up("q") == 0
        with pytest.raises(MissingItems):
            consumer.catch_up("q", force=True)
        office.clock.move(HOUR)
