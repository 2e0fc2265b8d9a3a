"""Parts that are added to the plans of some seeds: trims, losses, withdrawals, calls with little time."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from stream_sort.model.policy import GapPolicy
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.workload import draw_plan, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.testing.simulation.workload import WorkloadPlan

# How long a put_many may take, where a call takes some seconds at most.
SECONDS = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)


def plan_writers(rng: Random, seed: int) -> WorkloadPlan:
    """Draw the plan of a seed without consumers.

    The later parts have random numbers of their own, so that they change nothing in other seeds.
    """
    plan = with_trims(rng, draw_plan(rng))
    plan = with_little_time(part_rng("little time", seed), plan)
    plan = with_losses(part_rng("losses", seed), plan)
    if seed % 4 == 3:  # noqa: PLR2004  # a share of the seeds
        plan = with_withdrawals(part_rng("withdrawals", seed), plan)
    if seed % 8 == 5:  # noqa: PLR2004  # a share of the seeds
        plan = with_a_stray_given_up(part_rng("strays", seed), plan)
    return plan


def part_rng(part: str, seed: int) -> Random:
    """Return random numbers that only one part of a seed's plan draws from."""
    return Random(f"{part} {seed}")  # noqa: S311  # repeatable, not secret


def with_trims(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add consumers, trims, and messages that come again: not where others delete, too."""
    if plan.trims or rng.random() < 0.4:  # noqa: PLR2004  # a share of the seeds
        return plan
    for queue in plan.queues:
        seqs = plan.seqs_put(queue)
        if not seqs:
            continue
        added = [Operation("trim", queue, argument=rng.choice(seqs)) for _ in range(rng.randint(1, 5))]
        for name in ("billing", "search")[: rng.choice((0, 1, 1, 2))]:
            added += [Operation("consume", queue, argument=name) for _ in range(rng.randint(1, 6))]
        for _ in range(rng.randint(0, 3)):
            added.append(
                Operation("put", messages=(message_of(queue, rng.choice(seqs), rng.choice(("first", "other"))),))
            )
        for operation in added:
            insert_late(rng, plan, operation)
    return replace(plan, reads=True)


def with_little_time(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Make each put a put_many whose time runs out anywhere; most of the seeds stay as they are."""
    if rng.random() < 0.8:  # noqa: PLR2004  # a share of the seeds
        return plan

    def hurried(operation: Operation) -> Operation:
        if operation.name not in {"put", "put_many"} or rng.random() < 0.3:  # noqa: PLR2004  # as above
            return operation
        return Operation("put_many", messages=operation.messages, argument=rng.choice(SECONDS))

    tasks = tuple([hurried(operation) for operation in line] for line in plan.tasks)
    return replace(plan, tasks=tasks, hurries=True)


def with_losses(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add a queue in which every second message is lost, in a share of those without trims."""
    if plan.reads or plan.trims or rng.random() < 0.7:  # noqa: PLR2004  # a share of the seeds
        return plan
    first = plan.options.first_seq + 1
    seqs = [first + 2 * number for number in range(rng.randint(2, 6))]
    rng.shuffle(seqs)
    added = [Operation("put", messages=(message_of("lossy", seq),)) for seq in seqs]
    added.append(Operation("set_policy", "lossy", argument=rng.choice((GapPolicy(1.0), GapPolicy(20.0)))))
    added += [Operation("sweep_all") for _ in range(rng.randint(0, 2))]
    insert(rng, plan, added)
    return replace(plan, queues=(*plan.queues, "lossy"))


def with_withdrawals(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add withdrawals, and messages that come again after them."""
    for queue in plan.queues:
        put = plan.seqs_put(queue)
        if not put:
            continue
        # Rather the high ones: they wait the longest.
        seqs = [max(rng.choice(put), rng.choice(put)) for _ in range(rng.randint(1, 4))]
        added = [Operation("withdraw", queue, argument=seq) for seq in seqs]
        for _ in range(rng.randint(0, 2)):
            message = message_of(queue, rng.choice(seqs), rng.choice(("first", "other")))
            added.append(Operation("put", messages=(message,)))
        insert(rng, plan, added)
    return _with_strays(rng, plan) if rng.random() < 0.7 else plan  # noqa: PLR2004  # a share of the seeds


def _with_strays(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add a queue of one batch: each of its messages is beyond a gap until the one before is stored."""
    first, length = plan.options.first_seq, rng.randint(2, 5)
    seqs = rng.sample(range(first, first + length), length)
    plan.tasks[0].insert(0, Operation("put_many", messages=tuple(message_of("w", seq) for seq in seqs)))
    for tasks in plan.tasks[1:]:
        for _ in range(rng.randint(1, 3)):
            tasks.insert(0, Operation("withdraw", "w", argument=rng.choice(seqs)))
    return replace(plan, queues=(*plan.queues, "w"))


def with_a_stray_given_up(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add a queue whose one stray makes a gap due that a sweep gives up while others withdraw it."""
    first = plan.options.first_seq
    stray = first + rng.randint(3, 5)
    messages = (message_of("stray", first), message_of("stray", stray))
    policy = Operation("set_policy", "stray", argument=GapPolicy(0.0))
    plan.tasks[0][:0] = [Operation("put_many", messages=messages), policy, Operation("sweep_all")]
    for tasks in plan.tasks[1:]:
        tasks[:0] = [Operation("withdraw", "stray", argument=stray) for _ in range(rng.randint(2, 4))]
    return replace(plan, queues=(*plan.queues, "stray"))


def insert(rng: Random, plan: WorkloadPlan, operations: Iterable[Operation]) -> None:
    """Put each operation anywhere into somebody's tasks."""
    for operation in operations:
        tasks = rng.choice(plan.tasks)
        tasks.insert(rng.randint(0, len(tasks)), operation)


def insert_late(rng: Random, plan: WorkloadPlan, *operations: Operation) -> None:
    """Put operations into somebody's tasks, rather late than early: before that there is nothing to trim."""
    tasks = rng.choice(plan.tasks)
    at = max(rng.randint(0, len(tasks)), rng.randint(0, len(tasks)))
    tasks[at:at] = operations
