"""The formula of `stream-sort cost` gives what is measured.

Measured is what a warm writer, a warm consumer and a sweep ask of a local AWS, weighed by the rules of DynamoDB
(charges.py). Disorder is every order of arrival once, so that nothing is left to chance; tests/unit/test_disorder.py
has longer disorder, on average.
"""

from __future__ import annotations

import itertools
import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from botocore.config import Config

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.insight.costing import formula as cost_formula
from stream_sort.insight.costing import sweeps
from stream_sort.insight.costing.formula import HOURS, IDLE_WAKE, MARK, MARK_SWEPT, Load, monthly
from stream_sort.insight.costing.sweeps import WAITING
from stream_sort.insight.costing.work import Work
from stream_sort.model.consumption import Wake
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.paging import MAX_WRITES
from stream_sort.testing.clock import MovableClock
from stream_sort.upkeep.lag_watch import OVERLAP, LagWatch
from stream_sort.upkeep.sweeper import Sweeper
from tests.benchmarks.charges import Charged, Charges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.local.ministack import MiniStack

EXACT = 0.001
# Where batches leave gaps, each releases another number of messages, and the formula takes their average. And the rows
# that a sweep scans have not all the same length.
OVER_EDGES, SCANNED = 0.1, 0.05
# So many messages a month that what is counted by the minute does not show.
MANY = 1e12
Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A load, and how closely the formula has to give what it costs."""

    name: str
    load: Load
    count: int
    tolerance: float = EXACT

    def lane(self, queue: str, first: int) -> list[Message]:
        rng = random.Random(7)
        length = self.count // self.load.queues_a_batch
        return [message(queue, first + seq, self.load.size) for seq in order(length, self.load.shuffled, rng)]


CASES = [
    Case("one by one, in order", Load(MANY), 60),
    Case("one by one, in order, 3 KB", Load(MANY, size=3_000), 40),
    Case("one by one, every order of 4", Load(MANY, shuffled=4), 96),
    Case("one by one, every order of 4, 3 KB", Load(MANY, shuffled=4, size=3_000), 96),
    Case("one by one, every order of 4, 40 KB", Load(MANY, shuffled=4, size=40_000), 96),
    Case("batches of 100, in order", Load(MANY, 100), 300),
    Case("batches of 100, in order, 3 KB", Load(MANY, 100, 3_000), 300),
    Case("batches of 100, in order, 40 KB", Load(MANY, 100, 40_000), 200),
    Case("batches of 100, shuffled by 10", Load(MANY, 100, shuffled=10), 300),
    Case("batches of 100 over 100 queues", Load(MANY, 100, queues_a_batch=100), 200),
    Case("batches of 3 over 3 queues, every order of 4", Load(MANY, 3, queues_a_batch=3, shuffled=4), 288),
    Case("batches of 500 over 5 queues, shuffled by 10", Load(MANY, 500, queues_a_batch=5, shuffled=10), 1_500),
    Case("batches of 50, shuffled by 20", Load(MANY, 50, shuffled=20), 600, OVER_EDGES),
]
# Where the formula is on the safe side: a batch within wide disorder may release nothing, and several moves of a queue
# that come to a consumer together are one wake.
AT_MOST = [
    Case("batches of 10, shuffled by 20", Load(MANY, 10, shuffled=20), 600),
    Case("batches of 2,500", Load(MANY, 2_500), 2_500),
]


@dataclass(slots=True)
class Bill:
    """What putting and delivering cost."""

    put: list[Charged] = field(default_factory=list)
    delivered: list[Charged] = field(default_factory=list)


class Bench:
    """Tables of its own, a writer and a consumer that are warm, and what is charged for what they do."""

    def __init__(self, stack: MiniStack) -> None:
        self.name = name = uuid.uuid4().hex[:8]
        self.items_table = f"items-{name}"
        config = Config(user_agent="stream_sort", retries={"total_max_attempts": 1})
        self.client = stack.client("dynamodb", config=config)
        self.clock = MovableClock()
        self.sorter = StreamSorter(
            items_table=self.items_table, cursor_table=f"cursor-{name}", client=self.client, clock=self.clock
        )
        self.sorter.create_tables()
        self.control_table = f"control-{name}"
        self.consumer = OrderedConsumer("billing", lambda _: None, sorter=self.sorter, control_table=self.control_table)
        self.consumer.create_tables()
        self.charges = Charges(self.client, self.items_table)

    def begin(self, queues: Sequence[str]) -> int:
        """Make queues that are known to all, and marked: both is paid once. The seq to go on with."""
        for seq in (0, 2, 1):
            self.sorter.put_many([message(queue, seq, 100) for queue in queues])
        self.wake(dict.fromkeys(queues, 2))
        return 3

    def wake(self, positions: dict[str, int]) -> None:
        self.consumer.process([Wake(queue, position) for queue, position in positions.items()])

    def run(self, case: Case) -> Bill:
        queues = [f"{uuid.uuid4().hex[:6]}-{number:03}" for number in range(case.load.queues_a_batch)]
        first = self.begin(queues)
        lanes = [case.lane(queue, first) for queue in queues]
        messages = [message for row in zip(*lanes, strict=True) for message in row]
        bill = Bill()
        for start in range(0, len(messages), case.load.batch):
            with self.charges.measure() as charged:
                advances = self.put(messages[start : start + case.load.batch])
            bill.put.append(charged)
            with self.charges.measure() as charged:
                self.wake({advance.queue: advance.new for advance in advances if advance.moved})
            bill.delivered.append(charged)
        assert {self.sorter.position(queue) for queue in queues} == {first + len(lanes[0]) - 1}
        return bill

    def put(self, messages: list[Message]) -> list[Any]:
        return [self.sorter.put(messages[0])] if len(messages) == 1 else self.sorter.put_many(messages).advances

    def sweep(self, *, everything: bool = False) -> Charged:
        sweeper = Sweeper(
            self.sorter,
            lagging=LagWatch(
                self.sorter.stores.control(self.control_table).subscriptions,
                self.sorter.stores.control(self.control_table).checkpoints,
                self.sorter.stores.cursors,
            ),
        )
        with self.charges.measure() as charged:
            done = sweeper.sweep_all() if everything else sweeper.sweep()
        assert not done.failed
        return charged


@pytest.fixture(scope="module")
def bench(ministack: MiniStack) -> Iterator[Bench]:
    bench = Bench(ministack)
    yield bench
    bench.client.close()


@pytest.fixture
def fresh(ministack: MiniStack) -> Iterator[Bench]:
    bench = Bench(ministack)
    yield bench
    bench.client.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_formula_gives_what_is_measured(bench: Bench, case: Case) -> None:
    for measured, formula in both(bench, case):
        assert measured == pytest.approx(formula, rel=case.tolerance)


@pytest.mark.parametrize("case", AT_MOST, ids=lambda case: case.name)
def test_what_is_measured_is_at_most_what_the_formula_gives(bench: Bench, case: Case) -> None:
    for measured, formula in both(bench, case):
        assert all(figure <= formula[name] for name, figure in measured.items()), (measured, formula)


@pytest.mark.parametrize("queues", [1, 30, 130])
def test_a_sweep_of_healthy_queues_costs_what_the_formula_says(fresh: Bench, queues: int) -> None:
    begun(fresh, queues)
    fresh.sweep()
    often, everything = fresh.sweep(), fresh.sweep(everything=True)
    # So many messages that each queue moves between two sweeps.
    load = Load(MANY, queues=queues)
    month = monthly(load)["sweep"]
    measured = worth(often) * load.sweeps + worth(everything) * HOURS
    assert measured.requests == pytest.approx(month.requests, rel=EXACT)
    # A row is about 100 bytes: what a scan goes through is rounded up to 4 KB.
    assert measured.read_units == pytest.approx(month.read_units, rel=SCANNED)
    assert measured.write_units == month.write_units == load.sweeps + HOURS


@pytest.mark.parametrize("queues", [30, 510])
def test_looks_at_idle_and_active_queues_cost_what_the_formula_says(fresh: Bench, queues: int) -> None:
    names = begun(fresh, queues)
    # The pass over all queues, in two parts at most.
    for _ in range(2):
        fresh.sweep()
    formula = WAITING + sweeps.watch(queues, 1, queues, queues)
    assert numbers(worth(fresh.sweep())) == pytest.approx(numbers(formula), rel=SCANNED)
    for _ in range(2):
        fresh.clock.move(OVERLAP + 1)
        idle = worth(fresh.sweep())
    recent = 5
    fresh.sorter.put_many([message(name, 2, 300) for name in names[:recent]])
    fresh.wake(dict.fromkeys(names[:recent], 2))
    active = worth(fresh.sweep())
    for measured, moved in ((idle, 0), (active, recent)):
        formula = WAITING + sweeps.watch(queues, 1, moved, queues)
        assert numbers(measured) == pytest.approx(numbers(formula), rel=SCANNED)


def test_a_queue_costs_two_write_units_an_hour_to_be_listed_as_active(fresh: Bench) -> None:
    fresh.put([message("q", 0, 300)])
    charged = []
    for seq in range(1, 40):
        fresh.clock.move(360)
        with fresh.charges.measure() as one:
            fresh.put([message("q", seq, 300)])
        charged.append(one.write_units)
    assert sorted(set(charged)) == [2, 2 + sweeps.ANOTHER_HOUR.write_units]
    assert charged.count(4) in {3, 4}, "in four hours"


def begun(bench: Bench, queues: int) -> list[str]:
    """Queues that are released and consumed, with names as long as a UUID."""
    names = [f"queue-{number:030}" for number in range(queues)]
    bench.sorter.put_many([message(name, seq, 300) for name in names for seq in range(2)])
    bench.wake(dict.fromkeys(names, 1))
    return names


def test_a_mark_costs_what_the_formula_says(fresh: Bench) -> None:
    fresh.put([message("q", 0, 300), message("q", 1, 300)])
    fresh.wake({"q": 1})
    for _ in range(2):
        before = fresh.sweep()
    with fresh.charges.measure() as waiting:
        fresh.sorter.put(message("q", 3, 300))
    with fresh.charges.measure() as marked:
        fresh.sorter.put(message("q", 4, 300))
    assert worth(waiting) + worth(marked) * -1 == MARK
    fresh.sorter.put(message("q", 2, 300))
    fresh.wake({"q": 4})
    assert worth(fresh.sweep()) + worth(before) * -1 == MARK_SWEPT
    with fresh.charges.measure() as idle:
        fresh.wake({"q": 4})
    assert worth(idle) == IDLE_WAKE


@pytest.mark.parametrize("batch", [1, 100])
def test_two_writers_in_turns_cost_a_request_and_two_read_units_more(fresh: Bench, batch: int) -> None:
    tables = {"items_table": fresh.items_table, "cursor_table": f"cursor-{fresh.name}"}
    writers = [fresh.sorter, StreamSorter(**tables, client=fresh.client, clock=fresh.clock)]
    for seq, writer in enumerate(writers):
        writer.put(message("q", seq, 300))
    steps = monthly(Load(MANY, batch))
    alone = (steps["enqueue"] + steps["advance"]) * (batch / MANY)
    for turn in range(4):
        messages = [message("q", 2 + turn * batch + number, 300) for number in range(batch)]
        with fresh.charges.measure() as charged:
            writers[turn % 2].put_many(messages)
        assert numbers(worth(charged)) == pytest.approx(numbers(alone + Work(1, 0, 2)))


def test_the_numbers_of_the_formula_are_those_of_the_code() -> None:
    assert (MAX_WRITES, Settings().window) == (cost_formula.STATEMENTS_A_CALL, cost_formula.WINDOW)


def both(bench: Bench, case: Case) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """What a message costs as measured, and by the formula: first to put it, then to deliver it."""
    bill = bench.run(case)
    steps = monthly(case.load)
    for charged, formula in ((bill.put, steps["enqueue"] + steps["advance"]), (bill.delivered, steps["process"])):
        measured = per_message(sum(map(worth, charged), Work()), case.count)
        expected = per_message(formula, MANY)
        print(f"{case.name}: measured {measured}, formula {expected}")
        yield measured, expected


def message(queue: str, seq: int, size: int) -> Message:
    """A message of so many bytes as DynamoDB counts them: names, values, and half a byte a digit and one."""
    rest = len("queue") + len(queue) + len("seq") + (len(str(seq).strip("0")) + 1) // 2 + 1 + len("body")
    return {"queue": queue, "seq": seq, "body": "x" * (size - rest)}


def order(length: int, block: int, rng: random.Random) -> list[int]:
    """Seqs in blocks, each shuffled; short blocks in every order there is, in turns."""
    every = itertools.cycle(itertools.permutations(range(block))) if block <= 4 else None
    seqs: list[int] = []
    for start in range(0, length, block):
        part = next(every) if every else rng.sample(range(block), block)
        seqs += [start + seq for seq in part]
    return seqs


def worth(charged: Charged) -> Work:
    return Work(charged.requests, charged.write_units, charged.read_units)


def numbers(work: Work) -> tuple[float, float, float]:
    return work.requests, work.write_units, work.read_units


def per_message(work: Work, messages: float) -> dict[str, float]:
    return {
        "requests": round(work.requests / messages, 5),
        "write units": round(work.write_units / messages, 5),
        "read units": round(work.read_units / messages, 5),
    }
