"""A row that stays throttled while many are read, on tables of moto's: it is the trouble of its own queue only."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from stream_sort import OrderedConsumer, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.insight.checkup.standing import read_standings
from stream_sort.insight.overview import look
from stream_sort.model.activity import HOUR
from stream_sort.model.gap_policy import MAX_GAP
from stream_sort.ports.time_limit import time_limit
from stream_sort.replay.audit.standing import StandingReader
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.paging import read_rows
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep import activity_reader, lag_finder
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.waiting_rows import IdleQueues
from tests.unit.faulty import THROTTLE, Faulty, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Throttling(Faulty):
    """A client that reads no row of one table whose key has `hot` in it, and says so as DynamoDB does."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.table = ""

    def __getattr__(self, method: str) -> Any:
        call = super().__getattr__(method)
        return self._reading(call) if method == "batch_get_item" else call

    def _reading(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def read(**request: Any) -> Any:
            wanted = request["RequestItems"].get(self.table, {"Keys": []})
            left = [key for key in wanted["Keys"] if "hot" in str(key)]
            if not left:
                return call(**request)
            others = [key for key in wanted["Keys"] if key not in left]
            if not others:
                raise refusal(THROTTLE, operation="BatchGetItem")
            body = call(RequestItems={self.table: {**wanted, "Keys": others}})
            return {**body, "UnprocessedKeys": {self.table: {**wanted, "Keys": left}}}

        return read


class Bench:
    """Four queues whose second message is not consumed yet, and one hot row in a table."""

    def __init__(self) -> None:
        self.client = Throttling(boto3.client("dynamodb", region_name="eu-west-1"))
        self.clock = MovableClock()
        self.sorter = StreamSorter(client=self.client, deadline=0.1, in_flight=1, clock=self.clock)
        self.sorter.create_tables()
        self.consumer = OrderedConsumer("billing", lambda _: None, sorter=self.sorter)
        self.consumer.create_tables()
        for queue in ("a", "b", "hot", "z"):
            self.sorter.put({"queue": queue, "seq": 0})
            self.consumer.catch_up(queue)
            self.sorter.put({"queue": queue, "seq": 1})
        self.control = self.sorter.stores.control("Control")
        self.watcher = LagWatch(self.control.subscriptions, self.control.checkpoints, self.sorter.stores.cursors, 1)

    def sweep(self) -> tuple[set[str], list[tuple[str, type]], Any]:
        self.clock.move(60)
        done = Sweeper(self.sorter, lagging=self.watcher).sweep()
        return set(done.nudged), [(queue, type(error)) for queue, error in done.failed], done.watch_error


@pytest.fixture
def bench() -> Iterator[Bench]:
    with mock_aws():
        yield Bench()


@pytest.mark.parametrize("table", ["Control", "Cursor"])
def test_i7_a_throttled_row_stops_the_wakes_of_no_other_queue(bench: Bench, table: str) -> None:
    bench.client.table = table
    assert bench.sweep() == ({"a", "b", "z"}, [("hot", StoreUnavailable)], None)
    assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (False, {"billing": 1}), (
        "that of hot is not known"
    )
    assert bench.sweep()[1:] == ([("hot", StoreUnavailable)], None), "it is told of until it answers"
    bench.client.table = ""
    assert bench.sweep()[0] >= {"hot"}


def test_a_throttled_checkpoint_row_hides_no_lag_that_was_seen_before(bench: Bench) -> None:
    bench.sweep()
    bench.client.table = "Control"
    bench.sweep()
    assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (True, {"billing": 1})
    for queue in ("a", "b", "z"):
        bench.consumer.catch_up(queue)
    bench.client.table = ""
    bench.sorter.put_many([{"queue": "hot", "seq": seq} for seq in range(2, 50)])
    bench.client.table = "Control"
    for _ in range(3):
        assert bench.sweep()[1:] == ([("hot", StoreUnavailable)], None)
        assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (True, {"billing": 49})
    bench.client.table = ""
    bench.consumer.catch_up("hot")
    bench.sweep()
    assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (True, {})


def test_there_is_no_lag_figure_while_a_throttled_row_hides_a_lag_that_nobody_knows(bench: Bench) -> None:
    for queue in ("a", "b", "z"):
        bench.consumer.catch_up(queue)
    bench.client.table = "Control"
    for _ in range(3):
        assert bench.sweep()[2] is None
        assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (False, {})
        assert bench.watcher.watched.counts_parked, "how many queues are parked is known all the same"
    bench.client.table = ""
    bench.sweep()
    assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (True, {"billing": 1})


def test_there_is_no_lag_figure_while_the_cursor_row_of_a_queue_that_lagged_is_throttled(bench: Bench) -> None:
    bench.sweep()
    bench.client.table = "Cursor"
    bench.sweep()
    assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (False, {"billing": 1})


def test_i7_a_queue_that_moves_is_woken_beside_a_throttled_one_that_lags(bench: Bench) -> None:
    for queue in ("a", "b", "z"):
        bench.consumer.catch_up(queue)
    bench.client.table = "Control"
    bench.sweep()
    bench.clock.move(3_000)
    bench.sorter.put({"queue": "z", "seq": 2})
    assert "z" in bench.sweep()[0]


@pytest.mark.parametrize("most", [100, 0])
def test_i7_a_throttled_row_that_is_read_alone_stops_no_wake_of_a_queue_that_only_the_pass_finds(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(activity_reader, "MOST_UNREAD", most)
    monkeypatch.setattr(activity_reader, "CHEAPER_BY_SCAN", 1)  # as in a table of thirty times as many rows
    for queue in ("a", "b", "z"):
        bench.consumer.catch_up(queue)
    for _ in range(2):
        bench.clock.move(4 * HOUR)
        for _ in range(8):
            bench.sweep()
    row = bench.control.checkpoints.standing("billing", "z").checkpoint
    assert row is not None
    bench.control.checkpoints.commit(row, row.moved(-1, "x", 0.0))
    bench.clock.move(HOUR)
    bench.client.table = "Cursor"
    done = [bench.sweep() for _ in range(4)]
    assert any("z" in nudged for nudged, _, _ in done) == bool(most)
    assert all((error is None) == bool(most) for _, _, error in done), "more than a few are the table's trouble"


def test_a_throttled_checkpoint_that_is_read_alone_is_told_of_by_its_queue_and_counts(bench: Bench) -> None:
    for queue in ("a", "b", "z"):
        bench.consumer.catch_up(queue)
    bench.clock.move(4 * HOUR)
    for _ in range(8):
        bench.sweep()
    bench.client.table = "Control"
    for _ in range(4):
        assert bench.sweep()[1:] == ([("hot", StoreUnavailable)], None)
        assert (bench.watcher.watched.whole, bench.watcher.watched.lag) == (True, {"billing": 1})


@pytest.mark.parametrize("most", [100, 1])
def test_i7_throttled_checkpoints_that_are_read_together_stop_no_other_wake(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(lag_finder, "MOST_UNREAD", most)
    queues = ("a", "b", "hot", "hotter", "z")
    bench.sorter.put_many([{"queue": "hotter", "seq": 0}])
    for queue in queues:
        bench.consumer.catch_up(queue)
    bench.clock.move(4 * HOUR)
    for _ in range(8):
        bench.sweep()
    for queue in queues:
        bench.sorter.put({"queue": queue, "seq": 2 if queue != "hotter" else 1})
    monkeypatch.setattr(lag_finder, "PART", 2)
    bench.client.table = "Control"
    woken, failed, _ = bench.sweep()
    if most > 1:
        assert (woken, [queue for queue, _ in failed]) == ({"a", "b", "z"}, ["hot", "hotter"])
    assert (bench.watcher.problem is None) == (most > 1), "more than a few are the table's trouble"


@pytest.mark.parametrize("table", ["Control", "Items"])
def test_i7_status_and_doctor_show_all_queues_but_one_with_a_throttled_row(bench: Bench, table: str) -> None:
    bench.client.table = table
    sources = bench.sorter.sources("Control")
    failed = [line.queue for line in look(sources).lines if line.error]
    assert failed == (["hot"] if table == "Control" else [])
    found = read_standings(sources, "*", 60, lambda _: None)
    assert (sorted(found.rows), [queue for queue, _ in found.failed]) == (["a", "b", "z"], ["hot"])
    assert not found.hollow


def test_i10_a_throttled_checkpoint_is_not_taken_for_none_or_for_one(bench: Bench) -> None:
    bench.client.table = "Control"
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            OrderedConsumer("new", lambda _: None, sorter=bench.sorter, start="latest").catch_up("a")
        (new,) = (one for one in bench.control.subscriptions.consumers() if one.name == "new")
        assert not new.ready
    with pytest.raises(StoreUnavailable):
        bench.control.checkpoints.of_queues("billing", ["a", "hot"]).whole()


def test_i10_a_throttled_cursor_row_is_not_left_out_of_an_audit_or_taken_for_an_idle_queue(bench: Bench) -> None:
    bench.client.table = "Cursor"
    with pytest.raises(StoreUnavailable):
        StandingReader(bench.sorter).cursors(("a", "hot"))
    bench.client.table = ""
    for queue in ("a", "hot"):
        bench.sorter.put({"queue": queue, "seq": 3})
    Sweeper(bench.sorter).sweep()
    home = bench.sorter.stores
    idle = IdleQueues(home.cursors, home.items, bench.sorter.queues.gap_policy, bench.clock(), MAX_GAP)
    for table, queues in (("", {"a", "hot"}), ("Cursor", {"a"}), ("Items", {"a"})):
        bench.client.table = table
        assert idle.of(["a", "hot"]).keys() == queues


def test_of_very_many_rows_a_throttled_one_hides_no_other_and_a_throttled_table_is_told_as_such(bench: Bench) -> None:
    bench.client.table = "Cursor"
    queues = [*(f"q{number}" for number in range(197)), "a", "b", "z", "hot"]
    page = bench.sorter.stores.cursors.rows_of(queues)
    assert ({row.queue for row in page.rows}, [*page.damaged]) == ({"a", "b", "z"}, ["hot"])
    assert bench.sorter.stores.items.taken([("a", 1), ("a", 9)]).slots == {("a", 1)}
    with pytest.raises(StoreUnavailable, match="BatchGetItem on table 'Cursor'"):
        bench.sorter.stores.cursors.rows_of(["hot"])
    with pytest.raises(StoreUnavailable):
        bench.sorter.stores.cursors.rows_of(["a", *(f"hot{number}" for number in range(101))])


class Slow:
    """A client whose every request takes a tenth of a second; the `nth` fails in a way that passes."""

    meta = SimpleNamespace(region_name="eu-west-1", endpoint_url="https://dynamodb.example")

    def __init__(self, nth: int, fault: Callable[[list[Any]], dict[str, Any]]) -> None:
        self.now, self.count, self.nth, self.fault = 0.0, 0, nth, fault

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803  # as boto3 calls it
        self.count, self.now = self.count + 1, self.now + 0.1
        keys = RequestItems["Cursor"]["Keys"]
        return self.fault(keys) if self.count == self.nth else {"Responses": {"Cursor": keys}}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def calls(self) -> Calls:
        return Calls(self, 10.0, sleep=self.sleep, monotonic=lambda: self.now, jitter=lambda: 0.5)


def _one_left(keys: list[Any]) -> dict[str, Any]:
    return {"Responses": {"Cursor": keys[1:]}, "UnprocessedKeys": {"Cursor": {"Keys": keys[:1]}}}


def _none(_: list[Any]) -> dict[str, Any]:
    raise refusal("InternalServerError", 500, "BatchGetItem")


@pytest.mark.parametrize("fault", [_one_left, _none])
@pytest.mark.parametrize("nth", [50, 120, 200])
def test_a_fault_that_passes_is_tried_again_however_long_the_read_of_all_others_took(nth: int, fault: Any) -> None:
    client = Slow(nth, fault)
    found = read_rows(client.calls(), "Cursor", [{"queue": {"S": str(number)}} for number in range(20_000)])
    assert (len(found.rows), found.unread, client.count) == (20_000, [], 201)


def test_a_long_read_goes_on_no_longer_than_its_caller_has_time() -> None:
    client = Slow(200, _none)
    with time_limit(lambda: 20.0 - client.now):
        found = read_rows(client.calls(), "Cursor", [{"queue": {"S": str(number)}} for number in range(20_000)])
    assert (len(found.unread), client.count) == (100, 200)
