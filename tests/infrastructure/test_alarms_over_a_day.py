"""Each alarm of the template over a day in which its trouble comes and goes: it fires, stays, and clears."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, Pace, StreamSorter, Sweeper
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import LagWatch
from tests.infrastructure.alarm_evaluation import ALARM, MINUTE, OK, Alarm, Figure, resolved

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import Sweep

HOUR = 3_600.0
DAY = 24 * HOUR
BEGINS, ENDS = 6 * HOUR, 14 * HOUR
BACKLOG, GAP_AGE = 60, 1_800
# Seconds that a sweep takes, at random: its figures come at no fixed second.
LONGEST_SWEEP = 50.0
FIRST_SWEEP = 13.0
# When in the hour all queues are swept.
SWEEP_ALL = 1_800.0
SCHEDULES = {
    "rate(1 minute)": 60.0,
    "rate(2 minutes)": 120.0,
    "rate(5 minutes)": 300.0,
    "rate(10 minutes)": 600.0,
    "rate(15 minutes)": 900.0,
}
PARAMETERS = {"LagAlarm": str(BACKLOG - 10), "GapAgeAlarm": str(GAP_AGE)}


class Day:
    """A stack in memory for a day: nothing moves after the trouble began, and nobody hears of it before it ends."""

    def __init__(self, interval: float) -> None:
        self.rng = random.Random(7)
        self.interval = interval
        self.clock = MovableClock(0.0)
        self.sorter = StreamSorter.in_memory(clock=self.clock)
        self.fails = False
        self.consumer = OrderedConsumer(
            "process", self._handle, sorter=self.sorter, max_attempts=2, pace=Pace(sleep=lambda _: None)
        )
        self.watcher = LagWatch(
            self.sorter.stores.control("Control").subscriptions,
            self.sorter.stores.control("Control").checkpoints,
            self.sorter.stores.cursors,
        )
        self.put("calm", 0)
        self.consumer.catch_up("calm")

    def _handle(self, batch: Any) -> None:  # noqa: ARG002  # a handler takes a batch
        if self.fails:
            raise ValueError("no")

    def put(self, queue: str, *seqs: int) -> None:
        self.sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)

    def run(self, begin: Callable[[Day], None], end: Callable[[Day], None]) -> dict[str, list[Figure]]:
        """Sweep all day long; the figures by metric."""
        figures: dict[str, list[Figure]] = {name: [] for name in SWEPT}
        events = [(BEGINS, begin), (ENDS, end)]
        for tick in range(int(DAY / self.interval)):
            at = FIRST_SWEEP + tick * self.interval
            while events and events[0][0] <= at:
                self.clock.now = events[0][0]
                events.pop(0)[1](self)
            self.clock.now = at
            sweeper = Sweeper(self.sorter, lagging=self.watcher)
            self._publish(sweeper.sweep(), at, figures)
            if at % HOUR == SWEEP_ALL + FIRST_SWEEP:
                self._publish(sweeper.sweep_all(), at, figures)
        return {name: sorted(found) for name, found in figures.items()}

    def _publish(self, done: Sweep, at: float, figures: dict[str, list[Figure]]) -> None:
        published = at + self.rng.uniform(0.1, LONGEST_SWEEP)
        watched = self.watcher.watched
        figures["ConsumerLag"].append((published, max(watched.lag.values(), default=0)))
        figures["OldestGapAgeSeconds"].append((published, done.oldest_gap))
        figures["QueuesParked"].append((published, watched.parked.total()))
        figures["QueuesFailed"].append((published, len(done.failed)))


def fall_behind(day: Day) -> None:
    day.put("q", *range(BACKLOG))


def catch_up(day: Day) -> None:
    day.consumer.catch_up("q")


def lose_a_message(day: Day) -> None:
    day.put("q", 1)


def bring_it(day: Day) -> None:
    day.put("q", 0)
    day.consumer.catch_up("q")


def fail(day: Day) -> None:
    day.fails = True
    day.put("q", 0)
    for _ in range(2):
        day.consumer.catch_up("q")
        day.clock.move(MINUTE)


def mend(day: Day) -> None:
    day.fails = False
    day.consumer.redrive("q")
    day.consumer.catch_up("q")


def die_unmarked(day: Day) -> None:
    """Let a writer die after its store, in a queue that fails at every look."""
    day.put("q", 0)
    day.consumer.catch_up("q")
    message = check_message({"queue": "q", "seq": 1}, KeyNames())
    items = day.sorter.stores.items
    items.put(Arrival(message, 0), day.clock())
    look = items.look

    def failing(queue: str, *args: Any) -> Any:
        if queue == "q":
            raise ZeroDivisionError("a bug")
        return look(queue, *args)

    items.look = failing  # type: ignore[method-assign]


def mend_the_bug(day: Day) -> None:
    del day.sorter.stores.items.look  # type: ignore[attr-defined]


SWEPT: dict[str, tuple[Callable[[Day], None], Callable[[Day], None], float]] = {
    "ConsumerLag": (fall_behind, catch_up, 0.0),
    "OldestGapAgeSeconds": (lose_a_message, bring_it, GAP_AGE),
    "QueuesParked": (fail, mend, 0.0),
    "QueuesFailed": (die_unmarked, mend_the_bug, SWEEP_ALL),
}
# How often a figure comes that is there all the time, and one that is there only while something happens.
ALL_THE_TIME = {"AWS/SQS": 60.0, "AWS/Lambda": 20.0, "AWS/DynamoDB": 60.0}
ONE_EVENT = {"Conflicts", "DeadLetters", "Rejected", "DestinationDeliveryFailures"}


@pytest.fixture(scope="module")
def alarms(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: one["Properties"] for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}


@pytest.fixture(scope="module")
def days() -> dict[tuple[str, str], list[Figure]]:
    return {
        (schedule, metric): Day(interval).run(begin, end)[metric]
        for schedule, interval in SCHEDULES.items()
        for metric, (begin, end, _) in SWEPT.items()
    }


def is_of_the_sweep(alarm: dict[str, Any]) -> bool:
    (dimension,) = alarm["Dimensions"]
    return dimension["Value"] in ("sweep", {"Ref": "SweepFunction"})


def test_all_schedules_that_are_allowed_are_tried(template: dict[str, Any]) -> None:
    assert list(SCHEDULES) == template["Parameters"]["SweepSchedule"]["AllowedValues"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_alarm_on_a_sweep_fires_stays_and_clears_whatever_the_schedule(
    schedule: str,
    alarms: dict[str, dict[str, Any]],
    template: dict[str, Any],
    defaults: dict[str, str],
    days: dict[tuple[str, str], list[Figure]],
) -> None:
    for name, properties in alarms.items():
        if not is_of_the_sweep(properties):
            continue
        alarm = Alarm.of(properties, template, {**defaults, **PARAMETERS, "SweepSchedule": schedule})
        metric = properties["MetricName"]
        figures = days.get((schedule, metric)) or made_up(SCHEDULES[schedule], BEGINS, ENDS, LONGEST_SWEEP)
        after = SWEPT[metric][2] if metric in SWEPT else 0.0
        check(name, alarm, figures, after)


def test_every_other_alarm_fires_stays_and_clears(
    alarms: dict[str, dict[str, Any]], template: dict[str, Any], defaults: dict[str, str]
) -> None:
    others = {name: one for name, one in alarms.items() if not is_of_the_sweep(one)}
    assert len(others) > 10
    for name, properties in others.items():
        alarm = Alarm.of(properties, template, defaults)
        if properties["MetricName"] in ONE_EVENT:
            states = alarm.states([(BEGINS + 1, 1.0)], DAY)
            assert [state for _, state in states] == [OK, ALARM, OK], name
        else:
            often = ALL_THE_TIME[properties["Namespace"]]
            check(name, alarm, made_up(often, BEGINS, ENDS, 5.0, high=alarm.threshold + 1), 0.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_look_that_is_out_of_line_raises_no_alarm_that_demands_more(
    schedule: str, alarms: dict[str, dict[str, Any]], template: dict[str, Any], defaults: dict[str, str]
) -> None:
    interval = SCHEDULES[schedule]
    for name in ("LagTooHighAlarm", "GapAgeTooHighAlarm", "QueuesFailedAlarm", "SweepErrorsAlarm"):
        alarm = Alarm.of(alarms[name], template, {**defaults, "SweepSchedule": schedule})
        figures = made_up(interval, BEGINS, BEGINS + interval, 5.0, high=1e9)
        assert [state for _, state in alarm.states(figures, DAY)] == [OK], name


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_alarm_does_not_clear_because_the_sweep_is_silent(
    schedule: str, alarms: dict[str, dict[str, Any]], template: dict[str, Any], defaults: dict[str, str]
) -> None:
    for name, properties in alarms.items():
        if properties["Dimensions"][0]["Value"] == "sweep":
            alarm = Alarm.of(properties, template, {**defaults, "SweepSchedule": schedule})
            figures = [one for one in made_up(SCHEDULES[schedule], BEGINS, ENDS, 5.0, high=1e9) if one[0] < ENDS]
            assert [state for _, state in alarm.states(figures, DAY)] == [OK, ALARM], name


def test_the_period_of_alarms_on_a_sweep_is_two_sweeps(
    alarms: dict[str, dict[str, Any]], template: dict[str, Any], defaults: dict[str, str]
) -> None:
    for schedule, interval in SCHEDULES.items():
        parameters = {**defaults, "SweepSchedule": schedule}
        periods = {resolved(one["Period"], template, parameters) for one in alarms.values() if is_of_the_sweep(one)}
        assert periods == {2 * interval}


def check(name: str, alarm: Alarm, figures: list[Figure], after: float) -> None:
    """It fires once and clears once, each as soon as its windows allow."""
    states = alarm.states(figures, DAY)
    assert [state for _, state in states] == [OK, ALARM, OK], (name, states)
    (_, _), (fired, _), (cleared, _) = states
    slack = 2 * alarm.period + LONGEST_SWEEP
    assert 0 <= fired - (BEGINS + after) <= alarm.length + slack, name
    assert 0 <= cleared - ENDS <= alarm.length + slack, name


def made_up(often: float, begins: float, ends: float, jitter: float, high: float = 1.0) -> list[Figure]:
    """A figure that is 0 but for a time, and comes at no fixed second."""
    rng = random.Random(11)
    times = [7.0 + tick * often for tick in range(int(DAY / often))]
    return sorted((at + rng.uniform(0.1, jitter), high if begins <= at < ends else 0.0) for at in times)
