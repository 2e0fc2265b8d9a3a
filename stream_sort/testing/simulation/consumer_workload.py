"""What a seed with consumers is made of: the writers' plan, the consumers, what wakes them, and what is poison."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.consume.context import DeliveryTerms
from stream_sort.testing.simulation.consumer_operations import ConsumerOperation, ConsumerPlan
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.reader import CONTROL
from stream_sort.testing.simulation.workload import draw_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.testing.simulation.variant import Variant
    from stream_sort.testing.simulation.workload import WorkloadPlan

NAMES = ("billing", "search")
# How often a message fails, by consumer, queue and seq.
Failing = dict[tuple[str, str, int], float]


@dataclass(frozen=True, slots=True)
class ConsumersPlan:
    """A seed's settings. `loses_stream` is a day of records lost, `timeout_rate` how likely a call outlives its run."""

    writers: WorkloadPlan
    consumers: tuple[ConsumerPlan, ...]
    sizes: tuple[int, ...]
    retries: int
    bisects: bool
    timeout_rate: float
    loses_stream: bool
    transactional: bool
    poison: Failing
    deadly: Failing


def draw_consumers_plan(
    rng: Random, variant: Variant, fields: Callable[[str, int], dict[str, Any]] | None = None
) -> ConsumersPlan:
    """The plan of a seed; `fields` gives its messages what a user's handler wants."""
    writers = replace(draw_plan(rng), trims=False)
    consumers = tuple(_draw_consumer(rng, name, variant) for name in NAMES[: rng.choice((1, 1, 2))])
    for tasks in writers.tasks:
        tasks[:] = [_with_fields(_watched(operation), fields) for operation in tasks]
    for consumer in consumers:
        for operation in _by_hand(rng, consumer, writers):
            tasks = rng.choice(writers.tasks)
            tasks.insert(rng.randint(0, len(tasks)), operation)
    return ConsumersPlan(
        writers=writers,
        consumers=consumers,
        sizes=tuple(rng.choice((1, 2, 5)) for _ in consumers),
        retries=rng.choice((0, 1, 5)),
        bisects=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        timeout_rate=rng.choice((0.0, 0.0, 0.03, 0.1)),
        loses_stream=rng.random() < 0.2,  # noqa: PLR2004  # a share of the seeds
        transactional=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        poison=_draw_failing(rng, writers, consumers, (0, 0, 1, 3)),
        deadly=_draw_failing(rng, writers, consumers, (0, 0, 0, 1)),
    )


def draw_outages(rng: Random, plan: ConsumersPlan) -> Failing:
    """At which messages of a plan the handler finds what it needs out of order, and how often."""
    return _draw_failing(rng, plan.writers, plan.consumers, (0, 0, 1, 2))


def add_upkeep(rng: Random, plan: ConsumersPlan) -> dict[str, int]:
    """Add trims, and consumers that are retired, to a plan; returns in which queues our own code stumbles, how often.

    Who is retired may come back behind a trim, which is told to it: only a part of the seeds has both.
    """
    trims, retires = rng.random() < 0.4, rng.random() < 0.3  # noqa: PLR2004  # shares of the seeds
    for queue in plan.writers.queues if trims else ():
        seqs = _seqs_of(queue, plan.writers)
        for _ in range(rng.randint(1, 4) if seqs else 0):
            # By a process that has just caught up, while another one may be asleep in the middle of it.
            runs = [ConsumerOperation("catch_up", consumer, queue) for consumer in plan.consumers]
            _insert_late(rng, plan, *runs, Operation("trim", queue, argument=rng.choice((None, None, *seqs))))
            _insert_late(rng, plan, *rng.sample(runs, 1))
    for consumer in plan.consumers if retires else ():
        for name in rng.choices(("retire", "introduce"), k=rng.randint(1, 4)):
            _insert_late(rng, plan, ConsumerOperation(name, consumer))
    return {queue: rng.randint(1, 3) for queue in plan.writers.queues if rng.random() < 0.1}  # noqa: PLR2004  # as above


def _seqs_of(queue: str, writers: WorkloadPlan) -> list[int]:
    messages = (message for tasks in writers.tasks for one in tasks for message in one.messages)
    return [message["seq"] for message in messages if message["queue"] == queue]


def _insert_late(rng: Random, plan: ConsumersPlan, *operations: Any) -> None:
    """Put operations into somebody's tasks, rather late than early: before that there is nothing to trim."""
    tasks = rng.choice(plan.writers.tasks)
    at = max(rng.randint(0, len(tasks)), rng.randint(0, len(tasks)))
    tasks[at:at] = operations


def _draw_consumer(rng: Random, name: str, variant: Variant) -> ConsumerPlan:
    terms = DeliveryTerms(
        name,
        batch_size=rng.choice((1, 2, 3, 100)),
        max_attempts=rng.choice((1, 2, 3)),
        dead_letters=rng.random() < 0.5,  # noqa: PLR2004  # as often as not
        start=rng.choice(("earliest", "earliest", "latest", "2")),
    )
    return ConsumerPlan(terms, rng.random() < 0.5, rng.choice((1, 3, 100)), variant.reader)  # noqa: PLR2004  # as above


def _watched(operation: Operation) -> Operation:
    """A sweep watches over the consumers, too."""
    return replace(operation, argument=CONTROL) if operation.name.startswith("sweep") else operation


def _with_fields(operation: Operation, fields: Callable[[str, int], dict[str, Any]] | None) -> Operation:
    if fields is None or not operation.messages:
        return operation
    given = [{**fields(message["queue"], message["seq"]), **message} for message in operation.messages]
    return replace(operation, messages=tuple(given))


def _by_hand(rng: Random, consumer: ConsumerPlan, writers: WorkloadPlan) -> list[Any]:
    queue = rng.choice(writers.queues)
    seq = writers.options.first_seq + rng.randint(0, 4)
    operations = [
        (0.2, ConsumerOperation("catch_up", consumer, queue)),
        (0.2, ConsumerOperation("redrive", consumer, queue)),
        (0.1, ConsumerOperation("discard", consumer, queue, seq)),
    ]
    return [operation for chance, operation in operations if rng.random() < chance]


def _draw_failing(
    rng: Random, writers: WorkloadPlan, consumers: tuple[ConsumerPlan, ...], counts: tuple[int, ...]
) -> Failing:
    seqs = [(message["queue"], message["seq"]) for tasks in writers.tasks for one in tasks for message in one.messages]
    failing = {}
    for consumer in consumers:
        for queue, seq in rng.sample(seqs, min(len(seqs), rng.choice(counts))):
            failing[(consumer.terms.name, queue, seq)] = rng.choice((1, 2, 4, math.inf))
    return failing
