"""What a seed's processes are asked to do: drawn at random, small enough that everything collides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.policy import GapPolicy
from stream_sort.release.advancer import Limits
from stream_sort.sorter import Options
from stream_sort.testing.simulation.operations import Operation

if TYPE_CHECKING:
    from random import Random

PATIENCE = (0.0, 0.0, 0.5, 0.9)
SPEEDS = (0.05, 0.3, 1.0, 1.0)
KILLS = ("killed before", "killed after")
REPEATS = ("sent again",)
ERRORS = ("reply lost", "throttled")
FAULTS = (KILLS + REPEATS + ERRORS, KILLS + REPEATS + ERRORS, KILLS, REPEATS)
FAULT_RATES = (0.0, 0.02, 0.05, 0.15, 0.3)
# How long a put_many may take, where a call takes some seconds at most.
SECONDS = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """A seed's settings, and what each process has to do.

    `speeds` are how often each gets its turn, `patience` how likely it keeps it: many mistakes show only
    when one process sleeps at the wrong call for as long as another one needs for everything.
    """

    options: Options
    queues: tuple[str, ...]
    tasks: tuple[list[Operation], ...]
    speeds: tuple[float, ...]
    patience: float
    faults: tuple[str, ...]
    fault_rate: float
    restart_rate: float
    trims: bool
    loses: bool
    reads: bool = False
    hurries: bool = False


def draw_plan(rng: Random) -> WorkloadPlan:
    """The plan of a seed."""
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


def with_trims(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with consumers, trims, and messages that come again: not where others delete, too."""
    if plan.trims or rng.random() < 0.4:  # noqa: PLR2004  # a share of the seeds
        return plan
    for queue in plan.queues:
        put = [
            message for tasks in plan.tasks for one in tasks for message in one.messages if message["queue"] == queue
        ]
        if not put:
            continue
        seqs = [message["seq"] for message in put]
        added = [Operation("trim", queue, argument=rng.choice(seqs)) for _ in range(rng.randint(1, 5))]
        for name in ("billing", "search")[: rng.choice((0, 1, 1, 2))]:
            added += [Operation("consume", queue, argument=name) for _ in range(rng.randint(1, 6))]
        for _ in range(rng.randint(0, 3)):
            added.append(
                Operation("put", messages=(_message(queue, rng.choice(seqs), rng.choice(("first", "other"))),))
            )
        for operation in added:
            tasks = rng.choice(plan.tasks)
            # Rather late than early: before anything is released there is nothing to trim.
            tasks.insert(max(rng.randint(0, len(tasks)), rng.randint(0, len(tasks))), operation)
    return replace(plan, reads=True)


def with_little_time(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan where each put is a put_many whose time runs out anywhere; most of the seeds stay as they are."""
    if rng.random() < 0.8:  # noqa: PLR2004  # a share of the seeds
        return plan

    def hurried(operation: Operation) -> Operation:
        if operation.name not in {"put", "put_many"} or rng.random() < 0.3:  # noqa: PLR2004  # as above
            return operation
        return Operation("put_many", messages=operation.messages, argument=rng.choice(SECONDS))

    tasks = tuple([hurried(operation) for operation in line] for line in plan.tasks)
    return replace(plan, tasks=tasks, hurries=True)


def with_losses(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with a queue in which every second message is lost, in a share of those without trims."""
    if plan.reads or plan.trims or rng.random() < 0.7:  # noqa: PLR2004  # a share of the seeds
        return plan
    first = plan.options.first_seq + 1
    seqs = [first + 2 * number for number in range(rng.randint(2, 6))]
    rng.shuffle(seqs)
    added = [Operation("put", messages=(_message("lossy", seq, "first"),)) for seq in seqs]
    added.append(Operation("set_policy", "lossy", argument=rng.choice((GapPolicy(1.0), GapPolicy(20.0)))))
    added += [Operation("sweep_all") for _ in range(rng.randint(0, 2))]
    for operation in added:
        tasks = rng.choice(plan.tasks)
        tasks.insert(rng.randint(0, len(tasks)), operation)
    return replace(plan, queues=(*plan.queues, "lossy"))


def with_withdrawals(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with withdrawals, and with messages that come again after them."""
    for queue in plan.queues:
        put = [one["seq"] for tasks in plan.tasks for task in tasks for one in task.messages if one["queue"] == queue]
        if not put:
            continue
        # Rather the high ones: they wait the longest.
        seqs = [max(rng.choice(put), rng.choice(put)) for _ in range(rng.randint(1, 4))]
        added = [Operation("withdraw", queue, argument=seq) for seq in seqs]
        for _ in range(rng.randint(0, 2)):
            message = _message(queue, rng.choice(seqs), rng.choice(("first", "other")))
            added.append(Operation("put", messages=(message,)))
        for operation in added:
            tasks = rng.choice(plan.tasks)
            tasks.insert(rng.randint(0, len(tasks)), operation)
    return _with_strays(rng, plan) if rng.random() < 0.7 else plan  # noqa: PLR2004  # a share of the seeds


def _with_strays(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with a queue of one batch: each of its messages is beyond a gap until the one before is stored."""
    first, length = plan.options.first_seq, rng.randint(2, 5)
    seqs = rng.sample(range(first, first + length), length)
    plan.tasks[0].insert(0, Operation("put_many", messages=tuple(_message("w", seq, "first") for seq in seqs)))
    for tasks in plan.tasks[1:]:
        for _ in range(rng.randint(1, 3)):
            tasks.insert(0, Operation("withdraw", "w", argument=rng.choice(seqs)))
    return replace(plan, queues=(*plan.queues, "w"))


def with_a_stray_given_up(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """The same plan with a queue whose one stray makes a gap due that a sweep gives up while others withdraw it."""
    first = plan.options.first_seq
    stray = first + rng.randint(3, 5)
    messages = (_message("stray", first, "first"), _message("stray", stray, "first"))
    policy = Operation("set_policy", "stray", argument=GapPolicy(0.0))
    plan.tasks[0][:0] = [Operation("put_many", messages=messages), policy, Operation("sweep_all")]
    for tasks in plan.tasks[1:]:
        tasks[:0] = [Operation("withdraw", "stray", argument=stray) for _ in range(rng.randint(2, 4))]
    return replace(plan, queues=(*plan.queues, "stray"))


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
    """Messages of one queue with gaps, repeats and conflicts, and what an operator does to it."""
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
                operations.append(Operation("put", messages=(_message(queue, seq, body),)))
    for name, chance in (("skip", 0.4), ("set_policy", 0.3), ("advance", 0.3)):
        if rng.random() < chance * extras:
            operations.append(Operation(name, queue, argument=_argument(rng, name, range(start, end + 1))))
    return operations


def _argument(rng: Random, name: str, seqs: range) -> Any:
    if name == "skip":
        return tuple(rng.sample(seqs, rng.randint(1, min(3, len(seqs)))))
    return rng.choice((GapPolicy.WAIT, GapPolicy(1.0), GapPolicy(20.0))) if name == "set_policy" else None


def _mingle(rng: Random, operations: list[Operation]) -> list[Operation]:
    """Out of order: every operation some way from its place, or anywhere."""
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


def _message(queue: str, seq: int, body: str) -> dict[str, Any]:
    return {"queue": queue, "seq": seq, "body": body}
