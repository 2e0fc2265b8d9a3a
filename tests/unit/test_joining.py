"""A consumer that was joined once is called joined again only where nothing is missing before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import JoinRefused, Trimmed
from stream_sort.replay.backfill.joining import Join
from stream_sort.replay.backfill.ledger import Ledger
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.ranges import Part, Range

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAN = JobPlan({}, (Part(0, (Range("ada", -1, 19),)),), 1.0)


class Bench:
    """A queue in memory, of which a replay of its first 20 messages has ended, and the consumer that joins there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sorter = StreamSorter.in_memory()
        access = TableAccess("Items", "Cursor")
        # Where a sorter on DynamoDB would be kept.
        access.__dict__["sorter"] = self.sorter
        self.join = Join(access, "Control", "live")
        self.ledger = Ledger(Storage(str(folder / "job")))
        self.consumer = OrderedConsumer("live", lambda _: None, sorter=self.sorter, control_table="Control")
        self.put(0, 20)

    @property
    def readers(self) -> list[str]:
        return [one.name for one in self.sorter.stores.control("Control").subscriptions.consumers()]

    def put(self, first: int, stop: int) -> None:
        self.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(first, stop))

    def run(self) -> int:
        """What a run of the job does, first and again."""
        self.join.check(PLAN, self.ledger)
        self.join.hold(PLAN, self.ledger)
        return self.join.join(PLAN, self.ledger)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    assert bench.run() == 1
    return bench


def test_a_consumer_that_was_retired_and_passed_by_a_trim_is_not_joined_again(bench: Bench) -> None:
    bench.consumer.retire()
    assert bench.join.is_let_go(bench.ledger)
    bench.put(20, 40)
    bench.sorter.trim("ada", through=39, control_table="Control")
    with pytest.raises(Trimmed, match="is trimmed up to seq 39, and seq 20 was not consumed before"):
        bench.run()
    assert bench.readers == []


def test_a_consumer_that_was_retired_is_registered_again_where_nothing_is_missing(bench: Bench) -> None:
    bench.consumer.retire()
    bench.put(20, 40)
    bench.sorter.trim("ada", through=19, control_table="Control")
    assert bench.run() == 1
    assert bench.readers == ["live"]
    assert not bench.join.is_let_go(bench.ledger)
    assert bench.consumer.catch_up("ada") == 20


def test_a_consumer_that_went_on_and_let_others_trim_is_joined(bench: Bench) -> None:
    bench.put(20, 40)
    bench.consumer.catch_up("ada")
    bench.sorter.trim("ada", through=39, control_table="Control")
    assert bench.run() == 1
    assert bench.consumer.checkpoint("ada") == 39


def test_a_place_that_another_job_holds_by_now_is_not_joined(bench: Bench) -> None:
    other = JobPlan({}, (Part(0, (Range("bob", 4, 9),)),), 1.0)
    bench.sorter.put_many({"queue": "bob", "seq": seq} for seq in range(10))
    bench.join.hold(other, Ledger(Storage(str(bench.folder / "elsewhere"))))
    both = JobPlan({}, (Part(0, (Range("ada", -1, 19), Range("bob", -1, 4))),), 1.0)
    with pytest.raises(JoinRefused, match="'live' is held by another backfill in queue 'bob'"):
        bench.join.join(both, bench.ledger)


@pytest.fixture
def held(tmp_path: Path) -> Bench:
    """A bench whose consumer is held where the replay begins; nothing is joined yet."""
    held = Bench(tmp_path)
    held.join.check(PLAN, held.ledger)
    held.join.hold(PLAN, held.ledger)
    return held


def reset_to_latest(held: Bench) -> None:
    held.put(20, 40)
    list(held.consumer.reset("latest", force=True))


MOVES: dict[str, Callable[[Bench], object]] = {
    "seq 19: ": lambda held: held.consumer.catch_up("ada"),
    "seq 39: ": reset_to_latest,
}


@pytest.mark.parametrize("told", MOVES)
def test_a_consumer_that_was_moved_while_it_was_held_is_refused_however_often_it_is_tried(
    held: Bench, told: str
) -> None:
    MOVES[told](held)
    stands = held.consumer.checkpoint("ada")
    for _ in range(2):
        with pytest.raises(JoinRefused, match=f"already has a checkpoint in queue 'ada', {told}others have moved it"):
            held.join.join(PLAN, held.ledger)
        with pytest.raises(JoinRefused, match="To begin anew, take another --consumer and another --checkpoint"):
            held.join.check(PLAN, held.ledger, begins=False)
    assert held.consumer.checkpoint("ada") == stands


class Busy(Storage):
    """Files among which a join begins just before somebody else does something."""

    __slots__ = ("at_join",)

    def put_if_absent(self, name: str, content: bytes) -> bool:
        put = super().put_if_absent(name, content)
        if put:
            self.at_join()
        return put


def busy(held: Bench, at_join: Callable[[], object]) -> Ledger:
    storage = Busy(held.ledger.storage.uri)
    object.__setattr__(storage, "at_join", at_join)
    return Ledger(storage)


@pytest.mark.parametrize("told", MOVES)
def test_a_consumer_that_is_moved_while_it_is_joined_is_refused_however_often_it_is_tried(
    held: Bench, told: str
) -> None:
    with pytest.raises(JoinRefused, match=told):
        held.join.join(PLAN, busy(held, lambda: MOVES[told](held)))
    for _ in range(2):
        with pytest.raises(JoinRefused, match=told):
            held.join.join(PLAN, held.ledger)


def test_of_two_runs_that_join_at_once_both_find_it_joined(held: Bench) -> None:
    assert held.join.join(PLAN, busy(held, lambda: held.join.join(PLAN, held.ledger))) == 1
    assert held.consumer.checkpoint("ada") == 19


def test_a_run_that_comes_last_finds_it_joined_though_the_consumer_went_on(held: Bench) -> None:
    def join_and_go_on() -> None:
        held.join.join(PLAN, held.ledger)
        held.ledger.finish({"finished_at": 1.0, "queues": []})
        held.put(20, 40)
        held.consumer.catch_up("ada")

    assert held.join.join(PLAN, busy(held, join_and_go_on)) == 1
    assert held.consumer.checkpoint("ada") == 39
