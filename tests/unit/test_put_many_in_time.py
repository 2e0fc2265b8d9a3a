"""put_many within the time its caller has: healthy queues first, nothing stored is given up, the rest is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import InvalidInput, PutResult, StoreUnavailable, StreamSorter, Sweeper
from stream_sort.intake.batch_put import BatchPut
from stream_sort.model.message import KeyNames, check_message
from stream_sort.model.records import Arrival
from stream_sort.ports.time_limit import seconds_left
from stream_sort.release.advancer import Reach
from stream_sort.release.time_budget import CallTime, TimeBudget
from stream_sort.sorter import Options, Sorter
from tests.unit.faulty import THROTTLE, refusal
from tests.unit.queues import message, tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.faulty import Faulty

BAD = [f"bad{number}" for number in range(12)]


class Stopwatch:
    """A time that passes only when somebody sleeps or something takes time."""

    def __init__(self, whole: float = 20.0) -> None:
        self.now = 0.0
        self.whole = whole

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def left(self) -> float:
        return self.whole - self.now


@pytest.fixture
def watch() -> Stopwatch:
    return Stopwatch()


def timed(sorter: StreamSorter, watch: Stopwatch) -> StreamSorter:
    """Let the store's pauses pass on the stopwatch."""
    calls = sorter.stores.cursors._calls  # type: ignore[attr-defined]
    for name, value in (("sleep", watch.sleep), ("monotonic", lambda: watch.now), ("jitter", lambda: 1.0)):
        object.__setattr__(calls, name, value)
    return sorter


def fail(client: Faulty, method: str, queues: list[str]) -> None:
    """Throttle a method for some queues."""

    def watcher(called: str, request: dict[str, Any]) -> None:
        key = request.get("Key") or request.get("ExpressionAttributeValues") or {}
        if called == method and key.get("queue", key.get(":queue", {})).get("S") in queues:
            raise refusal(THROTTLE)

    client.watch = watcher


@pytest.mark.parametrize("in_flight", [1, 4])
def test_i7_a_healthy_message_beside_twelve_failing_queues_is_stored_and_answered_in_time(
    client: Faulty, watch: Stopwatch, in_flight: int
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=in_flight), watch)
    fail(client, "get_item", BAD)
    stored_at: list[float] = []
    put_item = client._client.put_item
    client.answers["put_item"] = [lambda request: (stored_at.append(watch.now), put_item(**request))[1]] * 2
    result = sorter.put_many([*(message(0, queue) for queue in BAD), message(0, "good")], time_left=watch.left)
    assert result.accepted == 1
    assert sorter.position("good") == 0
    assert stored_at[-1] == 0.0
    assert watch.now < watch.whole - 3
    assert {document["queue"] for document, _ in result.rejected} == set(BAD)
    assert all(isinstance(error, StoreUnavailable) for _, error in result.rejected)


def test_i7_failing_queues_share_one_deadline_without_a_time_limit_as_well(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1, deadline=5.0), watch)
    time = CallTime(TimeBudget(), 5.0, lambda: watch.now)
    batch = BatchPut(sorter._intake, sorter._advancer, sorter.in_flight, time)
    fail(client, "get_item", BAD)
    result = PutResult()
    batch.put(sorter._intake.windows([message(0, queue) for queue in BAD], 100), result)
    assert len(result.rejected) == len(BAD)
    # Each of them had five seconds of its own before.
    assert watch.now < 10


def test_a_queue_that_fails_only_once_is_begun_behind_the_others(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    client.before = {"get_item": [refusal(THROTTLE)]}
    result = sorter.put_many([message(0, "a"), message(0, "b")], time_left=watch.left)
    assert result.accepted == 2
    assert [advance.queue for advance in result.advances] == ["b", "a"]


def test_queues_that_failed_go_last_the_next_time() -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    begun: list[str] = []
    get = sorter.stores.cursors.get

    def failing(queue: str) -> Any:
        begun.append(queue)
        if queue == "bad":
            raise StoreUnavailable("throttled")
        return get(queue)

    sorter.stores.cursors.get = failing  # type: ignore[method-assign]
    sorter.put_many([message(0, "bad"), message(0, "a")])
    begun.clear()
    sorter.put_many([message(1, "bad"), message(0, "b")])
    assert begun == ["b", "bad", "bad"]


def test_a_store_that_hangs_leaves_time_for_what_was_begun(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    get = sorter.stores.cursors.get

    def hanging(queue: str) -> Any:
        if queue in BAD:
            watch.sleep(10)
            raise StoreUnavailable("timed out")
        return get(queue)

    sorter.stores.cursors.get = hanging  # type: ignore[method-assign]
    result = sorter.put_many([message(0, "good"), *(message(0, queue) for queue in BAD)], time_left=watch.left)
    assert (result.accepted, watch.now) == (1, 10)
    assert sorter.position("good") == 0
    assert len(result.rejected) == len(BAD)


def slow(sorter: StreamSorter, method: str, seconds: float, watch: Stopwatch) -> None:
    """Let each call of a method of the cursor or the item store take some time."""
    stores = sorter.stores
    store = stores.cursors if hasattr(stores.cursors, method) else stores.items
    call: Callable[..., Any] = getattr(store, method)

    def taking_time(*args: Any) -> Any:
        watch.sleep(seconds)
        return call(*args)

    setattr(store, method, taking_time)


def backlog(length: int, queues: tuple[str, ...] = ("q",)) -> StreamSorter:
    """Everything but seq 0 is stored in these queues; nobody remembers anything, and nothing is marked."""
    sorter = StreamSorter.in_memory(in_flight=1)
    for queue in queues:
        sorter.put_many(message(seq, queue) for seq in range(1, length))
    for queue, row in list(tables_of(sorter).cursors.items()):
        sorter.stores.cursors.set_waiting(row, None)
        sorter._intake.hints.forget(queue)
    return sorter


def test_a_backlog_behind_a_gap_that_one_put_many_closes_ends_in_time_and_sweeps_release_the_rest(
    watch: Stopwatch,
) -> None:
    sorter = backlog(100_000)
    slow(sorter, "move", 1.0, watch)
    result = sorter.put_many([message(0), message(0, "other")], time_left=watch.left)
    assert watch.now < watch.whole
    assert (result.accepted, result.rejected, result.stalled, result.unreleased) == (2, [], [], ["q"])
    assert 0 < sorter.position("q") < 50_000
    assert sorter.position("other") == 0
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 99_999


def test_i7_a_long_backlog_lets_other_queues_have_their_turn(watch: Stopwatch) -> None:
    sorter = backlog(100_000)
    slow(sorter, "move", 0.5, watch)
    result = sorter.put_many([message(0), *(message(0, f"r{number}") for number in range(5))], time_left=watch.left)
    assert result.unreleased == ["q"]
    assert [sorter.position(f"r{number}") for number in range(5)] == [0] * 5


def throttled_once(sorter: StreamSorter, step: str, queue: str, watch: Stopwatch) -> list[float]:
    """Let a step fail once for a queue; return when its messages are stored."""
    cursors, items, faults, stored_at = sorter.stores.cursors, sorter.stores.items, [queue], []
    create, put_many = cursors.create, items.put_many

    def creating(row: Any) -> Any:
        if step == "begin" and row.queue in faults:
            faults.remove(row.queue)
            raise StoreUnavailable("throttled")
        return create(row)

    def storing(arrivals: list[Arrival], now: float) -> Any:
        if step == "store" and faults and any(one.message.queue in faults for one in arrivals):
            failed = {one.message.queue for one in arrivals} & set(faults)
            faults.clear()
            good = iter(put_many([one for one in arrivals if one.message.queue not in failed], now))
            return [StoreUnavailable("throttled") if one.message.queue in failed else next(good) for one in arrivals]
        stored_at.extend(watch.now for one in arrivals if one.message.queue == queue)
        return put_many(arrivals, now)

    cursors.create, items.put_many = creating, storing  # type: ignore[assignment,method-assign]
    return stored_at


@pytest.mark.parametrize("step", ["begin", "store"])
@pytest.mark.parametrize("limit", [None, 20.0])
def test_i7_a_message_that_is_throttled_once_is_stored_before_the_backlog_of_another_queue_is_released(
    watch: Stopwatch, step: str, limit: float | None
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, max_advance=10)
    sorter.put_many(message(seq, "long") for seq in range(1, 4_000))
    slow(sorter, "move", 0.05, watch)
    stored_at = throttled_once(sorter, step, "b", watch)
    time_left = None if limit is None else watch.left
    result = sorter.put_many([message(0, "long"), message(0, "b")], time_left=time_left)
    assert (result.accepted, len(stored_at)) == (2, 1)
    assert stored_at[0] < 1
    assert sorter.position("b") == 0
    assert sorter.position("long") == 3_999 or result.unreleased == ["long"]
    assert {advance.queue: advance.old for advance in result.advances} == {"long": -1, "b": -1}


def test_what_is_stored_when_the_time_is_over_is_accepted_and_marked(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    put_many = sorter.stores.items.put_many

    def taking_all(arrivals: Any, now: float) -> Any:
        watch.sleep(15)
        return put_many(arrivals, now)

    sorter.stores.items.put_many = taking_all  # type: ignore[method-assign]
    result = sorter.put_many([message(0), message(1)], time_left=watch.left)
    assert (result.accepted, result.stalled, result.unreleased) == (2, [], ["q"])
    assert [(one.queue, one.new, len(one)) for one in result.advances] == [("q", -1, 0)]
    row = sorter.stores.cursors.get("q")
    assert row is not None
    assert row.is_marked
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 1


def test_a_stored_message_whose_queue_can_not_even_be_marked_is_stalled(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    slow(sorter, "create", 15, watch)

    def failing(*_: Any) -> Any:
        raise StoreUnavailable("throttled")

    put_many = sorter.stores.items.put_many

    def taking_all(arrivals: Any, now: float) -> Any:
        watch.sleep(15)
        sorter.stores.cursors.set_waiting = failing  # type: ignore[method-assign]
        return put_many(arrivals, now)

    slow(sorter, "create", -15, watch)
    sorter.stores.items.put_many = taking_all  # type: ignore[method-assign]
    result = sorter.put_many([message(0)], time_left=watch.left)
    assert (result.accepted, result.unreleased) == (1, [])
    assert [queue for queue, _ in result.stalled] == ["q"]


def test_a_queue_that_cannot_be_advanced_for_now_is_left_to_the_sweep_where_time_is_short(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    sorter.put(message(0))

    def failing(*_: Any) -> Any:
        raise StoreUnavailable("throttled")

    look = sorter.stores.items.look
    sorter.stores.items.look = failing  # type: ignore[method-assign]
    result = sorter.put_many([message(1)], time_left=watch.left)
    assert (result.accepted, result.stalled, result.unreleased) == (1, [], ["q"])
    sorter.stores.items.look = look  # type: ignore[method-assign]
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 1


def test_what_comes_when_the_time_is_over_is_not_stored_and_told_so(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, window=2)

    def documents() -> Any:
        yield message(0)
        yield message(1)
        watch.sleep(15)
        yield message(2)
        yield {"queue": "q"}
        yield message(3, "r")

    result = sorter.put_many(documents(), time_left=watch.left)
    # To release comes last, and then there was no time left.
    assert (result.accepted, result.unreleased) == (2, ["q"])
    Sweeper(sorter).sweep()
    assert sorter.position("q") == 1
    assert [error.retryable for _, error in result.rejected] == [True, False, True]
    assert sorter.stores.items.highest("r") is None
    assert sorter.stores.items.highest("q") == 1


def test_without_time_left_there_is_no_end_to_it() -> None:
    sorter = backlog(20_000)
    assert sorter.put_many([message(0)]).unreleased == []
    assert sorter.position("q") == 19_999


def test_i9_time_left_is_a_function() -> None:
    with pytest.raises(InvalidInput, match="time_left is a function"):
        StreamSorter.in_memory().put_many([], time_left=5.0)  # type: ignore[arg-type]


def test_i7_a_throttled_queue_takes_no_time_from_the_stores_of_others(client: Faulty, watch: Stopwatch) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    stored_at: dict[str, float] = {}

    def throttle(method: str, request: dict[str, Any]) -> None:
        if method == "batch_execute_statement":
            raise refusal("AccessDeniedException")
        if method == "put_item" and request["TableName"] == "Items":
            queue = request["Item"]["queue"]["S"]
            if queue == "hot":
                raise refusal(THROTTLE)
            stored_at[queue] = watch.now

    client.watch = throttle
    batch = [*(message(seq, "hot") for seq in range(310)), *(message(0, f"q{number}") for number in range(20))]
    result = sorter.put_many(batch, time_left=watch.left)
    assert (result.accepted, len(result.rejected)) == (20, 310)
    assert set(stored_at.values()) == {0.0}
    assert watch.now < watch.whole


@pytest.mark.parametrize("seconds", [20.0, None])
def test_i7_what_cannot_be_stored_for_now_delays_the_release_of_no_other_queue(
    client: Faulty, watch: Stopwatch, seconds: float | None
) -> None:
    sorter = timed(StreamSorter(client=client, in_flight=1), watch)
    released_at: dict[str, float] = {}

    def throttle(method: str, request: dict[str, Any]) -> None:
        if method == "put_item" and request["TableName"] == "Items" and request["Item"]["queue"]["S"] == "hot":
            raise refusal(THROTTLE)
        if method == "update_item":
            released_at[request["Key"]["queue"]["S"]] = watch.now

    client.watch = throttle
    batch = [message(0, "hot"), message(1, "hot"), message(0, "cold"), message(0, "mild")]
    result = sorter.put_many(batch, time_left=watch.left if seconds else None)
    assert (result.accepted, len(result.rejected)) == (2, 2)
    assert released_at == {"cold": 0.0, "mild": 0.0}


def test_what_is_stored_at_the_second_try_is_released_and_counted_once(client: Faulty) -> None:
    sorter = StreamSorter(client=client, in_flight=1)
    faults = [refusal(THROTTLE)]

    def throttle(method: str, request: dict[str, Any]) -> None:
        if method == "put_item" and request["TableName"] == "Items" and request["Item"]["seq"]["N"] == "1" and faults:
            raise faults.pop()

    client.watch = throttle
    result = sorter.put_many([message(2), message(1), message(0), message(0, "other")])
    assert (result.accepted, result.released, result.out_of_order) == (4, 4, {"q": 2})
    assert (sorter.position("q"), len(result.advances)) == (2, 2)


def test_late_messages_without_end_do_not_use_up_more_than_the_time_of_a_put_many(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    sorter.skip("q", range(1_000))
    slow(sorter, "keep_late", 0.05, watch)
    result = sorter.put_many((message(seq) for seq in range(1_000)), time_left=watch.left)
    assert watch.now < watch.whole
    assert len(result.late) + len(result.rejected) == 1_000
    assert {type(error) for _, error in result.rejected} == {StoreUnavailable}
    while result.rejected:
        watch.now = 0.0
        result = sorter.put_many([document for document, _ in result.rejected], time_left=watch.left)
    assert len(sorter.late("q")) == 1_000


def test_queues_are_advanced_side_by_side_in_the_time_there_is(watch: Stopwatch) -> None:
    sorter = backlog(50_000, ("q", "r"))
    slow(sorter, "move", 1.0, watch)
    for queue in ("q", "r"):
        assert sorter.stores.items.put(Arrival(check_message(message(0, queue), KeyNames()), -1), 0.0) is None
    reached = sorter.advance_many(["q", "none", "r"], time_left=watch.left)
    assert watch.now < watch.whole
    assert {queue: reach.complete for queue, reach in reached.items() if isinstance(reach, Reach)} == {
        "q": False,
        "none": True,
        "r": False,
    }
    assert min(sorter.position("q"), sorter.position("r")) > 1_000
    Sweeper(sorter).sweep()
    assert (sorter.position("q"), sorter.position("r")) == (49_999, 49_999)


@pytest.mark.parametrize("many", [998, 999, 20_000])
def test_i7_a_backlog_delays_the_store_of_no_message_however_many_are_put_at_once(watch: Stopwatch, many: int) -> None:
    sorter = backlog(50_000)
    slow(sorter, "move", 1.0, watch)
    messages = [message(0), *(message(seq, "other") for seq in range(many)), message(0, "healthy")]
    result = sorter.put_many(messages, time_left=watch.left)
    assert result.accepted == len(messages)
    assert "q" in result.unreleased
    assert watch.now < watch.whole


def test_i7_queues_that_fail_in_any_step_keep_no_message_out_however_many_are_put_at_once(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    items, cursors = sorter.stores.items, sorter.stores.cursors
    get, put_many, move = cursors.get, items.put_many, cursors.move

    def refuse() -> StoreUnavailable:
        # As the DynamoDB stores do: tried again while there is time.
        watch.sleep(max(0.0, min(10.0, seconds_left())) + 0.005)
        return StoreUnavailable("throttled")

    def failing_get(queue: str) -> Any:
        if queue.startswith("begin"):
            raise refuse()
        return get(queue)

    def failing_put(arrivals: Any, now: float) -> Any:
        healthy = [one for one in arrivals if not one.message.queue.startswith("store")]
        answers = iter(put_many(healthy, now))
        error = refuse() if len(healthy) < len(arrivals) else None
        return [next(answers) if one in healthy else error for one in arrivals]

    def failing_move(row: Any, *rest: Any) -> Any:
        if row.queue.startswith("move"):
            raise refuse()
        return move(row, *rest)

    cursors.get, items.put_many, cursors.move = failing_get, failing_put, failing_move  # type: ignore[method-assign]
    queues = [f"{step}{number}" for number in range(8) for step in ("begin", "store", "move")]
    bad = [message(seq, queue) for queue in queues for seq in range(50)]
    sorter.put_many([*bad, message(0, "healthy")], time_left=watch.left)
    assert sorter.slot("healthy", 0) is not None
    assert watch.now < watch.whole


@pytest.mark.parametrize("queues", [900, 5_000])
def test_marks_of_very_many_queues_end_in_time_and_what_is_not_marked_comes_again(
    watch: Stopwatch, queues: int
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    for method in ("get", "move", "set_waiting", "create", "look"):
        slow(sorter, method, 0.0125 if queues == 900 else 0.0025, watch)
    messages = [message(0, f"q{number}") for number in range(queues)]
    accepted, calls = 0, 0
    while messages:
        watch.now, calls = 0.0, calls + 1
        result = sorter.put_many(messages, time_left=watch.left)
        assert watch.now < watch.whole, "Lambda would have killed it"
        stalled = {queue for queue, _ in result.stalled}
        comes_again = {document["queue"] for document, _ in result.rejected} | stalled
        accepted += result.accepted
        messages = [one for one in messages if one["queue"] in comes_again]
        assert calls < 20
    assert accepted == queues
    Sweeper(sorter).sweep()
    assert all(sorter.position(f"q{number}") == 0 for number in range(0, queues, 97))


def test_i7_a_queue_that_hangs_in_every_window_is_begun_once_and_keeps_no_other_out(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory()
    get = sorter.stores.cursors.get
    tried: list[str] = []

    def hang(queue: str) -> Any:
        if queue == "bad":
            tried.append(queue)
            watch.sleep(5.0)
            raise StoreUnavailable("no answer")
        return get(queue)

    sorter.stores.cursors.get = hang  # type: ignore[method-assign]
    messages = [message(seq, "other" if seq % 500 else "bad") for seq in range(2_900)]
    for known in (False, True):
        watch.now = 0.0
        result = sorter.put_many([*messages, message(int(known), "good")], time_left=watch.left)
        assert watch.now < watch.whole
        assert {document["queue"] for document, _ in result.rejected} == {"bad"}
    assert (sorter.position("good"), len(tried)) == (1, 2)


def test_a_queue_whose_first_move_is_throttled_is_told_from_where_it_began(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, max_advance=10, window=2)
    sorter.put_many(message(seq) for seq in range(1, 200))
    move, moves = sorter.stores.cursors.move, [0]

    def throttled_once(*args: Any) -> Any:
        moves[0] += 1
        if moves[0] == 1:
            raise StoreUnavailable("throttled")
        return move(*args)

    sorter.stores.cursors.move = throttled_once  # type: ignore[method-assign]
    messages = [message(0), message(0, "x"), message(200), message(0, "y")]
    advance = sorter.put_many(messages, time_left=watch.left).by_queue["q"]
    assert (advance.old, advance.new, advance.released) == (-1, 200, 201)


def test_i5_what_is_stored_below_the_floor_is_refused_though_the_time_is_over_for_the_next_window(
    watch: Stopwatch,
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, window=3)
    sorter.put_many(message(seq) for seq in range(4))
    # Trimmed by somebody else: this process remembers no floor.
    Sorter(sorter.homes, sorter.options, sorter.clock).trim("q", 2, control_table=None)
    put_many = sorter.stores.items.put_many

    def slowly(arrivals: Any, now: float) -> Any:
        watch.sleep(14.5)
        return put_many(arrivals, now)

    sorter.stores.items.put_many = slowly  # type: ignore[method-assign]
    result = sorter.put_many([message(seq) for seq in range(4)], time_left=watch.left)
    assert [type(outcome).__name__ for outcome in result.outcomes] == ["Trimmed"] * 3 + ["StoreUnavailable"]


def test_i6_the_first_of_two_messages_stays_though_it_was_throttled_and_the_other_one_came_in_a_later_window(
    watch: Stopwatch,
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, window=2)
    put_many, calls = sorter.stores.items.put_many, [0]

    def throttled_once(arrivals: Any, now: float) -> Any:
        calls[0] += 1
        return [StoreUnavailable("throttled") for _ in arrivals] if calls[0] == 1 else put_many(arrivals, now)

    sorter.stores.items.put_many = throttled_once  # type: ignore[method-assign]
    messages = [message(0, v="first"), message(0, "r"), message(0, v="second"), message(0, v="first")]
    result = sorter.put_many(messages, time_left=watch.left)
    assert [str(outcome) for outcome in result.outcomes] == ["accepted", "accepted", "conflict", "duplicate"]
    assert [one["v"] for one in sorter.read("q")] == ["first"]


def test_i1_what_is_withdrawn_between_two_windows_of_one_call_is_not_taken_for_stored(watch: Stopwatch) -> None:
    first = StreamSorter.in_memory(in_flight=1)
    first.put_many(message(seq) for seq in range(11))
    first.trim("q", 5, control_table=None)
    first.put(message(12))
    operator = Sorter(first.homes, first.options, first.clock)
    sorter = Sorter(first.homes, Options(window=2, in_flight=1), first.clock)

    def source() -> Iterator[dict[str, Any]]:
        yield message(3)
        yield message(12)
        yield message(0, "y")
        operator.withdraw("q", 12, reason="a wrong seq")
        yield message(11)

    result = sorter.put_many(source(), time_left=watch.left)
    outcomes = [str(one) if isinstance(one, str) else type(one).__name__ for one in result.outcomes]
    assert outcomes == ["Trimmed", "duplicate", "accepted", "accepted"]
    assert (sorter.position("q"), [one["seq"] for one in sorter.read("q")]) == (11, list(range(6, 12)))


def test_messages_that_a_slow_source_gave_are_released_while_it_goes_on() -> None:
    now = 0.0
    sorter = StreamSorter.in_memory(clock=lambda: now)
    positions: list[int] = []

    def slowly() -> Iterator[dict[str, Any]]:
        nonlocal now
        for seq in range(6):
            now += 0.5
            positions.append(sorter.position("q"))
            yield message(seq)

    sorter.put_many(slowly(), time_left=lambda: 1_000.0)
    assert positions == [-1, -1, 1, 1, 3, 3]


def test_messages_in_order_are_not_out_of_order_though_they_are_put_in_several_windows(watch: Stopwatch) -> None:
    sorter = StreamSorter.in_memory(in_flight=1, window=2, max_advance=1)
    seqs = [*range(20), 25, 24]
    result = sorter.put_many([message(seq) for seq in seqs], time_left=watch.left)
    assert (result.accepted, result.out_of_order) == (22, {"q": 1})
    assert result.advances[0].released == sorter.position("q") + 1 == 20


def test_what_was_stored_before_a_source_broke_is_released(watch: Stopwatch) -> None:
    sorter = backlog(10_000)

    def breaking() -> Iterator[dict[str, Any]]:
        yield from (message(seq, "other") for seq in range(1_500))
        yield message(0)
        raise OSError("the source broke")

    with pytest.raises(OSError, match="the source broke"):
        sorter.put_many(breaking(), time_left=watch.left)
    assert (sorter.position("other"), sorter.position("q")) == (1_499, 9_999)


@pytest.mark.parametrize(("over", "unreleased"), [({1, 2}, ["q"]), ({1}, []), ({2}, ["q"])])
def test_a_queue_is_listed_once_as_unreleased_however_many_windows_and_not_if_the_last_released_it(
    over: set[int], unreleased: list[str]
) -> None:
    sorter = StreamSorter.in_memory(in_flight=1)
    stored = 0
    is_over = False
    put_many = sorter.stores.items.put_many

    def storing(arrivals: Any, now: float) -> Any:
        nonlocal stored, is_over
        stored += 1
        is_over = stored in over
        return put_many(arrivals, now)

    sorter.stores.items.put_many = storing  # type: ignore[method-assign]
    time = CallTime(TimeBudget(lambda: 0.0 if is_over else 1_000.0))
    batch = BatchPut(sorter._intake, sorter._advancer, sorter.in_flight, time)
    result = PutResult()
    for window in sorter._intake.windows([message(0), message(1)], 1):
        is_over = False
        batch.put([window], result)
    assert (result.accepted, result.unreleased) == (2, unreleased)
