"""`stream-sort explain` tells a consumer that works from one that is stuck."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.aws import accounts
from stream_sort.model.consumption import Wake
from tests.functional.command_line import VARIABLES, Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort import Batch
    from tests.functional.conftest import Table

Explained = tuple[str, dict[str, object]]


class Scene:
    """A queue whose messages were put, and partly consumed, so many seconds ago."""

    def __init__(self, dynamo: Table, line: Line) -> None:
        self.dynamo = dynamo
        self.line = line
        OrderedConsumer("process", sorter=self.sorter(0)).create_tables()

    def sorter(self, ago: float) -> StreamSorter:
        return StreamSorter(client=self.dynamo.client, in_flight=1, clock=lambda: time.time() - ago)

    def put(self, *seqs: int, ago: float = 0.0) -> None:
        self.sorter(ago).put_many({"queue": "ada", "seq": seq} for seq in seqs)

    def consume(self, handle: Callable[[Batch], object], ago: float = 0.0, max_attempts: int = 5) -> None:
        consumer = OrderedConsumer("process", handle, sorter=self.sorter(ago), batch_size=1, max_attempts=max_attempts)
        consumer.catch_up("ada", force=True)

    def explain(self) -> Explained:
        (reader,) = self.line.json("explain", "ada")["consumers"]
        return self.line.run("explain", "ada").stdout, reader


@pytest.fixture
def scene(dynamo: Table, monkeypatch: pytest.MonkeyPatch) -> Scene:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return Scene(dynamo, Line())


def through(seq: int, stop: Callable[[Batch], object]) -> Callable[[Batch], object]:
    """Do all up to a seq, then something else with the next one."""
    return lambda batch: None if batch.seqs[-1] <= seq else stop(batch)


def test_a_consumer_that_is_behind_and_committed_a_moment_ago_is_working(scene: Scene) -> None:
    scene.put(0, 1, 2, 3, ago=600)
    seen: list[Explained] = []
    scene.consume(through(1, lambda _: seen.append(scene.explain())))
    told, reader = seen[0]
    assert "Consumer 'process' is 2 seqs behind (seq 1).\n" in told
    assert "Consumer 'process' is working, last commit " in told
    assert " s ago.\n" in told
    assert reader["state"] == "working"
    assert "stream-sort nudge" not in told


def test_a_consumer_that_made_no_commit_for_long_while_messages_are_due_is_stuck(scene: Scene) -> None:
    scene.put(0, 1, ago=700)
    scene.consume(lambda _: None, ago=700)
    scene.put(2, 3, ago=600)
    # It comes all the time, and is no sign of life.
    scene.put(4, 5)
    told, reader = scene.explain()
    assert "Consumer 'process' is 4 seqs behind (seq 1).\n" in told
    assert "Consumer 'process' is stuck: seq 2 is due for 10 min, and its last commit was 12 min ago." in told
    assert reader["state"] == "stuck"
    assert told.rstrip().endswith("stream-sort nudge ada")


def test_a_consumer_that_never_came_is_stuck_once_its_first_message_waits_for_long(scene: Scene) -> None:
    scene.put(0, ago=700)
    scene.consume(lambda _: None, ago=700)
    scene.sorter(600).put({"queue": "bob", "seq": 0})
    told = scene.line.run("explain", "bob").stdout
    assert "Consumer 'process' is stuck: seq 0 is due for 10 min, and it never committed here." in told
    assert told.rstrip().endswith("stream-sort nudge bob")


def test_a_consumer_whose_messages_were_released_a_moment_ago_is_neither(scene: Scene) -> None:
    scene.put(0, ago=700)
    scene.consume(lambda _: None, ago=700)
    # One that waited long, and the one it waited for.
    scene.put(2, ago=600)
    scene.put(1)
    told, reader = scene.explain()
    assert "Consumer 'process' is about to begin: seq 1 is due for " in told
    assert reader["state"] == "woken"
    assert "stream-sort nudge" not in told
    assert "stuck" not in told


def test_a_consumer_that_just_began_is_working_and_has_committed_nothing(scene: Scene) -> None:
    scene.put(0, 1)
    seen: list[Explained] = []
    scene.consume(lambda _: seen.append(scene.explain()))
    told, reader = seen[0]
    assert "Consumer 'process' is working, it began " in told
    assert "last commit" not in told
    assert (reader["state"], reader["committed_at"]) == ("working", None)


def test_a_message_that_is_handled_under_the_crash_guard_is_being_worked_on(scene: Scene) -> None:
    """A message that is long overdue is parked before it is tried: its consumer is at work, and not stuck."""
    scene.put(0, ago=4_000)
    scene.consume(lambda _: None, ago=4_000)
    scene.put(1, ago=3_000)
    seen: list[Explained] = []
    scene.consume(lambda _: seen.append(scene.explain()))
    told, reader = seen[0]
    assert "Consumer 'process' is working on seq 1, since " in told
    assert "If its process dies, it is tried again at " in told
    assert "parked" not in told
    assert reader["state"] == "working"
    assert "redrive" not in told


def test_the_list_of_parked_queues_says_of_a_message_in_hand_that_it_is_being_tried(scene: Scene) -> None:
    scene.put(0, ago=4_000)
    scene.consume(lambda _: None, ago=4_000)
    scene.put(1, ago=3_000)
    seen: list[str] = []
    scene.consume(lambda _: seen.append(scene.line.run("parked", "--wide").stdout))
    assert "being tried now; it counts only if its process dies" in seen[0]
    assert "ProcessEnded" not in seen[0]


def test_the_list_of_parked_queues_says_where_status_counts_fewer(scene: Scene) -> None:
    scene.put(0, ago=4_000)
    scene.consume(lambda _: None, ago=4_000)
    scene.put(1, ago=3_000)
    seen: list[tuple[str, str]] = []
    scene.consume(lambda _: seen.append((scene.line.run("parked", "list").stderr, scene.line.run("status").stdout)))
    ((listed, counted),) = seen
    assert listed == "1 of these is not counted as parked by status: it is being tried now\n"
    assert "1 queue: 0 parked, " in counted


@pytest.mark.parametrize("attempts", [1, 5])
def test_a_message_in_hand_under_the_crash_guard_is_no_parked_queue_in_any_figure(
    scene: Scene, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "_local", lambda: None)
    scene.put(0, ago=4_000)
    scene.consume(lambda _: None, ago=4_000)
    scene.put(1, ago=3_000)
    seen: list[Any] = []

    def look(_: Batch) -> None:
        (line,) = scene.line.json("status")["lines"]
        (consumer,) = scene.line.json("consumers", "list")
        warned = [one["text"] for one in scene.line.json("doctor")["findings"] if "parked at" in one["text"]]
        seen.append((line["parked"], consumer["parked"], warned))

    scene.consume(look, max_attempts=attempts)
    assert seen == [({}, 0, [])]


def test_a_consumer_that_is_parked_is_so_and_not_called_working(scene: Scene) -> None:
    scene.put(0, 1)

    def fail(_: Batch) -> None:
        raise ValueError("no such account")

    OrderedConsumer("process", through(0, fail), sorter=scene.sorter(0), batch_size=1).process([Wake("ada")])
    told, reader = scene.explain()
    assert "is parked at seq 1" in told
    assert "working" not in told
    assert reader["state"] == "parked"


def test_a_consumer_that_is_up_to_date_is_told_as_before(scene: Scene) -> None:
    scene.put(0, 1)
    scene.consume(lambda _: None)
    told, reader = scene.explain()
    assert "Consumer 'process' is up to date (seq 1).\n" in told
    assert "working" not in told
    assert reader["state"] == "up to date"
