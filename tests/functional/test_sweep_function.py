"""What sweep does once a minute: gaps, sleeping consumers, and the figures that alarms look at."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from stream_sort import InternalError, OrderedConsumer, StreamSorter
from stream_sort.upkeep.lag_watch import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.functional.conftest import Context, Told

pytestmark = pytest.mark.usefixtures("telemetries")

APP = Path(__file__).parents[2] / "functions" / "sweep" / "app.py"
ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "STREAM_SORT_ITEMS_TABLE": "stream-sort-items",
    "STREAM_SORT_CURSOR_TABLE": "stream-sort-cursor",
    "STREAM_SORT_CONTROL_TABLE": "stream-sort-control",
    "STREAM_SORT_CONSUMER": "process",
    "STREAM_SORT_IN_FLIGHT": "1",
}


@pytest.fixture
def sorter(monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamSorter]:
    with mock_aws():
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        sorter = StreamSorter.from_env()
        sorter.create_tables()
        sorter.stores.control("stream-sort-control").create_table()
        yield sorter


def load() -> Any:
    spec = importlib.util.spec_from_file_location("sweep_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_scheduled_event_skips_what_is_due_and_publishes_the_figures(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "waits", "seq": seq} for seq in (0, 2))
    sorter.put_many({"queue": "skips", "seq": seq} for seq in (0, 2, 3))
    sorter.set_policy("skips", skip_after=0)
    answer = load().handler(sample("sweep_schedule"), context)
    assert answer == {
        "looked_at": 2,
        "advanced": 1,
        "skipped": 1,
        "nudged": 0,
        "waiting": 1,
        "found": 1,
        "closed": 0,
        "failed": 0,
        "complete": True,
    }
    assert sorter.position("skips") == 3
    figures = told.metrics()
    assert (figures["QueuesWaiting"], figures["CursorAdvanced"]) == (1, 3)
    # Nobody was given the four seqs that this sweep released.
    assert (figures["QueuesParked"], figures["ConsumerLag"]) == (0, 4)
    assert 0 <= figures["OldestGapAgeSeconds"] < 60
    assert figures["StoreRequests"] > 5


def test_the_stacks_own_consumer_is_watched_over_before_it_ever_ran(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in range(3))
    app = load()
    object.__setattr__(app.sorter.queues, "clock", lambda: sorter.clock() + PATIENCE + 1)
    assert app.handler(sample("sweep_schedule"), context)["nudged"] == 1
    assert told.metrics()["ConsumerLag"] == 3
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.nudges == 1


def test_the_stacks_own_consumer_once_retired_is_not_brought_back_by_a_cold_start(
    sorter: StreamSorter, sample: Any, context: Context
) -> None:
    load().handler(sample("sweep_schedule"), context)
    control = sorter.stores.control("stream-sort-control")
    assert [one.name for one in control.subscriptions.consumers()] == ["process"]
    OrderedConsumer("process", sorter=sorter, control_table="stream-sort-control").retire()
    load().handler(sample("sweep_schedule"), context)
    assert control.subscriptions.consumers() == []
    sorter.put_many({"queue": "q", "seq": seq} for seq in range(3))
    assert sorter.trim("q", 1, control_table="stream-sort-control") == 2


def test_a_queue_that_stays_parked_shows_in_the_figures(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    def fail(batch: Any) -> None:
        raise ValueError(batch.queue)

    sorter.put({"queue": "q", "seq": 0})
    consumer = OrderedConsumer("process", fail, sorter=sorter, control_table="stream-sort-control", max_attempts=1)
    consumer.catch_up("q")
    app = load()
    app.handler(sample("sweep_schedule"), context)
    assert told.metrics()["QueuesParked"] == 1


def test_all_queues_are_looked_at_when_the_event_says_so(sorter: StreamSorter, context: Context) -> None:
    sorter.put({"queue": "q", "seq": 0})
    sorter.put({"queue": "r", "seq": 0})
    app = load()
    assert app.handler({}, context)["looked_at"] == 0
    assert app.handler({"all": True}, context)["looked_at"] == 2


def lines(told: Told, text: str) -> list[dict[str, Any]]:
    return [line for line in told.logs() if line["text"].startswith(text)]


def test_gaps_that_are_found_closed_and_given_up_are_counted_and_logged(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "waits", "seq": seq} for seq in (0, 3))
    sorter.put_many({"queue": "loses", "seq": seq} for seq in range(0, 60, 2))
    sorter.set_policy("loses", skip_after=0)
    app = load()
    app.handler(sample("sweep_schedule"), context)
    figures = told.metrics()
    assert (figures["GapsFound"], figures["GapsGivenUp"], "GapsClosed" in figures) == (1, 29, False)
    (found,) = lines(told, "gap found")
    assert (found["queue"], found["from"], found["to"], found["length"]) == ("waits", 1, 2, 2)
    assert 0 <= found["age"] < 60
    *given_up, more = lines(told, "gap given up")
    assert [(line["queue"], line["from"]) for line in given_up] == [("loses", seq) for seq in range(1, 21, 2)]
    assert (more["queue"], more["count"], more["through"]) == ("loses", 29, 57)
    sorter.put_many({"queue": "waits", "seq": seq} for seq in (1, 2))
    app.handler(sample("sweep_schedule"), context)
    assert told.metrics()["GapsClosed"] == 1
    (closed,) = lines(told, "gap closed")
    assert (closed["queue"], closed["from"], closed["to"]) == ("waits", 1, 2)


class Bug(Exception):
    """Nothing that anybody foresaw."""


def test_i7_a_queue_that_fails_is_counted_and_logged_with_its_traceback_and_stops_no_other(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    for queue in ("a", "bad", "c"):
        sorter.put({"queue": queue, "seq": 1})
        sorter.set_policy(queue, skip_after=0)
    app = load()
    look = app.sorter.stores.items.look

    def failing(queue: str, *args: Any) -> Any:
        if queue == "bad":
            raise Bug("in the middle")
        return look(queue, *args)

    app.sorter.stores.items.look = failing
    answer = app.handler(sample("sweep_schedule"), context)
    assert (answer["failed"], answer["skipped"], answer["waiting"]) == (1, 2, 1)
    figures = told.metrics()
    assert (figures["QueuesFailed"], figures["QueuesWaiting"]) == (1, 1)
    (line,) = lines(told, "queue could not be swept")
    assert (line["queue"], line["error"], "in the middle" in line["reason"]) == ("bad", "InternalError", True)
    assert isinstance(line["exc_info"][1], Bug)


def test_a_queue_behind_a_gap_too_long_stays_in_the_figures(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, 20_000))
    sorter.set_policy("q", skip_after=30)
    app = load()
    object.__setattr__(app.sorter.queues, "clock", lambda: sorter.clock() + 100)
    app.handler(sample("sweep_schedule"), context)
    figures = told.metrics()
    assert (figures["QueuesWaiting"], figures["OldestGapAgeSeconds"] >= 100) == (1, True)
    (line,) = lines(told, "gap too long")
    assert (line["queue"], line["length"]) == ("q", 19_999)


@pytest.mark.parametrize("part", ["register", "watch"])
def test_what_fails_beside_the_queues_loses_no_gap_policy_and_no_figure(
    sorter: StreamSorter, sample: Any, context: Context, told: Told, part: str
) -> None:
    sorter.put({"queue": "q", "seq": 1})
    sorter.set_policy("q", skip_after=0)
    app = load()

    def fail(*_: Any) -> Any:
        raise Bug(part)

    step = app.handler
    if part == "register":
        step._register = fail
    else:
        step._watcher.lagging = fail
    with pytest.raises((Bug, InternalError)):
        app.handler(sample("sweep_schedule"), context)
    assert sorter.position("q") == 1
    figures = told.metrics()
    assert (figures["GapsGivenUp"], figures["QueuesWaiting"]) == (1, 0)
    assert ("ConsumerLag" in figures) is (part == "register"), "a figure that nobody measured is none"


def test_a_first_pass_over_very_many_queues_that_outlasts_the_sweep_loses_no_gap_policy_and_no_figure(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put({"queue": "q", "seq": 1})
    sorter.set_policy("q", skip_after=0)
    app = load()

    def outlast() -> None:
        raise KeyboardInterrupt("Lambda ends the process")

    app.handler._register = outlast
    with pytest.raises(KeyboardInterrupt):
        app.handler(sample("sweep_schedule"), context)
    assert sorter.position("q") == 1
    assert told.metrics()["GapsGivenUp"] == 1


def test_the_figures_are_published_before_anybody_is_woken(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, 2))
    app = load()
    published: list[float] = []
    app.handler._watcher.lagging = lambda now: published.append(told.metrics()["QueuesWaiting"]) or []  # noqa: ARG005
    app.handler(sample("sweep_schedule"), context)
    assert published == [1]


def test_gaps_are_logged_before_anybody_is_woken(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, 2))
    app = load()
    logged: list[int] = []
    app.handler._watcher.lagging = lambda now: logged.append(len(lines(told, "gap found"))) or []  # noqa: ARG005
    app.handler(sample("sweep_schedule"), context)
    assert (logged, len(lines(told, "gap found"))) == ([1], 1)


def test_a_sweep_that_cannot_list_the_queues_publishes_no_zero_and_still_tells_how_consumers_stand(
    sorter: StreamSorter, sample: Any, context: Context, told: Told
) -> None:
    sorter.put_many({"queue": "q", "seq": seq} for seq in (0, 2))
    app = load()

    def fail(*_: Any) -> Any:
        raise Bug("no listing")

    app.handler._sweeper._cursors.waiting = fail
    with pytest.raises(Bug, match="no listing"):
        app.handler(sample("sweep_schedule"), context)
    figures = told.metrics()
    assert not {"QueuesWaiting", "QueuesFailed", "OldestGapAgeSeconds"} & set(figures)
    assert figures["ConsumerLag"] == 1
