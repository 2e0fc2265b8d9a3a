"""The surroundings of a run: tables, stream, retry queue, handler, trace and counts, and the checks at each step."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from stream_sort.errors import CursorLost, NotConsumed, Trimmed
from stream_sort.model.records import Move
from stream_sort.model.retries import ENDED, is_crash_guard
from stream_sort.testing.simulation.calls import Bug, Call, RefusedEffects, Unavailable
from stream_sort.testing.simulation.consumers import ProcessDied, SimulatedHandler, done_through
from stream_sort.testing.simulation.delivery_claims import DeliveryClaims, names_outage
from stream_sort.testing.simulation.failure import InvariantBroken, Trace
from stream_sort.testing.simulation.functions import CursorStream, RetryMessages
from stream_sort.testing.simulation.operations import Attempt, Operation
from stream_sort.testing.simulation.oracle import Oracle
from stream_sort.testing.simulation.outcome_claims import errors_of, judge
from stream_sort.testing.simulation.process import Program, SimulatedProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from stream_sort.model.batch import Batch
    from stream_sort.model.consumption import Parked
    from stream_sort.testing.simulation.consumers import Handled, OwnHandler
    from stream_sort.testing.simulation.variant import Variant
    from stream_sort.testing.simulation.workload import WorkloadPlan

# For each consumer and queue the seqs that its handler was given, in the order they came.
Given = dict[tuple[str, str], list[int]]
# Calls that change who is registered.
REGISTRATIONS = frozenset({"register", "introduce", "make_ready", "retire"})


class Harness:
    """All that the processes of a run share."""

    def __init__(
        self, plan: WorkloadPlan, variant: Variant, rng: Random, handler: SimulatedHandler | OwnHandler | None = None
    ) -> None:
        self.trace = Trace()
        self.met: Counter[str] = Counter()
        self.world = variant.world()
        self.oracle = Oracle(self.world, plan.options.first_seq)
        self.deliveries = DeliveryClaims(self.oracle)
        self.stream = CursorStream()
        self.retries = RetryMessages()
        self.handler = handler or SimulatedHandler(rng, plan.consumption)
        self.given: Given = {}
        self.first_error: Exception | None = None
        self._program = Program(plan.options, plan.queues, variant.sorter, variant.recorder)
        self._max_advance = plan.options.limits.max_advance
        self._has_consumers = bool(plan.consumption.consumers)
        self._bugs = dict(plan.consumption.bugs)
        self._rng = rng
        self._attempts = 0

    def process(self, name: str) -> SimulatedProcess:
        """Return a process that remembers nothing."""
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
        attempt = Attempt(
            self._attempts,
            operation,
            frozenset(self.oracle.lost),
            {queue: self.oracle.starts(queue) for queue in operation.queues},
            self.deliveries.checkpoints() if self._has_consumers else {},
            self.world.now,
        )
        self._guard(process.begin, attempt)

    def feed(self, process: SimulatedProcess, answer: Any) -> None:
        """Let a process go on with an answer."""
        if isinstance(answer, Unavailable) and process.attempt is not None:
            process.attempt.unavailable += 1
        self._guard(process.feed, answer)

    def apply(self, process: SimulatedProcess, part: Call, fault: str = "") -> Any:
        """Do one part of a call of a process, and check what it did."""
        if part.port == "handler":
            return self._deliver(process, part, fault)
        if part.port == "waker":
            queue, consumer, delay = part.args
            self.retries.send(self.world.now, consumer, queue, delay)
            return self.trace.add(process.name, part, fault)
        if self._meets_a_bug(process, part):
            self.trace.add(process.name, part, "bug")
            return Bug()
        queue, attempt = part.queue, process.attempt
        before = self.world.tables.cursors.get(str(queue))
        answer = self.world.apply(part, self._rng)
        self.trace.add(process.name, part, fault, answer)
        is_write = queue is not None and part.port in {"items", "cursors", "withdrawals"} and not part.is_read
        if is_write and attempt is not None:
            self.oracle.observe(str(queue), attempt)
        self._count(part, answer)
        if self._has_consumers:
            self._observe_control(process, part, answer)
            self.stream.add(before, self.world.tables.cursors.get(str(queue)))
        return answer

    def finish(self, process: SimulatedProcess) -> Operation | None:
        """Judge what an operation says at its end; return it if it is to be delivered again."""
        attempt, result, process.attempt = process.attempt, process.result, None
        if attempt is None:
            return None
        self.trace.add(process.name, f"ends {attempt.operation}", answer=result)
        judge(attempt, result, self.oracle)
        errors = errors_of(result)
        is_retryable = any(error.retryable for error in errors)
        if attempt.operation.consumer is None:
            for kind in (CursorLost, NotConsumed, Trimmed):
                self.met[kind.__name__] += any(isinstance(error, kind) for error in errors)
            self.met["operations failed"] += is_retryable
        return attempt.operation if is_retryable else None

    def delete_some(self) -> None:
        """Delete some released messages of a queue, as retention would: not that at the position, and no tombstones."""
        tables = self.world.tables
        if not tables.cursors:
            return
        queue = self._rng.choice(sorted(tables.cursors))
        position, held = tables.cursors[queue].position, tables.queue(queue)
        released = sorted(seq for seq, one in held.entries().items() if seq < position and not one.is_tombstone)
        seqs = released[: self._rng.choice((1, len(released)))]
        if seqs:
            self.met["trimmed"] += len(seqs)
            for seq in seqs:
                held.empty(seq)
            self.oracle.trim(queue, seqs)
            self.trace.add("outside", f"trims {queue!r} {seqs}")

    def lose_a_cursor(self, processes: Sequence[SimulatedProcess]) -> None:
        """Delete the row of a queue that holds proof of it, unless somebody is just about to make a row for it."""
        tables = self.world.tables
        rows = [
            queue
            for queue in sorted(tables.cursors)
            if tables.queue(queue).slots and not any(process.may_create(queue) for process in processes)
        ]
        if rows:
            queue = self._rng.choice(rows)
            self.met["cursors lost"] += 1
            del tables.cursors[queue]
            self.oracle.lost.add(queue)
            self.trace.add("outside", f"loses the cursor row of {queue!r}")

    def _guard(self, on: Callable[[Any], None], value: Any) -> None:
        try:
            on(value)
        except Exception as error:  # whatever a service lets through is the finding
            raise InvariantBroken("I9", f"not a named error: {error!r}") from error

    def _deliver(self, process: SimulatedProcess, part: Call, fault: str) -> Handled:
        """Call the handler of a consumer with a batch."""
        consumer, given = part.args
        batch: Batch = deepcopy(given)
        attempt = process.attempt
        if attempt is None:
            raise RuntimeError(f"{process.name} delivers without an operation")
        self.deliveries.check_delivery(consumer, batch, attempt)
        self.given.setdefault((consumer, batch.queue), []).extend(batch.seqs)
        what = f"{consumer} is given {batch.queue!r} {list(batch.seqs)}"
        try:
            handled = self.handler.deliver(consumer, batch)
        except ProcessDied as death:
            self.met["deaths"] += 1
            self.trace.add(process.name, what, fault, f"dies {death}")
            raise
        self.deliveries.note_done(consumer, batch, done_through(batch, handled))
        self.met["batches"] += 1
        self.met["handler failures"] += handled.error is not None
        self.first_error = self.first_error or handled.error
        self.trace.add(process.name, what, fault, handled.error or handled.answer or "done")
        return handled

    def _meets_a_bug(self, process: SimulatedProcess, part: Call) -> bool:
        """Let our own code fail, as planned, where a consumer's run reads what it is to deliver."""
        if not self._bugs or part.key != "items.page" or process.attempt is None:
            return False
        queue = str(part.queue)
        if not self._bugs.get(queue) or process.attempt.operation.name != "process":
            return False
        self._bugs[queue] -= 1
        self.oracle.met_bugs.add(queue)
        self.met["bugs"] += 1
        return True

    def _observe_control(self, process: SimulatedProcess, part: Call, answer: Any) -> None:
        """Check and count what a call did to the control table."""
        if part.port in {"checkpoints", "dead_letters", "subscriptions"}:
            if part.name in REGISTRATIONS and process.attempt is not None:
                self.deliveries.check_registered(process.attempt.operation.name)
                self.met["retired"] += part.name == "retire"
            elif part.name in {"create", "commit"}:
                self.deliveries.check_checkpoint(part.args[0].consumer, part.args[0].queue)
                if part.name == "commit" and not isinstance(answer, RefusedEffects):
                    self._count_commit(part, answer)
            elif part.name == "settle":
                self.deliveries.check_effects()
                self.met["messages done"] += answer is True and part.args[2] is None
        if isinstance(answer, RefusedEffects):
            self.met["effects refused"] += 1
            self.first_error = self.first_error or answer.problem

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

    def _count_commit(self, part: Call, answer: Any) -> None:
        if not answer.won:
            self.met["lost commits"] += 1
            return
        old, new, effects, dead = part.args
        given = self.given.get((new.consumer, new.queue), ())
        self.met["messages done"] += dead is None and sum(old.seq < seq <= new.seq for seq in set(given))
        self.deliveries.check_blame(new, dead)
        self._count_parked(new.parked)
        self.met["outages waited for"] += new.parked is not None and names_outage(new.parked.error)
        self.met["effects"] += len(effects)
        self.met["dead letters"] += dead is not None
        self.met["deadly ones set aside"] += dead is not None and dead.error.startswith(ENDED)

    def _count_parked(self, parked: Parked | None) -> None:
        if parked is None or not is_crash_guard(parked):
            self.met["parked"] += parked is not None
        else:
            self.met["precautions" if parked.next_try is not None else "deadly ones parked for good"] += 1
