"""Parts that are added to the plans of seeds: trims, losses, withdrawals, little time; consumers and their upkeep."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from stream_sort.consume.context import DeliveryTerms
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.testing.simulation.consumers import CONTROL, ConsumerPlan
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.workload import ConsumptionPlan, draw_plan, message_of, put_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.testing.simulation.workload import Failing, WorkloadPlan

    Fields = Callable[[str, int], dict[str, Any]]

NAMES = ("billing", "search")
BODIES = ("first", "other")
# How long a put_many may take, where a call takes some seconds at most.
SECONDS = (0.0, 1.0, 5.0, 10.0, 20.0, 40.0)


def plan_writers(rng: Random, seed: int) -> WorkloadPlan:
    """Draw the plan of a seed without consumers.

    The later parts have random numbers of their own, so that they change nothing in other seeds.
    """
    plan = _with_trims(rng, draw_plan(rng))
    plan = _with_little_time(_part_rng("little time", seed), plan)
    plan = _with_losses(_part_rng("losses", seed), plan)
    if seed % 4 == 3:  # noqa: PLR2004  # a share of the seeds
        plan = _with_withdrawals(_part_rng("withdrawals", seed), plan)
    if seed % 8 == 5:  # noqa: PLR2004  # a share of the seeds
        plan = _with_a_stray_given_up(_part_rng("strays", seed), plan)
    return plan


def plan_with_consumers(rng: Random, seed: int, fields: Fields | None = None) -> WorkloadPlan:
    """Draw the plan of a seed with consumers; `fields` gives its messages what a user's handler wants.

    The later parts have random numbers of their own, so that they change nothing in other seeds.
    """
    plan = _with_consumers(rng, replace(draw_plan(rng), trims=False), fields)
    outages = _draw_failing(_part_rng("outages of", seed), plan, plan.consumption.consumers, (0, 0, 1, 2))
    bugs = _add_upkeep(_part_rng("upkeep of", seed), plan)
    return replace(plan, consumption=replace(plan.consumption, outages=outages, bugs=bugs))


def _part_rng(part: str, seed: int) -> Random:
    """Return random numbers that only one part of a seed's plan draws from."""
    return Random(f"{part} {seed}")  # noqa: S311  # repeatable, not secret


def _with_trims(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add consumers, trims, and messages that come again: not where others delete, too."""
    if plan.trims or rng.random() < 0.4:  # noqa: PLR2004  # a share of the seeds
        return plan
    for queue in plan.queues:
        seqs = plan.seqs_put(queue)
        if not seqs:
            continue
        added = [Operation("trim", queue, argument=rng.choice(seqs)) for _ in range(rng.randint(1, 5))]
        for name in NAMES[: rng.choice((0, 1, 1, 2))]:
            added += [Operation("consume", queue, argument=name) for _ in range(rng.randint(1, 6))]
        added += [put_of(queue, rng.choice(seqs), rng.choice(BODIES)) for _ in range(rng.randint(0, 3))]
        for operation in added:
            _insert_late(rng, plan, operation)
    return replace(plan, reads=True)


def _with_little_time(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Make each put a put_many whose time runs out anywhere; most of the seeds stay as they are."""
    if rng.random() < 0.8:  # noqa: PLR2004  # a share of the seeds
        return plan

    def hurried(operation: Operation) -> Operation:
        if operation.name not in {"put", "put_many"} or rng.random() < 0.3:  # noqa: PLR2004  # as above
            return operation
        return Operation("put_many", messages=operation.messages, argument=rng.choice(SECONDS))

    tasks = tuple([hurried(operation) for operation in line] for line in plan.tasks)
    return replace(plan, tasks=tasks, hurries=True)


def _with_losses(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add a queue in which every second message is lost, in a share of those without trims."""
    if plan.reads or plan.trims or rng.random() < 0.7:  # noqa: PLR2004  # a share of the seeds
        return plan
    first = plan.options.first_seq + 1
    seqs = [first + 2 * number for number in range(rng.randint(2, 6))]
    rng.shuffle(seqs)
    added = [put_of("lossy", seq) for seq in seqs]
    added.append(Operation("set_policy", "lossy", argument=rng.choice((GapPolicy(1.0), GapPolicy(20.0)))))
    added += [Operation("sweep_all") for _ in range(rng.randint(0, 2))]
    _insert(rng, plan, added)
    return replace(plan, queues=(*plan.queues, "lossy"))


def _with_withdrawals(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add withdrawals, and messages that come again after them."""
    for queue in plan.queues:
        put = plan.seqs_put(queue)
        if not put:
            continue
        # Rather the high ones: they wait the longest.
        seqs = [max(rng.choice(put), rng.choice(put)) for _ in range(rng.randint(1, 4))]
        added = [Operation("withdraw", queue, argument=seq) for seq in seqs]
        added += [put_of(queue, rng.choice(seqs), rng.choice(BODIES)) for _ in range(rng.randint(0, 2))]
        _insert(rng, plan, added)
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


def _with_a_stray_given_up(rng: Random, plan: WorkloadPlan) -> WorkloadPlan:
    """Add a queue whose one stray makes a gap due that a sweep gives up while others withdraw it."""
    first = plan.options.first_seq
    stray = first + rng.randint(3, 5)
    messages = (message_of("stray", first), message_of("stray", stray))
    policy = Operation("set_policy", "stray", argument=GapPolicy(0.0))
    plan.tasks[0][:0] = [Operation("put_many", messages=messages), policy, Operation("sweep_all")]
    for tasks in plan.tasks[1:]:
        tasks[:0] = [Operation("withdraw", "stray", argument=stray) for _ in range(rng.randint(2, 4))]
    return replace(plan, queues=(*plan.queues, "stray"))


def _with_consumers(rng: Random, plan: WorkloadPlan, fields: Fields | None) -> WorkloadPlan:
    """Add consumers, and what is asked of them by hand."""
    consumers = tuple(_draw_consumer(rng, name) for name in NAMES[: rng.choice((1, 1, 2))])
    for tasks in plan.tasks:
        tasks[:] = [_with_fields(_watching(operation), fields) for operation in tasks]
    for consumer in consumers:
        _insert(rng, plan, _by_hand(rng, consumer, plan))
    consumption = ConsumptionPlan(
        consumers=consumers,
        sizes=tuple(rng.choice((1, 2, 5)) for _ in consumers),
        retries=rng.choice((0, 1, 5)),
        bisects=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        timeout_rate=rng.choice((0.0, 0.0, 0.03, 0.1)),
        loses_stream=rng.random() < 0.2,  # noqa: PLR2004  # a share of the seeds
        transactional=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        poison=_draw_failing(rng, plan, consumers, (0, 0, 1, 3)),
        deadly=_draw_failing(rng, plan, consumers, (0, 0, 0, 1)),
    )
    return replace(plan, consumption=consumption)


def _add_upkeep(rng: Random, plan: WorkloadPlan) -> dict[str, int]:
    """Add trims, and consumers that are retired, to a plan; return in which queues our own code fails, how often.

    A retired consumer may come back behind a trim, and is then told so: only a part of the seeds has both.
    """
    consumers = plan.consumption.consumers
    trims, retires = rng.random() < 0.4, rng.random() < 0.3  # noqa: PLR2004  # shares of the seeds
    for queue in plan.queues if trims else ():
        seqs = plan.seqs_put(queue)
        for _ in range(rng.randint(1, 4) if seqs else 0):
            # By a process that has just caught up, while another one may be asleep in the middle of it.
            runs = [Operation("catch_up", queue, consumer=consumer) for consumer in consumers]
            _insert_late(rng, plan, *runs, Operation("trim", queue, argument=rng.choice((None, None, *seqs))))
            _insert_late(rng, plan, *rng.sample(runs, 1))
    for consumer in consumers if retires else ():
        for name in rng.choices(("retire", "introduce"), k=rng.randint(1, 4)):
            _insert_late(rng, plan, Operation(name, consumer=consumer))
    return {queue: rng.randint(1, 3) for queue in plan.queues if rng.random() < 0.1}  # noqa: PLR2004  # as above


def _draw_consumer(rng: Random, name: str) -> ConsumerPlan:
    terms = DeliveryTerms(
        name,
        batch_size=rng.choice((1, 2, 3, 100)),
        max_attempts=rng.choice((1, 2, 3)),
        dead_letters=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        start=rng.choice(("earliest", "earliest", "latest", "2")),
    )
    return ConsumerPlan(terms, rng.random() < 0.5, rng.choice((1, 3, 100)))  # noqa: PLR2004  # as above


def _watching(operation: Operation) -> Operation:
    """Let a sweep watch over the consumers, too."""
    return replace(operation, argument=CONTROL) if operation.name.startswith("sweep") else operation


def _with_fields(operation: Operation, fields: Fields | None) -> Operation:
    if fields is None or not operation.messages:
        return operation
    given = [{**fields(message["queue"], message["seq"]), **message} for message in operation.messages]
    return replace(operation, messages=tuple(given))


def _by_hand(rng: Random, consumer: ConsumerPlan, plan: WorkloadPlan) -> list[Operation]:
    queue = rng.choice(plan.queues)
    seq = plan.options.first_seq + rng.randint(0, 4)
    operations = [
        (0.2, Operation("catch_up", queue, consumer=consumer)),
        (0.2, Operation("redrive", queue, consumer=consumer)),
        (0.1, Operation("discard", queue, argument=seq, consumer=consumer)),
    ]
    return [operation for chance, operation in operations if rng.random() < chance]


def _draw_failing(
    rng: Random, plan: WorkloadPlan, consumers: tuple[ConsumerPlan, ...], counts: tuple[int, ...]
) -> Failing:
    """Draw some messages for each consumer, and how often each of them fails."""
    seqs = [(message["queue"], message["seq"]) for message in plan.messages()]
    failing = {}
    for consumer in consumers:
        for queue, seq in rng.sample(seqs, min(len(seqs), rng.choice(counts))):
            failing[(consumer.terms.name, queue, seq)] = rng.choice((1, 2, 4, math.inf))
    return failing


def _insert(rng: Random, plan: WorkloadPlan, operations: Iterable[Operation]) -> None:
    """Put each operation anywhere into somebody's tasks."""
    for operation in operations:
        tasks = rng.choice(plan.tasks)
        tasks.insert(rng.randint(0, len(tasks)), operation)


def _insert_late(rng: Random, plan: WorkloadPlan, *operations: Operation) -> None:
    """Put operations into somebody's tasks, rather late than early: before that there is nothing to trim."""
    tasks = rng.choice(plan.tasks)
    at = max(rng.randint(0, len(tasks)), rng.randint(0, len(tasks)))
    tasks[at:at] = operations
