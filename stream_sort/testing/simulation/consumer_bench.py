"""The workbench of a run with consumers: besides the tables, the stream, the retry queue and the handlers."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from stream_sort.errors import (
    CheckpointConflict,
    CursorLost,
    InternalError,
    MissingItems,
    NotParked,
    QueueDamaged,
    StoreUnavailable,
    Trimmed,
)
from stream_sort.model.precaution import ENDED, is_precaution
from stream_sort.testing.simulation.bench import Bench
from stream_sort.testing.simulation.calls import Bug, RefusedEffects
from stream_sort.testing.simulation.clerk import ProcessDied, done_through
from stream_sort.testing.simulation.consumer_operations import ConsumerOperation
from stream_sort.testing.simulation.consumer_oracle import ConsumerOracle, names_outage
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.testing.simulation.operations import Failed
from stream_sort.testing.simulation.reader import CONTROL
from stream_sort.testing.simulation.stream import CursorStream, RetryMessages

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.batch import Batch
    from stream_sort.model.consumption import Checkpoint, Parked
    from stream_sort.testing.simulation.calls import Call
    from stream_sort.testing.simulation.clerk import Clerk, OwnHandler
    from stream_sort.testing.simulation.consumer_operations import Handled
    from stream_sort.testing.simulation.operations import Attempt, Operation
    from stream_sort.testing.simulation.process import SimulatedProcess
    from stream_sort.testing.simulation.variant import Variant
    from stream_sort.testing.simulation.workload import WorkloadPlan


Given = dict[tuple[str, str], list[int]]
# Calls that change who is registered.
REGISTRATIONS = frozenset({"register", "introduce", "make_ready", "retire"})


class ConsumerBench(Bench):
    """What all processes of a run share."""

    def __init__(self, plan: WorkloadPlan, variant: Variant, rng: Random, clerk: Clerk | OwnHandler) -> None:
        super().__init__(plan, variant, rng)
        self.stream = CursorStream()
        self.retries = RetryMessages()
        self.control = self.world.tables.controls[CONTROL]
        self.consumers = ConsumerOracle(self.world, self.control)
        self.given: Given = {}
        self.first_error: Exception | None = None
        # In which queues our own code is to stumble, and how often.
        self.bugs: dict[str, int] = {}
        self._clerk = clerk
        self._since: dict[int, dict[tuple[str, str], int]] = {}
        self._began: dict[int, float] = {}
        self._stumbled: set[str] = set()

    def begin(self, process: SimulatedProcess, operation: Operation) -> None:
        """Let a process start an operation; remember what the checkpoints were."""
        super().begin(process, operation)
        if process.attempt is not None:
            places = self.control.checkpoints
            self._since[process.attempt.number] = {place: self.consumers.history(*place) for place in places}
            self._began[process.attempt.number] = self.world.now

    def apply(self, process: SimulatedProcess, part: Call, fault: str = "") -> Any:
        """Do one part of a call of a process, and check what it did."""
        if part.port == "handler":
            return self._deliver(process, part, fault)
        if part.port == "waker":
            queue, consumer, delay = part.args
            self.retries.send(self.world.now, consumer, queue, delay)
            self.trace.add(process.name, part, fault)
            return None
        if self._stumbles(process, part):
            self.trace.add(process.name, part, "bug")
            return Bug()
        before = self.world.tables.cursors.get(str(part.queue))
        answer = super().apply(process, part, fault)
        if part.port == "control" and part.name in REGISTRATIONS and process.attempt is not None:
            self.consumers.check_registered(process.attempt.operation.name)
            self.oracle.retired = self.consumers.ever_retired
            self.met["retired"] += part.name == "retire"
        self.stream.add(before, self.world.tables.cursors.get(str(part.queue)))
        if part.port == "control" and part.name in {"create", "commit"}:
            self.consumers.check_checkpoint(part.args[0].consumer, part.args[0].queue)
            self._count_commit(part, answer)
        elif part.name == "settle":
            self.consumers.check_settled()
            self.met["messages done"] += answer is True and part.args[2] is None
        if isinstance(answer, RefusedEffects):
            self.met["effects refused"] += 1
            self.first_error = self.first_error or answer.problem
        return answer

    def finish(self, process: SimulatedProcess) -> Operation | None:
        """Judge what an operation says at its end; returns it if it is to be delivered again."""
        attempt, result = process.attempt, process.result
        if attempt is None or not _is_consumers(attempt.operation):
            return super().finish(process)
        process.attempt = None
        self.trace.add(process.name, f"ends {attempt.operation}", answer=result)
        if not isinstance(result, Failed):
            return None
        self._judge(attempt, result.error)
        return attempt.operation if result.error.retryable else None

    def _count_commit(self, part: Call, answer: Any) -> None:
        if part.name != "commit" or isinstance(answer, RefusedEffects):
            return
        if not answer.won:
            self.met["lost commits"] += 1
            return
        old, new, effects, dead = part.args
        given = self.given.get((new.consumer, new.queue), ())
        self.met["messages done"] += dead is None and sum(old.seq < seq <= new.seq for seq in set(given))
        self.consumers.check_blame(new.parked, dead)
        self._check_alarm(new)
        self._count_parked(new.parked)
        self.met["outages waited for"] += new.parked is not None and names_outage(new.parked.error)
        self.met["effects"] += len(effects)
        self.met["dead letters"] += dead is not None
        self.met["deadly ones set aside"] += dead is not None and dead.error.startswith(ENDED)

    def _count_parked(self, parked: Parked | None) -> None:
        if parked is None or not is_precaution(parked):
            self.met["parked"] += parked is not None
        else:
            self.met["precautions" if parked.next_try is not None else "deadly ones parked for good"] += 1

    def _stumbles(self, process: SimulatedProcess, part: Call) -> bool:
        """Whether our own code meets a bug here: where a consumer's run reads what it is to deliver."""
        queue = str(part.queue)
        if part.key != "items.page" or not self.bugs.get(queue) or process.attempt is None:
            return False
        if process.attempt.operation.name != "process":
            return False
        self.bugs[queue] -= 1
        self._stumbled.add(queue)
        self.met["bugs"] += 1
        return True

    def _check_alarm(self, row: Checkpoint) -> None:
        """I5, I9: a queue is called damaged only if it is, and a bug ours only where there was one."""
        parked = row.parked
        if parked is None:
            return
        is_lost = row.queue in self.oracle.lost and parked.error.startswith(CursorLost.__name__)
        is_trimmed = row.consumer in self.oracle.retired and parked.error.startswith(Trimmed.__name__)
        if parked.damaged and not is_lost and not is_trimmed:
            raise InvariantBroken("I5", f"{row.consumer} calls a queue damaged that is not: {parked}")
        if parked.error.startswith(InternalError.__name__) and row.queue not in self._stumbled:
            raise InvariantBroken("I9", f"not a named error: {parked.error}")

    def _judge(self, attempt: Attempt, error: Exception) -> None:
        was_retired = attempt.operation.plan.terms.name in self.oracle.retired  # type: ignore[attr-defined]  # a consumer's
        if isinstance(error, MissingItems) or (isinstance(error, Trimmed) and not was_retired):
            raise InvariantBroken("I5", f"{attempt.operation}: {type(error).__name__}: {error}")
        expected = (
            (isinstance(error, StoreUnavailable) and attempt.unavailable > 0)
            or (isinstance(error, CursorLost) and error.queue in self.oracle.lost)
            or (isinstance(error, CheckpointConflict | NotParked) and attempt.operation.name != "process")
            or (isinstance(error, QueueDamaged) and (was_retired or error.queue in self.oracle.lost))
            or (isinstance(error, InternalError) and error.queue in self._stumbled)
            or isinstance(error, Trimmed)
        )
        if not expected:
            raise InvariantBroken("I9", f"{attempt.operation}: {type(error).__name__}: {error}")

    def _deliver(self, process: SimulatedProcess, part: Call, fault: str) -> Handled:
        consumer, given = part.args
        batch: Batch = deepcopy(given)
        attempt = process.attempt
        if attempt is None:
            raise RuntimeError(f"{process.name} delivers without an operation")
        if not self._is_redriven(attempt, consumer, batch):
            since = self._since[attempt.number].get((consumer, batch.queue), 0)
            self.consumers.check_batch(consumer, batch, since)
        self.consumers.check_delivers(consumer, self._began[attempt.number])
        self.given.setdefault((consumer, batch.queue), []).extend(batch.seqs)
        told = f"{consumer} is given {batch.queue!r} {list(batch.seqs)}"
        try:
            handled = self._clerk.deliver(consumer, batch)
        except ProcessDied as death:
            self.met["deaths"] += 1
            self.trace.add(process.name, told, fault, f"dies {death}")
            raise
        self.consumers.note_done(consumer, batch, done_through(batch, handled))
        self.met["batches"] += 1
        self.met["handler failures"] += handled.error is not None
        self.first_error = self.first_error or handled.error
        self.trace.add(process.name, told, fault, handled.error or handled.answer or "done")
        return handled

    def _is_redriven(self, attempt: Attempt, consumer: str, batch: Batch) -> bool:
        """Whether this is a dead letter on its own, behind the checkpoint."""
        row = self.control.checkpoints.get((consumer, batch.queue))
        return attempt.operation.name == "redrive" and row is not None and batch.through <= row.seq


def _is_consumers(operation: object) -> bool:
    return isinstance(operation, ConsumerOperation)
