"""The workbench of one run: world, oracle, trace and counts, and what is done with them at each step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from stream_sort.errors import CursorLost, NotConsumed, Trimmed
from stream_sort.model.records import Move
from stream_sort.testing.simulation.calls import Call, Unavailable
from stream_sort.testing.simulation.failure import InvariantBroken, Trace
from stream_sort.testing.simulation.operations import Attempt, Operation
from stream_sort.testing.simulation.oracle import Oracle
from stream_sort.testing.simulation.process import Program, SimulatedProcess
from stream_sort.testing.simulation.verdicts import errors_of, judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from stream_sort.testing.simulation.variant import Variant
    from stream_sort.testing.simulation.workload import WorkloadPlan


class Bench:
    """What all processes of a run share."""

    def __init__(self, plan: WorkloadPlan, variant: Variant, rng: Random) -> None:
        self.trace = Trace()
        self.met: Counter[str] = Counter()
        self.world = variant.world()
        self.oracle = Oracle(self.world, plan.options.first_seq)
        self._program = Program(plan.options, plan.queues, variant.sorter, variant.recorder)
        self._max_advance = plan.options.limits.max_advance
        self._rng = rng
        self._attempts = 0

    def process(self, name: str) -> SimulatedProcess:
        """A process that remembers nothing."""
        return SimulatedProcess(name, self._program, self.world.clock, rng=self._rng)

    def begin(self, process: SimulatedProcess, operation: Operation) -> None:
        """Let a process start an operation."""
        self._attempts += 1
        self.met[operation.name] += 1
        self.met["stale hints"] += any(
            hint.cursor is not None and hint.cursor.position != self.world.position(queue)
            for queue, hint in process.memory.items()
            if queue in operation.queues
        )
        self.trace.add(process.name, f"begins {operation}")
        starts = {queue: self.oracle.starts(queue) for queue in operation.queues}
        self._go(process.begin, Attempt(self._attempts, operation, frozenset(self.oracle.lost), starts))

    def feed(self, process: SimulatedProcess, answer: Any) -> None:
        """Let a process go on with an answer."""
        if isinstance(answer, Unavailable) and process.attempt is not None:
            process.attempt.unavailable += 1
        self._go(process.feed, answer)

    def apply(self, process: SimulatedProcess, part: Call, fault: str = "") -> Any:
        """Do one part of a call of a process, and check what it did."""
        answer = self.world.apply(part, self._rng)
        self.trace.add(process.name, part, fault, answer)
        in_tables = part.port in {"items", "cursors", "withdrawals"} and part.queue is not None
        if in_tables and not part.is_read and process.attempt is not None:
            self.oracle.observe(str(part.queue), process.attempt)
        self._count(part, answer)
        return answer

    def finish(self, process: SimulatedProcess) -> Operation | None:
        """Judge what an operation says at its end; returns it if it is to be delivered again."""
        attempt, result, process.attempt = process.attempt, process.result, None
        if attempt is None:
            return None
        self.trace.add(process.name, f"ends {attempt.operation}", answer=result)
        judge(attempt, result, self.oracle)
        errors = errors_of(result)
        for kind in (CursorLost, NotConsumed, Trimmed):
            self.met[kind.__name__] += any(isinstance(error, kind) for error in errors)
        if not any(error.retryable for error in errors):
            return None
        self.met["operations failed"] += 1
        return attempt.operation

    def _go(self, on: Callable[[Any], None], value: Any) -> None:
        try:
            on(value)
        except Exception as error:  # whatever a service lets through is the finding
            raise InvariantBroken("I9", f"not a named error: {error!r}") from error

    def _count(self, part: Call, answer: Any) -> None:
        if part.key in {"items.delete", "items.take_back"}:
            self.met["cut" if part.name == "delete" else "taken back"] += int(answer)
        if part.key == "withdrawals.withdraw":
            self.met["withdrawn"] += answer is not None
        if isinstance(answer, Move):
            self.met["moves" if answer.won else "lost conditions"] += 1
        if part.key == "cursors.move" and answer is not None and answer.won:
            cursor, end, _ = part.args
            self.met["capped moves"] += end - cursor.position == self._max_advance
