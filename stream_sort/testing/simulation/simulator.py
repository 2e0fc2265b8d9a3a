"""The scheduler: runs the processes of one seed, one store call at a time, with faults, and checks every step."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.calls import Unavailable
from stream_sort.testing.simulation.consumers import OwnHandler, ProcessDied
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure, Trace
from stream_sort.testing.simulation.functions import Function, Worker, make_functions
from stream_sort.testing.simulation.harness import Harness
from stream_sort.testing.simulation.recovery import MAX_STEPS, QuietEnd
from stream_sort.testing.simulation.variant import PRODUCTION, Variant
from stream_sort.testing.simulation.workload_parts import plan_with_consumers, plan_writers

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from stream_sort.model.batch import Batch
    from stream_sort.testing.simulation.calls import PendingCall
    from stream_sort.testing.simulation.harness import Given
    from stream_sort.testing.simulation.operations import Operation
    from stream_sort.testing.simulation.workload import WorkloadPlan

TICKS = (0.0, 0.0, 0.1, 1.0, 7.0)


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that kept every invariant: what happened, and how often each thing was met; what a handler met first."""

    seed: int
    trace: Trace
    met: Counter[str]
    first_error: Exception | None = None


def simulate(seed: int, variant: Variant = PRODUCTION) -> RunReport:
    """Run one seed to rest; raises SimulationFailure where an invariant does not hold."""
    rng = Random(seed)  # noqa: S311  # repeatable, not secret
    simulation = Simulation(plan_writers(rng, seed), variant, rng)
    return _report(seed, simulation, variant.command(f"replay {seed}"))


def simulate_consumers(
    seed: int,
    variant: Variant = PRODUCTION,
    *,
    handler: Callable[[Batch], Any] | None = None,
    fields: Callable[[str, int], dict[str, Any]] | None = None,
    check: Callable[[Given], Any] | None = None,
) -> RunReport:
    """Run one seed with consumers to rest; raises SimulationFailure where an invariant does not hold."""
    rng = Random(seed)  # noqa: S311  # repeatable, not secret
    plan = plan_with_consumers(rng, seed, fields)
    command = f"simulate(handler, start={seed}, seeds=1)" if handler else variant.command(f"replay {seed} --consumers")
    return _report(seed, Simulation(plan, variant, rng, OwnHandler(handler) if handler else None), command, check)


def _report(seed: int, simulation: Simulation, command: str, check: Callable[[Given], Any] | None = None) -> RunReport:
    harness = simulation.harness
    try:
        simulation.run()
        if check is not None:
            _check(check, harness.given)
    except InvariantBroken as broken:
        cause = broken.__cause__ or broken
        raise SimulationFailure(f"seed {seed}", broken, harness.trace.lines(), command) from cause
    return RunReport(seed, harness.trace, harness.met, harness.first_error)


def _check(check: Callable[[Given], Any], given: Given) -> None:
    """Call a user's check: it may raise anything; what is no AssertionError is a mistake in the check itself."""
    try:
        check(given)
    except Exception as error:
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise InvariantBroken("your check", f"{kind}{error}" or "failed") from error


class Simulation:
    """One seed: writers, and functions if its plan has consumers.

    `backlog` is what the source delivers again: operations that were killed or failed.
    """

    def __init__(self, plan: WorkloadPlan, variant: Variant, rng: Random, handler: OwnHandler | None = None) -> None:
        self.harness = harness = Harness(plan, variant, rng, handler)
        self._plan = plan
        self._variant = variant
        self._rng = rng
        self._backlog: list[Operation] = []
        writers = [
            Worker(harness.process(f"writer{index}"), tasks, speed)
            for index, (tasks, speed) in enumerate(zip(plan.tasks, plan.speeds, strict=True))
        ]
        self._functions = make_functions(harness, plan.consumption)
        self._workers = [*writers, *self._functions]
        self._active = self._workers[0]

    def run(self) -> None:
        """Work with faults until nobody has anything to do; then recover without them."""
        with self._variant.installed():
            for _ in range(MAX_STEPS):
                self._invoke()
                busy = [worker for worker in self._workers if worker.is_busy]
                if not busy:
                    QuietEnd(self._plan, self.harness, self._functions, self._rng).run(self._backlog)
                    return
                self._happen()
                if self._active not in busy or self._rng.random() >= self._plan.patience:
                    self._active = self._choose(busy)
                self._turn(self._active)
                self._disturb_functions()
        raise InvariantBroken("I2", f"not at rest after {MAX_STEPS} steps")

    def _invoke(self) -> None:
        """Invoke every idle function that has something to do."""
        for function in self._functions:
            if not function.is_busy:
                operation = function.invocation(self._rng)
                function.tasks += [operation] if operation else []

    def _happen(self) -> None:
        """Let time pass, and now and then something happen from outside."""
        self.harness.world.now += self._rng.choice(TICKS)
        chance = self._rng.random()
        if self._plan.trims and chance < 0.3:  # noqa: PLR2004  # often enough to matter, seldom enough to see
            self.harness.delete_some()
        elif self._plan.loses and chance > 0.97:  # noqa: PLR2004  # as above
            self.harness.lose_a_cursor([worker.process for worker in self._workers])

    def _choose(self, busy: list[Worker]) -> Worker:
        """Choose who works next: writers by their speeds; with functions, everybody alike."""
        if self._functions:
            return self._rng.choice(busy)
        return self._rng.choices(busy, [worker.speed for worker in busy])[0]

    def _turn(self, worker: Worker) -> None:
        process = worker.process
        if process.pending is None:
            if self._rng.random() < self._plan.restart_rate:
                self._replace(worker, "restarted")
            self._begin(worker)
        else:
            self._step(worker, process.pending)
        if worker.process.pending is None and worker.process.attempt is not None:
            self._end(worker)

    def _begin(self, worker: Worker) -> None:
        is_writer = not isinstance(worker, Function)
        again = is_writer and self._backlog and self._rng.random() < 0.3  # noqa: PLR2004  # the source takes its time
        operation = self._backlog.pop(0) if again else worker.tasks.pop(0)
        self.harness.begin(worker.process, operation)

    def _step(self, worker: Worker, pending: PendingCall) -> None:
        fault = self._rng.choice(self._plan.faults) if self._rng.random() < self._plan.fault_rate else ""
        process, part = worker.process, pending.part
        self.harness.met[fault or "calls"] += 1
        answer: Any = None
        if fault in {"killed before", "throttled"}:
            self.harness.trace.add(process.name, part, fault)
        else:
            try:
                answer = self.harness.apply(process, part, fault)
            except ProcessDied:
                self._kill(worker)
                return
        if fault in {"throttled", "reply lost"}:
            answer = Unavailable()
        if fault in {"killed before", "killed after"}:
            self._kill(worker)
        elif fault == "sent again" and not pending.repeating:
            pending.repeating = True
        else:
            self.harness.feed(process, answer)

    def _end(self, worker: Worker) -> None:
        """End an operation; one that failed for want of a store is delivered again."""
        result = worker.process.result
        failed = self.harness.finish(worker.process)
        if isinstance(worker, Function):
            worker.answer(result)
        else:
            self._backlog += [failed] if failed else []

    def _kill(self, worker: Worker) -> None:
        if isinstance(worker, Function):
            self._replace(worker, "functions killed")
            worker.abandon()
            return
        attempt = worker.process.attempt
        self._backlog += [attempt.operation] if attempt else []
        self._replace(worker, "killed")

    def _replace(self, worker: Worker, why: str) -> None:
        """Drop the process and start one with an empty memory in its place."""
        self.harness.met[why] += 1
        worker.processes += 1
        worker.process = self.harness.process(f"{worker.process.name.split('.')[0]}.{worker.processes}")

    def _disturb_functions(self) -> None:
        """Now and then let an invocation run out of time but live on, or lose all unread records."""
        plan = self._plan.consumption
        running = [function for function in self._functions if function.process.pending is not None]
        if running and self._rng.random() < plan.timeout_rate:
            function = self._rng.choice(running)
            self._workers.append(Worker(function.process, []))
            self._replace(function, "zombies")
            function.abandon()
        if plan.loses_stream and self._rng.random() < 0.02:  # noqa: PLR2004  # seldom
            for function in self._functions:
                function.lose_records()
