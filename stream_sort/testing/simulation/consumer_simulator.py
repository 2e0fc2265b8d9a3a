"""The scheduler of runs with consumers: writers as ever, and functions that a stream and a retry queue invoke."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreUnavailable
from stream_sort.testing.simulation.clerk import Clerk, OwnHandler, ProcessDied
from stream_sort.testing.simulation.consumer_bench import ConsumerBench
from stream_sort.testing.simulation.consumer_operations import ConsumerOperation, ConsumerPlan
from stream_sort.testing.simulation.consumer_workload import add_upkeep, draw_consumers_plan, draw_outages
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure
from stream_sort.testing.simulation.operations import Failed, Operation
from stream_sort.testing.simulation.reader import CONTROL
from stream_sort.testing.simulation.simulator import RunReport, Simulation, Worker
from stream_sort.testing.simulation.stream import Mapping
from stream_sort.testing.simulation.variant import PRODUCTION

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.batch import Batch
    from stream_sort.testing.simulation.calls import Flight
    from stream_sort.testing.simulation.consumer_bench import Given
    from stream_sort.testing.simulation.variant import Variant

MAX_STEPS = 20_000
# Whoever waits until a run without a limit is certainly over, waits for 15 minutes; and a queue whose consumer did not
# get on is nudged once an hour in the end.
MAX_ROUNDS = 150
# Between two sweeps of the rest: long enough for a consumer to be thought asleep.
MINUTE = 70.0
# What a process that dies alone had done until then.
LIFETIME = 10.0


@dataclass(slots=True, eq=False)
class Function(Worker):
    """A consumer's function: invoked by its mapping, or by a message of the retry queue (`message` is that one)."""

    plan: ConsumerPlan | None = None
    mapping: Mapping | None = None
    message: tuple[float, str, str] | None = None


def simulate_consumers(
    seed: int,
    variant: Variant = PRODUCTION,
    handler: Callable[[Batch], Any] | None = None,
    fields: Callable[[str, int], dict[str, Any]] | None = None,
    check: Callable[[Given], Any] | None = None,
) -> RunReport:
    """Run one seed with consumers to rest; raises SimulationFailure where an invariant does not hold."""
    simulation = ConsumerSimulation(seed, variant, handler, fields)
    command = variant.command(f"replay {seed} --consumers")
    command = f"simulate(handler, start={seed}, seeds=1)" if handler else command
    try:
        with variant.installed():
            simulation.run()
        if check is not None:
            _check(check, simulation.bench.given)
    except InvariantBroken as broken:
        raise SimulationFailure(f"seed {seed}", broken, simulation.bench.trace.lines(), command) from (
            broken.__cause__ or broken
        )
    return RunReport(seed, simulation.bench.trace, simulation.bench.met, simulation.bench.first_error)


def _check(check: Callable[[Given], Any], given: Given) -> None:
    """A user's check may raise anything; what is no AssertionError is a mistake in the check itself."""
    try:
        check(given)
    except AssertionError as error:
        raise InvariantBroken("your check", str(error) or "failed") from error
    except Exception as error:
        raise InvariantBroken("your check", f"{type(error).__name__}: {error}") from error


class ConsumerSimulation(Simulation):
    """One seed with consumers."""

    bench: ConsumerBench

    def __init__(
        self,
        seed: int,
        variant: Variant = PRODUCTION,
        handler: Callable[[Batch], Any] | None = None,
        fields: Callable[[str, int], dict[str, Any]] | None = None,
    ) -> None:
        self._rng = Random(seed)  # noqa: S311  # repeatable, not secret
        self._consumers_plan = plan = draw_consumers_plan(self._rng, variant, fields)
        self._plan = plan.writers
        # Drawn apart: what else a seed meets does not depend on it.
        outages = draw_outages(Random(f"outages of {seed}"), plan)  # noqa: S311  # as above
        bugs = add_upkeep(Random(f"upkeep of {seed}"), plan)  # noqa: S311  # as above
        clerk = Clerk(self._rng, plan.transactional, dict(plan.poison), dict(plan.deadly), outages)
        self._clerk = OwnHandler(handler) if handler else clerk
        self.bench = ConsumerBench(plan.writers, variant, self._rng, self._clerk)
        self.bench.bugs = bugs
        self._backlog: list[Operation] = []
        writers = [Worker(self.bench.process(f"writer{n}"), tasks) for n, tasks in enumerate(plan.writers.tasks)]
        self._functions = [function for number in range(len(plan.consumers)) for function in self._make(number)]
        self._workers = [*writers, *self._functions]
        self._active = self._workers[0]

    def run(self) -> None:
        """Work with faults until nobody has anything to do; then heal, sweep and check."""
        for _ in range(MAX_STEPS):
            self._poll()
            busy = [worker for worker in self._workers if worker.tasks or worker.process.flight]
            if not busy:
                self._rest()
                return
            self._happen()
            if self._active not in busy or self._rng.random() >= self._plan.patience:
                self._active = self._rng.choice(busy)
            self._turn(self._active)
            self._misfortune()
        raise InvariantBroken("I2", f"not at rest after {MAX_STEPS} steps")

    def _make(self, number: int) -> list[Function]:
        """The function of a consumer, as its mapping invokes it, and as its retry queue does."""
        plan = self._consumers_plan
        consumer, name = plan.consumers[number], plan.consumers[number].terms.name
        mapping = Mapping(self.bench.stream, plan.sizes[number], plan.retries, plan.bisects)
        functions = [Function(self.bench.process(f"{name}-stream"), [], plan=consumer, mapping=mapping)]
        if consumer.has_retry_queue:
            functions.append(Function(self.bench.process(f"{name}-retry"), [], plan=consumer))
        return functions

    def _poll(self) -> None:
        """Invoke every idle function that has something to do."""
        for function in self._functions:
            if function.process.flight is None and not function.tasks:
                event = self._event(function)
                if event is not None and function.plan is not None:
                    function.tasks.append(self._invocation(function.plan, event))

    def _invocation(self, plan: ConsumerPlan, event: dict[str, Any]) -> Any:
        return ConsumerOperation("process", plan, argument=event)

    def _event(self, function: Function) -> dict[str, Any] | None:
        if function.mapping is not None:
            records = function.mapping.batch()
            return {"Records": [self._blurred(record) for record in records]} if records else None
        if function.plan is None:
            return None
        function.message = self.bench.retries.take(self._rng, self.bench.world.now, function.plan.terms.name)
        if function.message is None:
            return None
        body = json.dumps({"consumer": function.message[1], "queue": function.message[2]})
        return {"Records": [{"eventSource": "aws:sqs", "messageId": "m1", "body": body}]}

    def _blurred(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record as it may come: without an image now and then."""
        body = dict(record["dynamodb"])
        for image in ("OldImage", "NewImage"):
            if self._rng.random() < 0.1:  # noqa: PLR2004  # now and then
                body.pop(image, None)
        return {**record, "dynamodb": body}

    def _begin(self, worker: Worker) -> None:
        if isinstance(worker, Function):
            self.bench.begin(worker.process, worker.tasks.pop(0))
        else:
            super()._begin(worker)

    def _end(self, worker: Worker) -> None:
        if not isinstance(worker, Function):
            super()._end(worker)
            return
        if worker.process.attempt is not None:
            result = worker.process.result
            self.bench.finish(worker.process)
            self._answer(worker, result)

    def _answer(self, function: Function, result: Any) -> None:
        """Tell the source of an invocation what came of it."""
        if function.message is not None:
            if not isinstance(result, Failed) and not result["batchItemFailures"]:
                self.bench.retries.delete(function.message)
            function.message = None
        elif function.mapping is not None and isinstance(result, Failed):
            self.bench.met["records dropped"] += function.mapping.fail()
        elif function.mapping is not None:
            reported = [one["itemIdentifier"] for one in result["batchItemFailures"]]
            self.bench.met["partial failures"] += bool(reported)
            self.bench.met["records dropped"] += function.mapping.succeed(reported)

    def _step(self, worker: Worker, flight: Flight) -> None:
        try:
            super()._step(worker, flight)
        except ProcessDied:
            self._kill(worker)

    def _finish_alone(self, operation: Operation) -> Any:
        try:
            return super()._finish_alone(operation)
        except ProcessDied as death:
            self.bench.world.now += LIFETIME
            return Failed(StoreUnavailable(f"the process died {death}"))

    def _kill(self, worker: Worker) -> None:
        if not isinstance(worker, Function):
            super()._kill(worker)
            return
        self._replace(worker, "functions killed")
        self._forsake(worker)

    def _forsake(self, function: Function) -> None:
        """The invocation has no answer: its source tries again."""
        function.message = None
        if function.mapping is not None:
            self.bench.met["records dropped"] += function.mapping.fail()

    def _misfortune(self) -> None:
        """Now and then an invocation runs out of time but lives on, or all unread records are lost."""
        plan = self._consumers_plan
        running = [function for function in self._functions if function.process.flight is not None]
        if running and self._rng.random() < plan.timeout_rate:
            function = self._rng.choice(running)
            self._workers.append(Worker(function.process, []))
            self._replace(function, "zombies")
            self._forsake(function)
        if plan.loses_stream and self._rng.random() < 0.02:  # noqa: PLR2004  # seldom
            for function in self._functions:
                if function.mapping is not None and function.process.flight is None:
                    function.tasks.clear()
                    self.bench.met["records lost"] += function.mapping.lose()

    def _rest(self) -> None:
        """Deliver again what failed; then sweep and invoke, without faults, until nothing changes any more."""
        super()._rest()
        problem: InvariantBroken | None = InvariantBroken("I8", "there was no time for a sweep")
        for _ in range(MAX_ROUNDS):
            self.bench.world.now += MINUTE
            self._finish_alone(Operation("sweep", argument=CONTROL))
            self._invoke_all()
            problem = self._unrest()
            if problem is None:
                return
        if problem is not None:
            raise problem

    def _unrest(self) -> InvariantBroken | None:
        """What is not as it should be when everything has been delivered."""
        try:
            for consumer in self._consumers_plan.consumers:
                for queue in sorted(set(self._plan.queues) - self.bench.oracle.lost):
                    self.bench.consumers.check_rest(consumer.terms, queue, transactional=self._clerk.transactional)
        except InvariantBroken as broken:
            return broken
        return None

    def _invoke_all(self) -> None:
        for _ in range(MAX_STEPS):
            ready = [(function, event) for function in self._functions if (event := self._event(function)) is not None]
            if not ready:
                return
            for function, event in ready:
                if function.plan is not None:
                    result = self._finish_alone(self._invocation(function.plan, event))
                    self._answer(function, result)
        raise InvariantBroken("I8", "consumers wake each other for ever")
