"""The scheduler: runs the processes of one seed, one store call at a time, with faults, and checks every step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.bench import Bench
from stream_sort.testing.simulation.calls import Unavailable
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure, Trace
from stream_sort.testing.simulation.mishaps import lose_a_cursor, trim_a_queue
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.variant import PRODUCTION, Variant
from stream_sort.testing.simulation.workload import (
    draw_plan,
    with_a_stray_given_up,
    with_little_time,
    with_losses,
    with_trims,
    with_withdrawals,
)

if TYPE_CHECKING:
    from collections import Counter

    from stream_sort.testing.simulation.calls import Flight
    from stream_sort.testing.simulation.process import SimulatedProcess

TICKS = (0.0, 0.0, 0.1, 1.0, 7.0)
MAX_STEPS = 5_000


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run that kept every invariant: what happened, and how often each thing was met; what a handler met first."""

    seed: int
    trace: Trace
    met: Counter[str]
    first_error: Exception | None = None


@dataclass(slots=True, eq=False)
class Worker:
    """A place where processes run one after the other, and the operations still to do there."""

    process: SimulatedProcess
    tasks: list[Operation]
    lives: int = 1


def simulate(seed: int, variant: Variant = PRODUCTION) -> RunReport:
    """Run one seed to rest; raises SimulationFailure where an invariant does not hold."""
    simulation = Simulation(seed, variant)
    try:
        with variant.installed():
            simulation.run()
    except InvariantBroken as broken:
        command = variant.command(f"replay {seed}")
        lines = simulation.bench.trace.lines()
        raise SimulationFailure(f"seed {seed}", broken, lines, command) from None
    return RunReport(seed, simulation.bench.trace, simulation.bench.met)


class Simulation:
    """One seed. `backlog` is what the source delivers again: operations that were killed or failed."""

    def __init__(self, seed: int, variant: Variant = PRODUCTION) -> None:
        self._rng = Random(seed)  # noqa: S311  # repeatable, not secret
        # From numbers of their own: what the other seeds do stays as it is.
        hurry = Random(f"little time {seed}")  # noqa: S311  # repeatable, not secret
        losses = Random(f"losses {seed}")  # noqa: S311  # as above
        plan = with_losses(losses, with_little_time(hurry, with_trims(self._rng, draw_plan(self._rng))))
        if seed % 4 == 3:  # noqa: PLR2004  # a share of the seeds
            plan = with_withdrawals(Random(f"withdrawals {seed}"), plan)  # noqa: S311  # as above
        if seed % 8 == 5:  # noqa: PLR2004  # a share of the seeds
            plan = with_a_stray_given_up(Random(f"strays {seed}"), plan)  # noqa: S311  # as above
        self._plan = plan
        self.bench = Bench(self._plan, variant, self._rng)
        self._backlog: list[Operation] = []
        self._workers = [
            Worker(self.bench.process(f"writer{index}"), tasks) for index, tasks in enumerate(self._plan.tasks)
        ]

        self._active = self._workers[0]

    def run(self) -> None:
        """Work with faults until nobody has anything to do; then deliver again what failed, and sweep."""
        for _ in range(MAX_STEPS):
            busy = [worker for worker in self._workers if worker.tasks or worker.process.flight]
            if not busy:
                self._rest()
                return
            self._happen()
            if self._active not in busy or self._rng.random() >= self._plan.patience:
                speeds = [self._plan.speeds[self._workers.index(worker)] for worker in busy]
                self._active = self._rng.choices(busy, speeds)[0]
            self._turn(self._active)
        raise InvariantBroken("I2", f"not at rest after {MAX_STEPS} steps")

    def _happen(self) -> None:
        """Let time pass, and now and then something happen from outside."""
        self.bench.world.now += self._rng.choice(TICKS)
        chance = self._rng.random()
        if self._plan.trims and chance < 0.3:  # noqa: PLR2004  # often enough to matter, seldom enough to see
            trim_a_queue(self.bench, self._rng)
        elif self._plan.loses and chance > 0.97:  # noqa: PLR2004  # as above
            lose_a_cursor(self.bench, [worker.process for worker in self._workers], self._rng)

    def _turn(self, worker: Worker) -> None:
        process = worker.process
        if process.flight is None:
            if self._rng.random() < self._plan.restart_rate:
                self._replace(worker, "restarted")
            self._begin(worker)
        else:
            self._step(worker, process.flight)
        if worker.process.flight is None:
            self._end(worker)

    def _end(self, worker: Worker) -> None:
        """An operation came to its end; one that failed for want of a store is delivered again."""
        failed = self.bench.finish(worker.process)
        self._backlog += [failed] if failed else []

    def _begin(self, worker: Worker) -> None:
        again = self._backlog and self._rng.random() < 0.3  # noqa: PLR2004  # the source takes its time
        operation = self._backlog.pop(0) if again else worker.tasks.pop(0)
        self.bench.begin(worker.process, operation)

    def _step(self, worker: Worker, flight: Flight) -> None:
        fault = self._rng.choice(self._plan.faults) if self._rng.random() < self._plan.fault_rate else ""
        process, part = worker.process, flight.part
        self.bench.met[fault or "calls"] += 1
        answer: Any = None
        if fault in {"killed before", "throttled"}:
            self.bench.trace.add(process.name, part, fault)
        else:
            answer = self.bench.apply(process, part, fault)
        if fault in {"throttled", "reply lost"}:
            answer = Unavailable()
        if fault in {"killed before", "killed after"}:
            self._kill(worker)
        elif fault == "sent again" and not flight.repeating:
            flight.repeating = True
        else:
            self.bench.feed(process, answer)

    def _kill(self, worker: Worker) -> None:
        attempt = worker.process.attempt
        self._backlog += [attempt.operation] if attempt else []
        self._replace(worker, "killed")

    def _replace(self, worker: Worker, why: str) -> None:
        """Drop the process and start one with an empty memory in its place."""
        self.bench.met[why] += 1
        worker.lives += 1
        worker.process = self.bench.process(f"{worker.process.name.split('.')[0]}.{worker.lives}")

    def _rest(self) -> None:
        """I2 twice: when all has been delivered again, and when the sweep has been by."""
        self.bench.trace.add("rest", "deliver again what was not acknowledged, without faults")
        for operation in self._backlog:
            self._finish_alone(replace(operation, argument=None) if operation.name == "put_many" else operation)
        if self._plan.hurries:
            # Who had little time left the rest to the sweep, which finds every mark in the end.
            self.bench.world.settle()
        else:
            self.bench.oracle.check_rest(marks=True)
        self.bench.world.now += 100
        if not self._plan.hurries:
            # Where somebody had little time, only the marks show what is left to do.
            self._move_some()
            self._sweep_with_a_bug()
        for name in ("sweep", "sweep_all"):
            self._finish_alone(Operation(name))
            self.bench.oracle.check_rest(marks=True)
        self.bench.oracle.check_gaps(self._plan.options.gap_policy)
        if self._plan.reads:
            self._read_all()

    def _move_some(self) -> None:
        """Let every queue that waits move a little just before the sweep: that makes no gap behind it younger."""
        for row in list(self.bench.world.tables.cursors.values()):
            if row.queue not in self.bench.oracle.lost and row.is_marked:
                seq = row.position + 1
                self._finish_alone(Operation("put", messages=({"queue": row.queue, "seq": seq, "body": "first"},)))

    def _sweep_with_a_bug(self) -> None:
        """I7: an error that nobody foresaw in one queue keeps a sweep from none of the others."""
        rows = sorted(self.bench.world.tables.cursors.keys() - self.bench.oracle.lost)
        if len(rows) > 1:
            broken = rows[len(rows) // 2]
            self._finish_alone(Operation("broken_sweep", broken))
            self.bench.oracle.check_gaps(self._plan.options.gap_policy, but=broken)

    def _read_all(self) -> None:
        """I5: whatever was trimmed, every consumer can read on, to the end."""
        queues = sorted(set(self._plan.queues) - self.bench.oracle.lost)
        for queue, name in itertools.product(queues, sorted(self.bench.world.control.consumers)):
            while self._finish_alone(Operation("consume", queue, argument=name)):
                self.bench.met["read at rest"] += 1

    def _finish_alone(self, operation: Operation) -> Any:
        process = self.bench.process("rest")
        self.bench.begin(process, operation)
        for _ in range(MAX_STEPS):
            if process.flight is None:
                break
            self.bench.feed(process, self.bench.apply(process, process.flight.part))
        else:
            raise InvariantBroken("I2", f"{operation} does not end")
        result = process.result
        if self.bench.finish(process):
            raise InvariantBroken("I8", f"{operation} failed although nothing disturbed it")
        return result
