"""The plan of a seed: drawn at random, small enough that everything collides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.model.gap_policy import GapPolicy
from stream_sort.release.advancer import Limits
from stream_sort.sorter import Options
from stream_sort.testing.simulation.operations import Operation

if TYPE_CHECKING:
    from random import Random

    from stream_sort.testing.simulation.consumers import ConsumerPlan

PATIENCE = (0.0, 0.0, 0.5, 0.9)
SPEEDS = (0.05, 0.3, 1.0, 1.0)
KILLS = ("killed before", "killed after")
REPEATS = ("sent again",)
ERRORS = ("reply lost", "throttled")
FAULTS = (KILLS + REPEATS + ERRORS, KILLS + REPEATS + ERRORS, KILLS, REPEATS)
FAULT_RATES = (0.0, 0.02, 0.05, 0.15, 0.3)
# How often a message fails, by consumer, queue and seq.
Failing = dict[tuple[str, str, int], float]


@dataclass(frozen=True, slots=True)
class ConsumptionPlan:
    """The consumers of a seed, none by default, and what befalls them.

    `sizes` are the batch sizes of their event source mappings. `loses_stream` is a day of records lost,
    `timeout_rate` how likely a call outlives its run. At the messages of `poison`, `deadly` and `outages` the handler
    fails, dies, or finds what it needs out of order, so often; in the queues of `bugs` our own code fails.
    """

    consumers: tuple[ConsumerPlan, ...] = ()
    sizes: tuple[int, ...] = ()
    retries: int = 0
    bisects: bool = False
    timeout_rate: float = 0.0
    loses_stream: bool = False
    transactional: bool = False
    poison: Failing = field(default_factory=dict)
    deadly: Failing = field(default_factory=dict)
    outages: Failing = field(default_factory=dict)
    bugs: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """A seed's settings, and what each writer has to do.

    `speeds` are how often each gets its turn, `patience` how likely it keeps it: many mistakes show only
    when one process sleeps at the wrong call for as long as another one needs for everything.
    """

    options: Options
    queues: tuple[str, ...]
    tasks: tuple[list[Operation], ...] = ()
    speeds: tuple[float, ...] = ()
    patience: float = 0.0
    faults: tuple[str, ...] = ()
    fault_rate: float = 0.0
    restart_rate: float = 0.0
    trims: bool = False
    loses: bool = False
    reads: bool = False
    hurries: bool = False
    consumption: ConsumptionPlan = field(default_factory=ConsumptionPlan)

    def messages(self) -> list[dict[str, Any]]:
        """Return all messages that are put."""
        return [message for tasks in self.tasks for operation in tasks for message in operation.messages]

    def seqs_put(self, queue: str) -> list[int]:
        """Return the seqs of all messages that are put into a queue."""
        return [message["seq"] for message in self.messages() if message["queue"] == queue]


def message_of(queue: str, seq: int, body: str = "first") -> dict[str, Any]:
    """Return a message as all of a simulation are."""
    return {"queue": queue, "seq": seq, "body": body}


def put_of(queue: str, seq: int, body: str = "first") -> Operation:
    """Return a put of one message."""
    return Operation("put", messages=(message_of(queue, seq, body),))


def draw_plan(rng: Random) -> WorkloadPlan:
    """Draw what every seed has: queues, writers and their messages."""
    options = _draw_options(rng)
    queues = tuple("abc"[: rng.choice((1, 1, 2, 3))])
    # A busy plan heals its own mistakes, because whoever comes later looks again; so one plan in three is short.
    busy = rng.random() < 0.65  # noqa: PLR2004  # two in three
    operations = [operation for queue in queues for operation in _draw_lane(rng, queue, options.first_seq, busy=busy)]
    singles = _mingle(rng, operations)
    # Few writers for a short plan: one that does a single thing remembers nothing that could be stale.
    writers = rng.randint(2, 4) if busy else 2
    tasks: tuple[list[Operation], ...] = tuple([] for _ in range(writers))
    for operation in _gather(rng, singles):
        rng.choice(tasks).append(operation)
    lossy = rng.random()
    return WorkloadPlan(
        options=options,
        queues=queues,
        tasks=tasks,
        speeds=tuple(rng.choice(SPEEDS) for _ in tasks),
        patience=rng.choice(PATIENCE),
        faults=rng.choice(FAULTS),
        fault_rate=rng.choice(FAULT_RATES),
        restart_rate=rng.choice((0.0, 0.0, 0.1)),
        trims=lossy < 0.4,  # noqa: PLR2004  # these and the next: shares of the seeds
        loses=0.3 < lossy < 0.5,  # noqa: PLR2004
    )


def _draw_options(rng: Random) -> Options:
    limits = Limits(max_advance=rng.choice((1, 2, 3, 50)), max_page=rng.choice((2, 3, 50)), first_page_bytes=1)
    return Options(
        first_seq=rng.choice((0, 0, 1, -2)),
        raise_conflicts=rng.random() < 0.2,  # noqa: PLR2004  # a share of the seeds
        gap_policy=rng.choice((GapPolicy.WAIT, GapPolicy(0.0), GapPolicy(5.0))),
        limits=limits,
        window=rng.choice((1, 2, 5)),
        in_flight=1,
    )


def _draw_lane(rng: Random, queue: str, first_seq: int, *, busy: bool) -> list[Operation]:
    """Draw messages of one queue with gaps, repeats and conflicts, and what an operator does to it."""
    start = first_seq
    operations = []
    if rng.random() < (0.25 if busy else 0.1):  # a share of the queues
        start += rng.choice((-1, 1, 3))
        operations.append(Operation("open", queue, argument=start))
    end = start + rng.randint(1, 8 if busy else 5)
    extras, missing = (1.0, None) if busy else (0.1, rng.choice((None, start, end - 2, end - 2)))
    for seq in range(start, end):
        first = 0.0 if seq == missing else 0.85 if busy else 1.0
        for body, chance in (("first", first), ("first", 0.3 * extras), ("other", 0.1 * extras)):
            if rng.random() < chance:
                operations.append(put_of(queue, seq, body))
    for name, chance in (("skip", 0.4), ("set_policy", 0.3), ("advance", 0.3)):
        if rng.random() < chance * extras:
            operations.append(Operation(name, queue, argument=_argument(rng, name, range(start, end + 1))))
    return operations


def _argument(rng: Random, name: str, seqs: range) -> Any:
    if name == "skip":
        return tuple(rng.sample(seqs, rng.randint(1, min(3, len(seqs)))))
    return rng.choice((GapPolicy.WAIT, GapPolicy(1.0), GapPolicy(20.0))) if name == "set_policy" else None


def _mingle(rng: Random, operations: list[Operation]) -> list[Operation]:
    """Put operations out of order: every one some way from its place, or anywhere."""
    spread = rng.choice((2, 5, 100))
    sweeps = [Operation(rng.choice(("sweep", "sweep", "sweep_all"))) for _ in range(rng.choice((0, 0, 1, 3)))]
    places = {id(operation): index + rng.uniform(0, spread) for index, operation in enumerate(operations)}
    places.update({id(sweep): rng.uniform(0, len(operations)) for sweep in sweeps})
    return sorted([*operations, *sweeps], key=lambda operation: places[id(operation)])


def _gather(rng: Random, operations: list[Operation]) -> list[Operation]:
    """Join some neighbouring puts to put_many."""
    gathered: list[Operation] = []
    share = rng.choice((0.0, 0.3, 0.7))
    for operation in operations:
        before = gathered[-1] if gathered else None
        if before and before.messages and operation.messages and rng.random() < share:
            gathered[-1] = Operation("put_many", messages=before.messages + operation.messages)
        else:
            gathered.append(operation)
    return gathered
