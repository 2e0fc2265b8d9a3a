"""Parts that make a plan one with consumers: who they are, what they are asked by hand, and what befalls them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.consume.context import DeliveryTerms
from stream_sort.testing.simulation.consumers import CONTROL, ConsumerPlan
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.workload import ConsumptionPlan, draw_plan
from stream_sort.testing.simulation.writer_parts import insert, insert_late, part_rng

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.aws_lambda.wakes import WakeReader
    from stream_sort.testing.simulation.workload import Failing, WorkloadPlan

    Fields = Callable[[str, int], dict[str, Any]]

NAMES = ("billing", "search")


def plan_with_consumers(rng: Random, seed: int, reader: type[WakeReader], fields: Fields | None = None) -> WorkloadPlan:
    """Draw the plan of a seed with consumers; `fields` gives its messages what a user's handler wants.

    The later parts have random numbers of their own, so that they change nothing in other seeds.
    """
    plan = with_consumers(rng, replace(draw_plan(rng), trims=False), reader, fields)
    outages = _draw_failing(part_rng("outages of", seed), plan, plan.consumption.consumers, (0, 0, 1, 2))
    bugs = add_upkeep(part_rng("upkeep of", seed), plan)
    return replace(plan, consumption=replace(plan.consumption, outages=outages, bugs=bugs))


def with_consumers(
    rng: Random, plan: WorkloadPlan, reader: type[WakeReader], fields: Fields | None = None
) -> WorkloadPlan:
    """Add consumers, and what is asked of them by hand."""
    consumers = tuple(_draw_consumer(rng, name, reader) for name in NAMES[: rng.choice((1, 1, 2))])
    for tasks in plan.tasks:
        tasks[:] = [_with_fields(_watching(operation), fields) for operation in tasks]
    for consumer in consumers:
        insert(rng, plan, _by_hand(rng, consumer, plan))
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


def add_upkeep(rng: Random, plan: WorkloadPlan) -> dict[str, int]:
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
            insert_late(rng, plan, *runs, Operation("trim", queue, argument=rng.choice((None, None, *seqs))))
            insert_late(rng, plan, *rng.sample(runs, 1))
    for consumer in consumers if retires else ():
        for name in rng.choices(("retire", "introduce"), k=rng.randint(1, 4)):
            insert_late(rng, plan, Operation(name, consumer=consumer))
    return {queue: rng.randint(1, 3) for queue in plan.queues if rng.random() < 0.1}  # noqa: PLR2004  # as above


def _draw_consumer(rng: Random, name: str, reader: type[WakeReader]) -> ConsumerPlan:
    terms = DeliveryTerms(
        name,
        batch_size=rng.choice((1, 2, 3, 100)),
        max_attempts=rng.choice((1, 2, 3)),
        dead_letters=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        start=rng.choice(("earliest", "earliest", "latest", "2")),
    )
    return ConsumerPlan(terms, rng.random() < 0.5, rng.choice((1, 3, 100)), reader)  # noqa: PLR2004  # as above


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
