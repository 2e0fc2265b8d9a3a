"""The end of a run, without faults: deliver again what failed, sweep, invoke, and check what must then hold."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreUnavailable
from stream_sort.testing.simulation.consumers import CONTROL, ProcessDied
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.testing.simulation.operations import Failed, Operation
from stream_sort.testing.simulation.workload import put_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from stream_sort.testing.simulation.functions import Function
    from stream_sort.testing.simulation.harness import Harness
    from stream_sort.testing.simulation.workload import WorkloadPlan

MAX_STEPS = 20_000
# Whoever waits until a run without a limit is certainly over, waits for 15 minutes; and a queue whose consumer did not
# get on is nudged once an hour in the end.
MAX_ROUNDS = 150
# Between two sweeps: long enough for a consumer to be thought asleep.
MINUTE = 70.0
# What a process that dies alone had done until then.
LIFETIME = 10.0


class QuietEnd:
    """Sources, sweeps and the stream once nothing disturbs them any more."""

    def __init__(self, plan: WorkloadPlan, harness: Harness, functions: list[Function], rng: Random) -> None:
        self._plan = plan
        self._harness = harness
        self._oracle = harness.oracle
        self._functions = functions
        self._rng = rng

    def run(self, backlog: Iterable[Operation]) -> None:
        """Bring everything to rest; `backlog` are the operations that were killed or failed."""
        self._recover_writers(backlog)
        if self._functions:
            self._recover_consumers()

    def _recover_writers(self, backlog: Iterable[Operation]) -> None:
        """I2 twice: when all has been delivered again, and when the sweep has been by."""
        self._harness.trace.add("rest", "deliver again what was not acknowledged, without faults")
        for operation in backlog:
            self._do(replace(operation, argument=None) if operation.name == "put_many" else operation)
        if self._plan.hurries:
            # Who had little time left the rest to the sweep, which finds every mark in the end.
            self._harness.world.settle()
        else:
            self._oracle.check_rest()
        self._harness.world.now += 100
        if not self._plan.hurries:
            # Where somebody had little time, only the marks show what is left to do.
            self._move_some()
            self._sweep_with_a_bug()
        for name in ("sweep", "sweep_all"):
            self._do(Operation(name))
            self._oracle.check_rest()
        self._oracle.check_gaps(self._plan.options.gap_policy)
        if self._plan.reads:
            self._read_all()

    def _recover_consumers(self) -> None:
        """I2 to I4, and I8: sweep and invoke until nothing changes any more."""
        for rounds_left in reversed(range(MAX_ROUNDS)):
            self._harness.world.now += MINUTE
            self._do(Operation("sweep", argument=CONTROL))
            self._invoke_all()
            try:
                self._check_deliveries()
            except InvariantBroken:
                if not rounds_left:
                    raise
            else:
                return

    def _move_some(self) -> None:
        """Let every queue that waits move a little just before the sweep: that makes no gap behind it younger."""
        for row in list(self._harness.world.tables.cursors.values()):
            if row.queue not in self._oracle.lost and row.is_marked:
                self._do(put_of(row.queue, row.position + 1))

    def _sweep_with_a_bug(self) -> None:
        """I7: an error that nobody foresaw in one queue keeps a sweep from none of the others."""
        rows = sorted(self._harness.world.tables.cursors.keys() - self._oracle.lost)
        if len(rows) > 1:
            broken = rows[len(rows) // 2]
            self._do(Operation("broken_sweep", broken))
            self._oracle.check_gaps(self._plan.options.gap_policy, but=broken)

    def _read_all(self) -> None:
        """I5: whatever was trimmed, every consumer can read on, to the end."""
        for queue, name in itertools.product(self._queues(), sorted(self._harness.world.control.consumers)):
            while self._do(Operation("consume", queue, argument=name)):
                self._harness.met["read at rest"] += 1

    def _check_deliveries(self) -> None:
        is_transactional = self._harness.handler.transactional
        for consumer, queue in itertools.product(self._plan.consumption.consumers, self._queues()):
            self._harness.deliveries.check_rest(consumer.terms, queue, transactional=is_transactional)

    def _queues(self) -> list[str]:
        return sorted(set(self._plan.queues) - self._oracle.lost)

    def _invoke_all(self) -> None:
        for _ in range(MAX_STEPS):
            ready = [(function, function.invocation(self._rng)) for function in self._functions]
            if not any(operation for _, operation in ready):
                return
            for function, operation in ready:
                if operation is not None:
                    function.answer(self._do(operation))
        raise InvariantBroken("I8", "consumers wake each other for ever")

    def _do(self, operation: Operation) -> Any:
        """Do an operation with nobody else there; return its result."""
        process = self._harness.process("rest")
        try:
            self._harness.begin(process, operation)
            for _ in range(MAX_STEPS):
                if process.pending is None:
                    break
                self._harness.feed(process, self._harness.apply(process, process.pending.part))
            else:
                raise InvariantBroken("I2", f"{operation} does not end")
        except ProcessDied as death:
            self._harness.world.now += LIFETIME
            return Failed(StoreUnavailable(f"the process died {death}"))
        result = process.result
        if self._harness.finish(process):
            raise InvariantBroken("I8", f"{operation} failed although nothing disturbed it")
        return result
