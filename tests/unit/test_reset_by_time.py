"""A reset to a time: every message that arrived since then comes again, whatever order they came in, for few reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest

from stream_sort import Batch, InvalidInput, OrderedConsumer
from stream_sort.consume.resetter import MOST_PAGES, Arrivals
from stream_sort.model.consumption import Wake
from tests.consumers import Clerk, Interrupted, Office, wake
from tests.unit.queues import forget_arrival

IDLE = 301.0
MINUTE = 60.0


@pytest.fixture
def office() -> Office:
    return Office()


def consumed(office: Office, *seqs: int, pause: float = 100.0) -> OrderedConsumer:
    """A consumer that is through with these seqs, which came one by one."""
    for seq in seqs:
        office.clock.move(pause)
        office.put(seq)
    consumer = office.hire(Clerk())
    wake(consumer)
    office.clock.move(IDLE)
    return consumer


def arrival(office: Office, seq: int) -> float:
    slot = office.sorter.slot("q", seq)
    assert slot is not None
    assert slot.arrived_at is not None
    return slot.arrived_at


def test_a_reset_to_a_time_brings_back_what_arrived_since(office: Office) -> None:
    consumer = consumed(office, *range(10))
    time = arrival(office, 6)
    (done,) = consumer.reset(to_time=time)
    assert (done.old, done.new, done.outcome) == (9, 5, "reset")
    (again,) = consumer.reset(to_time=time + 0.5, dry_run=True)
    assert again.new == 6


def test_a_time_may_be_a_datetime_and_a_duration_a_timedelta(office: Office) -> None:
    consumer = consumed(office, *range(10))
    time, now = arrival(office, 6), office.clock()
    for options in (
        {"to_time": datetime.fromtimestamp(time, UTC)},
        {"by_duration": now - time},
        {"by_duration": timedelta(seconds=now - time)},
    ):
        assert [one.new for one in consumer.reset(**options, dry_run=True)] == [5]  # type: ignore[arg-type]


def test_a_gap_that_was_filled_after_the_time_comes_again_with_all_behind_it(office: Office) -> None:
    consumer = consumed(office, 0, 1, 3, 4, 5, 2)
    assert arrival(office, 2) > arrival(office, 5)
    (done,) = consumer.reset(to_time=arrival(office, 5), dry_run=True)
    # Seq 5 arrived then, and seq 2 after it.
    assert done.new == 1


def test_a_reset_to_a_time_before_everything_is_one_to_the_earliest_and_to_now_one_to_the_latest(
    office: Office,
) -> None:
    consumer = consumed(office, *range(5))
    assert [one.new for one in consumer.reset(to_time=0.0, dry_run=True)] == [-1]
    assert consumer.reset(to_time=office.clock(), dry_run=True) == []
    consumer.reset("earliest")
    assert [one.new for one in consumer.reset(by_duration=1.0, dry_run=True)] == [4]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"to": "earliest", "to_time": 0.0},
        {"by": 3, "by_duration": 5.0},
        {"to_time": 1.0, "by_duration": 1.0},
        {"to_time": "yesterday"},
        {"to_time": float("nan")},
        {"to_time": True},
        {"to_time": datetime(2026, 1, 1)},  # noqa: DTZ001  # the one that is refused
        {"to_time": 1_700_000_000_000.0},
        {"by_duration": 0},
        {"by_duration": -5.0},
        {"by_duration": "2h"},
    ],
    ids=repr,
)
def test_what_is_no_time_is_refused_and_nothing_is_reset(office: Office, options: dict[str, Any]) -> None:
    consumer = consumed(office, 0, 1)
    with pytest.raises(InvalidInput):
        consumer.reset(**options)
    assert consumer.checkpoint("q") == 1


def arrivals(office: Office) -> tuple[Arrivals, Interrupted, Any]:
    store = Interrupted(office.sorter.stores.items)
    cursor = office.sorter.stores.cursors.get("q")
    assert cursor is not None
    return Arrivals(store), store, cursor  # type: ignore[arg-type]  # a store all the same


def test_a_queue_that_did_not_move_since_costs_no_read(office: Office) -> None:
    consumed(office, *range(5))
    finder, store, cursor = arrivals(office)
    assert finder.checkpoint(cursor, arrival(office, 4) + MINUTE + 1) == 4
    assert store.calls == []


def test_a_long_queue_costs_two_reads_for_each_halving_and_a_page(office: Office) -> None:
    for start in range(0, 20_000, 100):
        office.clock.move(10)
        office.put(*range(start, start + 100))
    finder, store, cursor = arrivals(office)
    assert finder.checkpoint(cursor, arrival(office, 12_345)) == 12_299
    assert len(store.calls) <= 2 * 15 + 2


def test_a_walk_that_would_take_too_many_pages_stops_on_the_safe_side(office: Office) -> None:
    messages = 1_000 * (MOST_PAGES + 2)
    office.put(*range(messages))
    tables = office.sorter.stores.items._tables.queues["q"]  # type: ignore[attr-defined]
    tables.seen.clear()
    office.clock.move(1_000)
    office.put(messages)
    finder, store, cursor = arrivals(office)
    assert finder.checkpoint(cursor, office.clock()) == 1_000 * MOST_PAGES - 1
    assert store.calls.count("page") <= MOST_PAGES + 16


def test_of_messages_that_others_wrote_nobody_knows_when_they_arrived_so_they_come_again(office: Office) -> None:
    consumer = consumed(office, *range(5))
    forget_arrival(office.sorter, 2)
    (done,) = consumer.reset(to_time=arrival(office, 4), dry_run=True)
    assert done.new == 1


class Noted:
    """A handler that notes which of its batches were replayed."""

    def __init__(self) -> None:
        self.batches: list[tuple[tuple[int, ...], bool]] = []
        self.poison: set[int] = set()

    def __call__(self, batch: Batch) -> None:
        self.batches.append((batch.seqs, batch.replayed))
        if self.poison.intersection(batch.seqs):
            raise ValueError("poison")


def replaying(office: Office, noted: Noted, **options: Any) -> OrderedConsumer:
    """A consumer that had come to seq 5, was reset to the earliest, and to which 6 to 9 are new."""
    office.put(*range(6))
    consumer = office.hire(noted, **options)
    wake(consumer)
    office.clock.move(IDLE)
    consumer.reset("earliest")
    office.put(*range(6, 10))
    noted.batches.clear()
    return consumer


def test_batches_say_that_they_were_delivered_before_a_reset_and_none_holds_both(office: Office) -> None:
    noted = Noted()
    consumer = replaying(office, noted)
    wake(consumer)
    assert noted.batches == [((0, 1, 2, 3, 4, 5), True), ((6, 7, 8, 9), False)]
    row = office.row()
    assert row is not None
    assert row.replayed_through is None


def test_the_flag_stays_through_commits_failures_and_deaths_of_others(office: Office) -> None:
    noted = Noted()
    consumer = replaying(office, noted, batch_size=2)
    noted.poison = {3}
    wake(consumer)
    noted.poison.clear()
    office.clock.move(IDLE)
    wake(office.hire(noted, batch_size=2))
    assert dict(noted.batches) == {seqs: seqs[-1] <= 5 for seqs, _ in noted.batches}
    assert noted.batches[-1] == ((8, 9), False)


def test_a_second_reset_while_messages_are_replayed_keeps_how_far_it_had_come(office: Office) -> None:
    noted = Noted()
    consumer = replaying(office, noted)
    for to in (3, 1, 4):
        consumer.reset(to, force=True)
    wake(consumer)
    assert noted.batches == [((4, 5), True), ((6, 7, 8, 9), False)]


def test_a_reset_to_the_latest_ends_the_replay(office: Office) -> None:
    noted = Noted()
    consumer = replaying(office, noted)
    consumer.reset("latest", force=True)
    office.put(10)
    wake(consumer)
    assert noted.batches == [((10,), False)]


def test_what_a_latest_consumer_never_had_is_not_replayed(office: Office) -> None:
    noted = Noted()
    office.put(0, 1, 2)
    consumer = office.hire(noted, start="latest")
    wake(consumer)
    consumer.reset("earliest", force=True)
    wake(consumer)
    assert noted.batches == [((0, 1, 2), False)]


def test_a_discard_in_the_middle_of_a_replay_keeps_the_flag(office: Office) -> None:
    noted = Noted()
    consumer = replaying(office, noted, max_attempts=1)
    noted.poison = {0}
    wake(consumer)
    consumer.discard("q", 0, "never mind")
    noted.batches.clear()
    wake(consumer)
    assert noted.batches == [((1, 2, 3, 4, 5), True), ((6, 7, 8, 9), False)]


def test_the_flag_costs_no_request(office: Office) -> None:
    noted = Noted()
    office.put(*range(6))
    consumer = office.hire(noted)
    wake(consumer)
    office.clock.move(IDLE)
    consumer.reset("earliest")
    store = office.interrupt(consumer)
    wake(consumer)
    assert store.calls == ["standing", "commit", "standing"]


@pytest.mark.parametrize("start", ["latest", "5"])
def test_messages_from_before_a_consumer_began_are_not_replayed(office: Office, start: str) -> None:
    noted = Noted()
    office.put(*range(6))
    consumer = office.hire(noted, start=start)
    wake(consumer)
    office.put(6)
    wake(consumer)
    had = {seq for seqs, _ in noted.batches for seq in seqs}
    for replayed in (had, {*range(7)}):
        noted.batches.clear()
        consumer.reset("earliest", force=True)
        wake(consumer)
        assert {seq for seqs, flag in noted.batches for seq in seqs if flag} == replayed
        assert [seq for seqs, _ in noted.batches for seq in seqs] == [*range(7)]


def test_messages_that_a_reset_passed_over_are_not_replayed(office: Office) -> None:
    noted = Noted()
    office.put(*range(3))
    consumer = office.hire(noted)
    wake(consumer)
    office.put(*range(3, 8))
    consumer.reset(6, force=True)
    wake(consumer)
    consumer.reset("earliest", force=True)
    noted.batches.clear()
    wake(consumer)
    # That it has had 0 to 2 is not kept: what is not certain is not called replayed.
    assert noted.batches == [((0, 1, 2, 3, 4, 5), False), ((6, 7), True)]


def test_of_a_row_that_an_older_version_wrote_nobody_knows_where_its_consumer_began(office: Office) -> None:
    noted = Noted()
    consumer = consumed(office, *range(4))
    row = office.row()
    assert row is not None
    rows = office.sorter.stores.control("Control").checkpoints._control.checkpoints  # type: ignore[attr-defined]
    rows[("billing", "q")] = replace(row, began=None)
    office.put(4)
    consumer = office.hire(noted)
    wake(consumer)
    consumer.reset("earliest", force=True)
    noted.batches.clear()
    wake(consumer)
    assert noted.batches == [((0, 1, 2, 3), False), ((4,), True)]


@pytest.mark.parametrize("seed", range(60))
def test_no_message_is_called_replayed_that_was_not_delivered_before_whatever_is_reset(
    office: Office, seed: int
) -> None:
    dice, given, wrong = Random(seed), set[int](), list[int]()

    def handle(batch: Batch) -> None:
        wrong.extend({*batch.seqs} - given if batch.replayed else ())
        if dice.random() < 0.1:
            raise ValueError("now and then")
        given.update(batch.seqs)

    stored = dice.randint(1, 9)
    office.put(*range(stored))
    start = dice.choice(["earliest", "latest", str(dice.randint(0, 9))])
    consumer = office.hire(handle, start=start, batch_size=dice.randint(1, 4))
    for _ in range(30):
        move = dice.choice(["put", "wake", "reset"])
        if move == "put":
            more = dice.randint(1, 6)
            office.put(*range(stored, stored + more))
            stored += more
        elif move == "reset" and office.row() is not None:
            consumer.reset(dice.choice(["earliest", "latest", dice.randint(0, stored)]), force=True)
        else:
            times = iter([1_000.0] * dice.randint(1, 4))
            consumer.process([Wake("q")], partial(next, times, 0.0))
        office.clock.move(IDLE)
    assert wrong == []
