"""Claims on what an operation returns or raises: I6 (one true outcome a message), I9 and I10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.errors import (
    CheckpointConflict,
    CursorLost,
    InternalError,
    InvalidMessage,
    MissingItems,
    NotConsumed,
    NotParked,
    NotReleased,
    NotWithdrawn,
    QueueDamaged,
    QueueExists,
    QueueNotFound,
    SequenceConflict,
    StoreUnavailable,
    StreamSortError,
    Trimmed,
)
from stream_sort.model.message import same_value
from stream_sort.model.outcomes import Advance, PutResult, Skip, Status
from stream_sort.model.withdrawal import Withdrawal
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.testing.simulation.operations import Attempt, Failed, Operation
from stream_sort.upkeep.sweep import Sweep

if TYPE_CHECKING:
    from stream_sort.testing.simulation.oracle import Oracle

TRIES_AGAIN = frozenset({"put_many", "sweep", "sweep_all", "broken_sweep"})


def judge(attempt: Attempt, result: Any, oracle: Oracle) -> None:
    """Raise InvariantBroken if the result of an attempt is not true."""
    if attempt.operation.consumer is not None:
        if isinstance(result, Failed):
            _judge_consumer(attempt, attempt.operation.consumer.terms.name, result.error, oracle)
        return
    errors = errors_of(result)
    _judge_errors(attempt, errors, oracle)
    _judge_broken(attempt.operation, errors)
    _judge_lost(attempt, result)
    if isinstance(result, Failed) and isinstance(result.error, SequenceConflict):
        result = result.error.result or Advance(attempt.operation.queue, 0, 0, status=Status.CONFLICT)
    stalled = {queue for queue, _ in result.stalled} if isinstance(result, PutResult) else set()
    for message, status in statuses(attempt, result):
        _judge_status(attempt, message, status, oracle)
        if status is Status.ACCEPTED and message["queue"] not in stalled:
            _judge_accepted(attempt, message, oracle)
    if isinstance(result, Withdrawal) and not (result.seq == attempt.operation.argument and oracle.has_kept(result)):
        raise InvariantBroken("I6", f"{attempt.operation} answered {result}, which is not kept")
    if isinstance(result, Skip):
        _judge_skip(attempt, result, oracle)
    for advance in advances_of(result):
        if len(advance) > attempt.moved[advance.queue] or (advance.moved and advance.old >= advance.new):
            raise InvariantBroken("I6", f"{advance} released more than the {attempt.moved[advance.queue]} it moved")
        oracle.count_released(advance.queue, len(advance))


def errors_of(result: Any) -> list[StreamSortError]:
    """Return every error that a result reports."""
    if isinstance(result, Failed):
        inner = result.error.result if isinstance(result.error, SequenceConflict) else None
        return [result.error, *errors_of(inner)]
    if isinstance(result, PutResult):
        return [error for _, error in (*result.rejected, *result.stalled)]
    if isinstance(result, Sweep):
        watch = [] if result.watch_error is None else [result.watch_error]
        return [*(error for _, error in result.failed), *watch]
    return []


def advances_of(result: Any) -> list[Advance]:
    """Return every advance that a result reports."""
    if isinstance(result, Advance):
        return [result] if result.queue else []
    if isinstance(result, PutResult):
        return result.advances
    return result.advanced if isinstance(result, Sweep) else []


def statuses(attempt: Attempt, result: Any) -> list[tuple[dict[str, Any], Status]]:
    """Return the outcome of each message that got one; messages are known by their identity."""
    messages = attempt.operation.messages
    if isinstance(result, Advance) and result.status is not None:
        return [(messages[0], result.status)]
    if not isinstance(result, PutResult):
        return []
    named = [(message, Status.DUPLICATE) for message in result.duplicates]
    named += [(message, Status.CONFLICT) for message in result.conflicts]
    named += [(message, Status.LATE) for message in result.late]
    known = [id(message) for message, _ in named] + [id(message) for message, _ in result.rejected]
    accepted = [(message, Status.ACCEPTED) for message in messages if id(message) not in known]
    if len(accepted) != result.accepted or len(set(known)) != len(known):
        raise InvariantBroken("I6", f"{len(messages)} messages, but not one outcome for each: {result}")
    return accepted + named


def _judge_status(attempt: Attempt, message: dict[str, Any], status: Status, oracle: Oracle) -> None:
    entries = oracle.contents(message)
    if not entries and oracle.is_trimmed(message["queue"], message["seq"]):
        return
    stored = [one for one in entries if not one.entry.is_tombstone]
    same = [one for one in stored if same_value(one.entry.document, message)]
    late = [one.entry.late for one in entries if one.entry.late is not None]
    true = {
        Status.ACCEPTED: any(entry.attempt == attempt.number for entry in same),
        Status.DUPLICATE: bool(same),
        Status.CONFLICT: len(same) < len(stored) or any(not same_value(kept, message) for kept in late),
        Status.LATE: any(same_value(kept, message) for kept in late),
    }
    if not true[status]:
        raise InvariantBroken("I6", f"{message} was called {status}; its slot held {[one.entry for one in entries]}")
    if status in {Status.ACCEPTED, Status.DUPLICATE}:
        oracle.promise(message)


def _judge_accepted(attempt: Attempt, message: dict[str, Any], oracle: Oracle) -> None:
    """I5: what is accepted is released, but not where a trim was before. Of a stalled queue nobody could know."""
    is_first = any(entry.attempt == attempt.number for entry in oracle.contents_since_withdrawn(message)[:1])
    if not is_first and message["seq"] in oracle.cut[message["queue"]]:
        raise InvariantBroken("I5", f"{message} was called accepted below the floor, where it is never released")


def _judge_skip(attempt: Attempt, skip: Skip, oracle: Oracle) -> None:
    for seq in skip.skipped:
        entries = oracle.contents({"queue": skip.queue, "seq": seq})
        if not any(one.attempt == attempt.number and one.entry.is_tombstone for one in entries):
            raise InvariantBroken("I6", f"{skip.queue}: seq {seq} was called skipped; its slot held {entries}")


def _judge_consumer(attempt: Attempt, consumer: str, error: StreamSortError, oracle: Oracle) -> None:
    """I5, I9: a consumer's error is named, and calls missing or trimmed only what is."""
    was_retired = consumer in oracle.retired
    if isinstance(error, MissingItems) or (isinstance(error, Trimmed) and not was_retired):
        raise InvariantBroken("I5", f"{attempt.operation}: {type(error).__name__}: {error}")
    expected = (
        (isinstance(error, StoreUnavailable) and attempt.unavailable > 0)
        or (isinstance(error, CursorLost) and error.queue in oracle.lost)
        or (isinstance(error, CheckpointConflict | NotParked) and attempt.operation.name != "process")
        or (isinstance(error, QueueDamaged) and (was_retired or error.queue in oracle.lost))
        or (isinstance(error, InternalError) and error.queue in oracle.met_bugs)
        or isinstance(error, Trimmed)
    )
    if not expected:
        raise InvariantBroken("I9", f"{attempt.operation}: {type(error).__name__}: {error}")


def _judge_errors(attempt: Attempt, errors: list[StreamSortError], oracle: Oracle) -> None:
    operation = attempt.operation
    failed = [error for error in errors if isinstance(error, StoreUnavailable)]
    # These try what failed once more, behind all others; put_many with little time may not try some things at all.
    was_healed = operation.name in TRIES_AGAIN and not failed
    had_little_time = operation.name == "put_many" and operation.argument is not None
    if bool(failed) is not bool(attempt.unavailable) and not was_healed and not had_little_time:
        raise InvariantBroken(
            "I10", f"{operation}: {attempt.unavailable} calls were not answered, {len(failed)} errors were reported"
        )
    for error in errors:
        if isinstance(error, MissingItems) or (isinstance(error, Trimmed) and error.unread is not None):
            raise InvariantBroken("I5", f"{operation}: {error}")
        expected = (
            isinstance(error, StoreUnavailable)
            or (isinstance(error, CursorLost) and error.queue in oracle.lost)
            or (isinstance(error, InvalidMessage) and _refused(attempt, error, oracle))
            or (isinstance(error, SequenceConflict) and bool(operation.messages))
            or (isinstance(error, QueueExists) and operation.name == "open")
            or (isinstance(error, Trimmed) and oracle.is_trimmed(error.queue, error.seq))
            or (isinstance(error, NotReleased | NotConsumed | QueueNotFound) and operation.name == "trim")
            or (isinstance(error, InternalError) and (operation.name, operation.queue) == ("broken_sweep", error.queue))
            or (isinstance(error, NotWithdrawn | QueueNotFound) and operation.name == "withdraw")
        )
        if not expected:
            raise InvariantBroken("I9", f"{operation}: {type(error).__name__}: {error}")


def _judge_broken(operation: Operation, errors: list[StreamSortError]) -> None:
    """I7: a bug that a sweep met in a queue is named for that queue."""
    if operation.name == "broken_sweep" and not any(isinstance(error, InternalError) for error in errors):
        raise InvariantBroken("I7", f"{operation} met a bug, and said nothing of it")


def _refused(attempt: Attempt, error: InvalidMessage, oracle: Oracle) -> bool:
    queue, seq = str(error.queue), error.seq
    return isinstance(seq, int) and oracle.refuses(queue, seq, attempt.starts[queue])


def _judge_lost(attempt: Attempt, result: Any) -> None:
    """I10: a queue whose row was lost before the operation began must not be worked on as if nothing had happened."""
    lost = attempt.operation.queues & attempt.lost
    worked_on = lost & {advance.queue for advance in advances_of(result)}
    if worked_on or (lost and not isinstance(result, Failed | PutResult)):
        raise InvariantBroken("I10", f"{attempt.operation}: the cursor row is lost, and the answer was {result}")
