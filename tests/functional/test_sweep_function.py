"""What sweep does once a minute: gaps, sleeping consumers, and the figures that alarms look at."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.watcher import PATIENCE

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
    app.sorter._clock = lambda: sorter.clock() + PATIENCE + 1
    assert app.handler(sample("sweep_schedule"), context)["nudged"] == 1
    assert told.metrics()["ConsumerLag"] == 3
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.nudges == 1


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
