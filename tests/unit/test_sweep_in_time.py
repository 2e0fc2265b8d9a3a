"""A sweep beside queues whose tables fail: they delay no other one, and what it did is told in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable, StreamSorter, Sweeper
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.testing.clock import MovableClock
from tests.unit.faulty import THROTTLE, refusal
from tests.unit.queues import message
from tests.unit.test_put_many_in_time import BAD, Stopwatch, fail, timed

if TYPE_CHECKING:
    from tests.unit.faulty import Faulty

# Of the sweep function.
TIMEOUT = 55.0


@pytest.fixture
def watch() -> Stopwatch:
    return Stopwatch(TIMEOUT)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_i7_a_gap_that_is_due_beside_twelve_failing_queues_is_skipped_by_the_same_sweep(
    client: Faulty, watch: Stopwatch, in_flight: int
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=in_flight), watch)
    sorter.put_many([*(message(2, queue) for queue in BAD), message(2, "good")])
    sorter.set_policy("good", skip_after=0)
    fail(client, "get_item", BAD)
    at = sorter.clock() + 1
    for minute in range(len(BAD) + 1):
        watch.now = 0.0
        done = Sweeper(sorter).sweep(now=at + 60 * minute, time_left=watch.left)
        assert sorted(queue for queue, _ in done.failed) == sorted(BAD), "wherever it begins"
        assert sorter.position("good") == 2
        assert set(done.waiting) == set(BAD)


def test_a_queue_whose_every_call_is_slow_does_not_keep_a_sweep_from_telling_its_figures(
    client: Faulty, watch: Stopwatch
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    sorter.put_many(message(seq) for seq in range(2, 600, 2))
    sorter.set_policy("q", skip_after=0)
    began: dict[str, float] = {}

    def throttle(method: str, request: dict[str, Any]) -> None:
        # Each call gets through after eight seconds.
        if "IndexName" not in request and watch.now - began.setdefault(f"{method} {request}", watch.now) < 8:
            raise refusal(THROTTLE)

    client.watch = throttle
    told_at: list[float] = []
    Sweeper(sorter).sweep(now=sorter.clock() + 1, time_left=watch.left, on_figures=lambda _: told_at.append(watch.now))
    assert told_at[0] <= TIMEOUT / 2


def test_a_queue_that_fails_once_is_looked_at_again_by_the_same_sweep_and_its_gaps_are_told_once(
    client: Faulty,
) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    sorter.put_many(message(seq) for seq in (0, 2))
    Sweeper(sorter).sweep(now=sorter.clock() + 1)
    sorter.put_many(message(seq) for seq in range(4, 300, 2))
    sorter.set_policy("q", skip_after=0)
    put_item = client._client.put_item

    def losing(request: dict[str, Any]) -> dict[str, Any]:
        put_item(**request)
        raise refusal(THROTTLE)

    # The answers to two of many tombstones are lost.
    kept = [lambda request: dict(put_item(**request))] * 40
    client.answers["put_item"] = [*kept, losing, *kept, losing]
    done = Sweeper(sorter).sweep(now=sorter.clock() + 1)
    assert (sorter.position("q"), done.failed, done.closed) == (298, [], [])
    assert sorted(event.seqs.start for event in done.skipped) == list(range(1, 298, 2))


def test_a_gap_whose_message_comes_between_two_looks_of_one_sweep_is_told_as_closed() -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    sorter.put_many([message(0), message(2)])
    Sweeper(sorter).sweep()
    sorter.put_many([message(4)])
    sorter.put_many([message(1)])
    sorter.put_many([message(6)])
    Sweeper(sorter).sweep()
    arrivals = sorter.stores.items.arrivals

    def throttled(*_: Any) -> Any:
        sorter.stores.items.arrivals = arrivals  # type: ignore[method-assign]
        sorter.put_many([message(3)])
        raise StoreUnavailable("throttled")

    sorter.set_policy("q", skip_after=0)
    sorter.stores.items.arrivals = throttled  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep(now=sorter.clock() + 1)
    assert [(event.kind, event.seqs.start) for event in (*done.closed, *done.skipped)] == [
        ("closed", 3),
        ("given_up", 5),
    ]


def test_a_backlog_that_comes_while_a_mark_is_taken_away_does_not_use_up_the_time_of_a_sweep() -> None:
    sorter = StreamSorter.in_memory(in_flight=1, max_advance=10)
    sorter.put_many([message(1)])
    sorter.put_many([message(0)])
    set_waiting = sorter.stores.cursors.set_waiting

    def storing(cursor: Any, since: float | None) -> bool:
        for seq in range(2, 1_000):
            sorter.stores.items.put(Arrival(check_message(message(seq), KeyNames()), 1), 0.0)
        return set_waiting(cursor, since)

    sorter.stores.cursors.set_waiting = storing  # type: ignore[method-assign]
    left = iter(range(21, -10_000, -1))
    done = Sweeper(sorter).sweep(time_left=lambda: float(next(left)))
    assert (done.complete, done.waiting) == (False, ["q"])
    assert 1 < sorter.position("q") < 500
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 999, "the mark is there"


def test_i7_queues_that_cannot_be_nudged_keep_no_other_asleep(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    sorter.put_many(message(0, queue) for queue in (*BAD, "good"))
    fail(client, "update_item", BAD)

    class Sleepers:
        def lagging(self, now: float) -> list[str]:  # noqa: ARG002  # the port's signature
            return [*BAD, "good"]

    at = sorter.clock()
    for minute in range(len(BAD) + 1):
        watch.now = 0.0
        done = Sweeper(sorter, lagging=Sleepers()).sweep(now=at + 60 * minute, time_left=watch.left)
        assert done.nudged == ["good"]
        assert sorted(queue for queue, _ in done.failed) == sorted(BAD)
        assert watch.now < TIMEOUT


@pytest.mark.parametrize(
    ("looks", "is_kept"), [*((tenth / 10, True) for tenth in range(0, 50, 4)), (49.0, False)], ids=str
)
def test_a_sweep_ends_in_time_although_nudges_and_the_watch_hang(
    watch: Stopwatch, looks: float, *, is_kept: bool
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)

    def hang(*_: Any) -> None:
        watch.sleep(5.0)
        raise StoreUnavailable("timed out")

    class Sleepers:
        kept = False

        def lagging(self, now: float) -> list[str]:  # noqa: ARG002  # the port's signature
            watch.sleep(looks)
            return BAD

        def were_nudged(self, queues: Any) -> None:
            self.kept = True
            hang(queues)

    sorter.stores.cursors.nudge = hang  # type: ignore[method-assign]
    sleepers = Sleepers()
    done = Sweeper(sorter, lagging=sleepers).sweep(time_left=watch.left)
    assert watch.now <= TIMEOUT
    assert sleepers.kept == is_kept
    assert not done.complete
    assert (done.watch_error is not None) == is_kept


def test_a_queue_that_fails_is_not_said_to_have_waited_since_a_gap_that_it_left_days_ago() -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    sorter.put_many([message(0), message(2)])
    for hour in range(72):
        Sweeper(sorter).sweep()
        clock.move(3_600)
        sorter.put_many([message(2 * hour + 1), message(2 * hour + 4)])

    def throttled(*_: Any) -> Any:
        raise StoreUnavailable("throttled")

    sorter.stores.items.arrivals = throttled  # type: ignore[method-assign]
    done = Sweeper(sorter).sweep()
    assert (done.waiting, done.gap_ages, len(done.failed)) == (["q"], {"q": 0.0}, 1)


def test_i7_failing_queues_that_answer_slowly_keep_no_consumer_asleep(watch: Stopwatch) -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    sorter.put_many([*(message(5, f"bad{number}") for number in range(40)), message(0, "good")])
    get = sorter.stores.cursors.get

    def slow(queue: str) -> Any:
        if queue.startswith("bad"):
            watch.sleep(2.0)
            raise StoreUnavailable("timed out")
        return get(queue)

    class Sleepers:
        def lagging(self, now: float) -> list[str]:  # noqa: ARG002  # the port's signature
            return ["good"]

    sorter.stores.cursors.get = slow  # type: ignore[method-assign]
    clock.move(1_000)
    for _ in range(4):
        watch.now = 0.0
        clock.move(60)
        told_at: list[float] = []
        done = Sweeper(sorter, lagging=Sleepers()).sweep(
            time_left=watch.left,
            on_figures=lambda _: told_at.append(watch.now),  # noqa: B023  # called at once
        )
        assert done.nudged == ["good"]
        assert told_at[0] <= TIMEOUT * 0.55
        assert (len(done.waiting), done.oldest_gap) == (40, max(done.gap_ages.values()))


def test_failed_queues_are_told_although_the_rest_of_the_listing_fails() -> None:
    sorter = StreamSorter.in_memory(in_flight=1, gap_policy="skip after 0 seconds")
    names = [f"q{number:02}" for number in range(60)]
    sorter.put_many(message(1, queue) for queue in names)
    waiting, look = sorter.stores.cursors.waiting, sorter.stores.items.look

    def listing(before: float, start: Any = None) -> Any:
        if start is not None:
            raise StoreUnavailable("no second page")
        page = waiting(before)
        return type(page)(page.queues[:50], "more")

    def failing(queue: str, after: int, limit: int) -> Any:
        if queue == broken_one and after == 1:
            raise StoreUnavailable("throttled")
        return look(queue, after, limit)

    broken_one = waiting(sorter.clock() + 10).queues[7]
    sorter.stores.cursors.waiting = listing  # type: ignore[method-assign]
    sorter.stores.items.look = failing  # type: ignore[method-assign]
    figures: list[Any] = []
    with pytest.raises(StoreUnavailable, match="no second page"):
        Sweeper(sorter).sweep(now=sorter.clock() + 10, on_figures=figures.append)
    assert [queue for queue, _ in figures[0].failed] == [broken_one]
    assert len(figures[0].skipped) == figures[0].looked_at == 50
