"""Every error of stream_sort, in one tree.

    StreamSortError
    ├── InvalidInput             what was given cannot be used
    │   ├── InvalidQueue         not a usable queue name
    │   └── InvalidMessage       not a storable message: says which field of which message
    │       └── MessageTooLarge  over the size of one item
    ├── SequenceConflict         another message already holds this (queue, seq)
    ├── QueueExists              the queue has begun and cannot start elsewhere
    ├── QueueNotFound            there is no queue of that name
    ├── MissingItems             a released range has a hole
    ├── Trimmed                  released, consumed and deleted: no longer there, and nothing new can take its place
    ├── NotReleased              cannot be trimmed: the queue has not come so far
    ├── NotConsumed              cannot be trimmed: a consumer still needs it
    ├── NotWithdrawn             cannot be withdrawn: released, or could be, or not there
    ├── CursorLost               a cursor row that once existed is gone
    ├── CheckpointConflict       somebody else moved a consumer on meanwhile (retryable)
    ├── HandlerProblem           a handler did or said what cannot be
    │   ├── PartlyDone           raised by handlers: how far a batch was done
    │   ├── TryLater             raised by handlers: not the message's fault, it will pass (retryable)
    │   ├── EffectRefused        a condition of a handler's transaction did not hold
    │   └── TransactionTooLarge  one message's effects do not fit into one transaction
    ├── NotParked                there is nothing to redrive or discard at that place
    ├── QueueDamaged             cannot be discarded: not a message failed, the queue itself is damaged
    ├── ConsumerNotFound         no consumer of that name is registered
    ├── ConsumerActive           a consumer is at work where its checkpoints are to be reset
    ├── FunctionFailed           a function of the stack was asked, and raised
    ├── StoreError               the tables answered with an error
    │   ├── StoreUnavailable     throttled, failing or out of reach until the deadline (retryable)
    │   ├── RowDamaged           a row that others changed so that it cannot be read; the trouble of its queue only
    │   ├── FileMissing          no file where one should be
    │   └── StoreMisconfigured   no call can succeed before somebody changes something
    │       ├── TableNotFound        no such table in this region and account
    │       ├── AccessDenied         the role lacks a permission
    │       └── CredentialsError     no usable AWS credentials
    ├── ArchiveDamaged           files of an archive are missing, changed or contradict each other
    ├── ExportDamaged            files of a point-in-time export are missing, changed or of another kind
    ├── ReplayFailed             Spark gave up on a job
    ├── JoinRefused              what was replayed cannot be joined to its consumer
    ├── LocalStackFailed         the local AWS did not come up
    │   └── PortTaken            something else listens on its port
    ├── InternalError            a bug in stream_sort itself; it is recorded for one queue and stops no other
    └── SettingsError            the configuration cannot work
        └── OtherKeys            a table has other keys than the settings name

A message says what happened, with the values, and what to do. `retryable` on the class says
whether the same call may succeed later with nothing changed.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar

from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_sort.model.outcomes import PutResult

__all__ = [
    "AccessDenied",
    "ArchiveDamaged",
    "CheckpointConflict",
    "ConsumerActive",
    "ConsumerNotFound",
    "CredentialsError",
    "CursorLost",
    "EffectRefused",
    "ExportDamaged",
    "FileMissing",
    "FunctionFailed",
    "HandlerProblem",
    "InternalError",
    "InvalidInput",
    "InvalidMessage",
    "InvalidQueue",
    "JoinRefused",
    "LocalStackFailed",
    "MessageTooLarge",
    "MissingItems",
    "NotConsumed",
    "NotParked",
    "NotReleased",
    "NotWithdrawn",
    "OtherKeys",
    "PartlyDone",
    "PortTaken",
    "QueueDamaged",
    "QueueExists",
    "QueueNotFound",
    "ReplayFailed",
    "RowDamaged",
    "SequenceConflict",
    "SettingsError",
    "StoreError",
    "StoreMisconfigured",
    "StoreUnavailable",
    "StreamSortError",
    "TableNotFound",
    "TransactionTooLarge",
    "Trimmed",
    "TryLater",
]


def kind_of(value: object) -> str:
    """Return the name of a value's class: as Python keeps it, whatever the class says of itself."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return str.__str__(name)


def shown(value: object, length: int = 80) -> str:
    """Return a value as it may stand in an error message: never long, never an error of its own."""
    try:
        text = str.__str__(repr(value))
    except Exception as error:  # noqa: BLE001  # a huge int, or whatever a stranger's __repr__ does
        text = f"<{kind_of(value)}: {kind_of(error)}>"
    return text if len(text) <= length else text[: length - 1] + "…"


def _fact(value: object) -> object:
    """Return what an error can take from process to process: a plain value, or else as it is shown."""
    if isinstance(value, str):
        return str.__str__(value)
    return value if type(value) in {int, float, bool, bytes, type(None)} else shown(value)


class StreamSortError(Exception):
    """Base of all errors raised by stream_sort; goes from process to process with all its facts."""

    retryable: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[StreamSortError], args: tuple[Any, ...], facts: dict[str, Any]) -> StreamSortError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class InvalidInput(StreamSortError):
    """An argument that cannot be used."""


class InvalidQueue(InvalidInput):
    """A queue name that cannot be used."""

    def __init__(self, queue: object, problem: str) -> None:
        super().__init__(f"queue {shown(queue)}: {problem}")
        self.queue = _fact(queue)
        self.problem = problem


class InvalidMessage(InvalidInput):
    """A message that cannot be stored; `field` is the path of what is wrong with it.

    Nothing was stored, unless `stored`: then its queue was opened further on meanwhile, and it will not be released.
    """

    def __init__(
        self, problem: str, *, queue: object = None, seq: object = None, field: str = "", stored: bool = False
    ) -> None:
        where = f"message (queue {shown(queue)}, seq {shown(seq)})"
        super().__init__(f"{where}: field {field!r:.200}: {problem}" if field else f"{where}: {problem}")
        self.problem = problem
        self.queue = _fact(queue)
        self.seq = _fact(seq)
        self.field = field
        self.stored = stored


class MessageTooLarge(InvalidMessage):
    """A message over the size of one item."""

    def __init__(self, size: int | None, limit: int, *, queue: object = None, seq: object = None) -> None:
        measured = f"{size:,} bytes" if size is not None else "more"
        super().__init__(
            f"{measured}, over the limit of {limit:,}; put the payload into S3 and its address into the message",
            queue=queue,
            seq=seq,
        )
        self.size = size
        self.limit = limit


class SequenceConflict(StreamSortError):
    """A different message already holds this (queue, seq); the first one stays.

    Raised by `put_many` after all messages were handled; `result` then has all outcomes.
    """

    def __init__(self, queue: str, seq: int, *, result: PutResult | None = None) -> None:
        others = len(result.conflicts) - 1 if result else 0
        more = f" (and {others} more in this call)" if others else ""
        super().__init__(
            f"queue {queue!r}, seq {seq}: a different message is already stored there{more}; "
            "the first stays. Two producers may be numbering the same queue"
        )
        self.queue = queue
        self.seq = seq
        self.result = result


class QueueExists(StreamSortError):
    """The queue has begun, so its first seq can no longer change."""

    def __init__(self, queue: str, position: int, first_seq: int, *, stored: int | None = None) -> None:
        why = f"seq {stored} is stored" if stored is not None else f"its position is {position}"
        super().__init__(f"queue {queue!r} has begun at first_seq {first_seq}: {why}; it cannot start elsewhere")
        self.queue = queue
        self.position = position
        self.first_seq = first_seq


class QueueNotFound(StreamSortError):
    """There is no queue of that name: nothing was stored in it yet. `meant` are queues of names alike, if known.

    `advice` is what to do if the name is right.
    """

    def __init__(self, queue: str, *, meant: Sequence[str] = (), advice: str = "") -> None:
        text = f"there is no queue {queue!r}"
        if meant:
            text += f"; did you mean {' or '.join(map(repr, meant))}?"
        if advice:
            text += f" {advice[:1].upper()}{advice[1:]}" if meant else f"; {advice}"
        super().__init__(text)
        self.queue = queue
        self.meant = list(meant)
        self.advice = advice


class MissingItems(StreamSortError):
    """A range that should be whole has a hole; `advice` is what to do about it, where more is known than usual."""

    def __init__(self, queue: str, missing: Sequence[range], *, advice: str = "", problem: str = "not stored") -> None:
        first = missing[0]
        # Not len: it knows no more than 2^63.
        is_one = first.stop - first.start == 1
        names = f"seq {first.start}" if is_one else f"seqs {first.start} to {first.stop - 1}"
        usual = "were items deleted, or the range not released yet? "
        usual += f"{program()} audit finds every hole, explain shows the queue's position"
        super().__init__(f"queue {queue!r}: {names} {problem}; {advice or usual}")
        self.queue = queue
        self.missing = list(missing)


class Trimmed(StreamSortError):
    """Everything up to `floor` was released, consumed and deleted; `seq` is that of a message which came too late.

    Nobody knows if such a message is a repeat or a new one: the one it would be compared with is gone.
    `unread` is where a consumer stands that was retired when others trimmed, and came back.
    """

    def __init__(self, queue: str, floor: int, *, seq: int | None = None, unread: int | None = None) -> None:
        if unread is not None:
            problem = (
                f"queue {queue!r} is trimmed up to seq {floor}, and seq {unread} was not consumed before; look for "
                f"what is gone in the archive, if there is one: discard({queue!r}, {unread}, reason) gives it up"
            )
        elif seq is None:
            problem = (
                f"queue {queue!r} is trimmed up to seq {floor}; read from there on, and look for what came before "
                "in the archive, if there is one"
            )
        else:
            problem = (
                f"queue {queue!r}, seq {seq}: everything up to seq {floor} was released, consumed and trimmed; what "
                "comes now, a repeat or a new message, is not kept. If it is a new one, give it the queue's next seq"
            )
        super().__init__(problem)
        self.queue = queue
        self.floor = floor
        self.seq = seq
        self.unread = unread


class NotReleased(StreamSortError):
    """What has not been released cannot be trimmed."""

    def __init__(self, queue: str, through: int, position: int) -> None:
        super().__init__(f"queue {queue!r} is released up to seq {position}; it cannot be trimmed through {through}")
        self.queue = queue
        self.through = through
        self.position = position


class NotConsumed(StreamSortError):
    """What a consumer has not passed, or keeps as a dead letter at `dead`, cannot be trimmed; nothing was deleted."""

    def __init__(self, queue: str, through: int, consumer: str, *, checkpoint: int, dead: int | None = None) -> None:
        why = f"stands at {checkpoint}" if dead is None else f"keeps seq {dead} as a dead letter; redrive or discard it"
        super().__init__(f"queue {queue!r} cannot be trimmed through {through}: consumer {consumer!r} {why}")
        self.queue = queue
        self.through = through
        self.consumer = consumer
        self.checkpoint = checkpoint
        self.dead = dead


class NotWithdrawn(StreamSortError):
    """A message that cannot be withdrawn; nothing was changed. `lowest` is the seq to begin with, if one is stored."""

    def __init__(self, queue: str, seq: int, problem: str, *, lowest: int | None = None) -> None:
        super().__init__(f"queue {queue!r}, seq {seq} cannot be withdrawn: {problem}")
        self.queue = queue
        self.seq = seq
        self.problem = problem
        self.lowest = lowest


class CursorLost(StreamSortError):
    """The cursor row of a queue that had begun is gone; it is never made anew by itself."""

    def __init__(self, queue: str, *, known_position: int | None = None, remedy: str = "") -> None:
        known = f" (last known position: {known_position})" if known_position is not None else ""
        how = remedy or f"{program()} recover {quote(queue)}, or sorter.recover"
        super().__init__(
            f"queue {queue!r} had a cursor row and it is gone{known}. It is not recreated: restore the cursor "
            f"table, or put the row back from what its consumers have done: {how}"
        )
        self.queue = queue
        self.known_position = known_position


class CheckpointConflict(StreamSortError):
    """The consumer's checkpoint in this queue is no longer what was read: another run is at work on it."""

    retryable: ClassVar[bool] = True

    def __init__(self, consumer: str, queue: str) -> None:
        super().__init__(
            f"consumer {consumer!r}, queue {queue!r}: another run moved the checkpoint meanwhile; nothing was changed"
        )
        self.consumer = consumer
        self.queue = queue


class HandlerProblem(StreamSortError):
    """What a handler did or said cannot be; the queue is parked as after any failure of a handler."""


class PartlyDone(HandlerProblem):
    """For handlers to raise: everything up to `last_done` is done and must not come again, the rest failed.

    `raise PartlyDone(seq) from error` keeps the cause: it is what the parked queue shows.
    """

    def __init__(self, last_done: int) -> None:
        super().__init__(f"the handler got as far as seq {last_done}")
        self.last_done = last_done


class TryLater(HandlerProblem):
    """For handlers to raise: what they need is out of order, and no message is to blame.

    The queue is parked and tried again for ever, up to 15 minutes apart; it uses up no attempt of the message, which is
    never set aside for it. `raise PartlyDone(seq) from TryLater("...")` says as much of the rest of a batch.
    """

    retryable: ClassVar[bool] = True


class EffectRefused(HandlerProblem):
    """A condition in a handler's transaction did not hold; nothing of the batch was applied."""

    def __init__(self, queue: str, effects: Sequence[str]) -> None:
        super().__init__(f"queue {queue!r}: the transaction was refused by {', '.join(effects)}")
        self.queue = queue
        self.effects = list(effects)


class TransactionTooLarge(HandlerProblem):
    """The effects of a batch do not fit into one transaction, or touch one item twice.

    A batch is cut in two and tried again; of a single message it is the message's own failure.
    """

    def __init__(self, queue: str, problem: str) -> None:
        super().__init__(f"queue {queue!r}: {problem}")
        self.queue = queue


class NotParked(StreamSortError):
    """Nothing is parked, or dead, where somebody wants to redrive or discard it."""

    def __init__(self, consumer: str, queue: str, seq: int | None) -> None:
        where = f"queue {queue!r}" if seq is None else f"queue {queue!r}, seq {seq}"
        super().__init__(
            f"consumer {consumer!r}: nothing is parked or dead at {where}; see parked() and dead_letters(), "
            f"or {program()} parked list and dead list"
        )
        self.consumer = consumer
        self.queue = queue
        self.seq = seq


class QueueDamaged(StreamSortError):
    """A queue is parked because its tables are damaged: there is no message to give up. `problem` is what is wrong."""

    def __init__(self, consumer: str, queue: str, seq: int, problem: str) -> None:
        super().__init__(
            f"consumer {consumer!r}, queue {queue!r}, seq {seq}: nothing was discarded. The queue is parked because it "
            f"is damaged, and not because a message failed: {problem}. Repair it: put what is missing again, mend what "
            "cannot be read, or, if it is gone for good, reset the consumer past it; a lost cursor row needs "
            f"{program()} recover {quote(queue)}. The queue then goes on by itself, or at once with redrive({queue!r})"
        )
        self.consumer = consumer
        self.queue = queue
        self.seq = seq
        self.problem = problem


class ConsumerNotFound(StreamSortError):
    """No consumer of that name is registered, or it is `retired`; `known` are those that are registered.

    `meant` are those of names alike, if anybody looked.
    """

    def __init__(
        self, consumer: str, known: Sequence[str], *, retired: bool = False, meant: Sequence[str] = ()
    ) -> None:
        there = f"there are {', '.join(map(repr, known))}" if known else "there is none at all"
        there += f"; did you mean {' or '.join(map(repr, meant))}?" if meant else "."
        problem = f"no consumer {consumer!r} is registered; {there} It is registered when it first runs"
        if retired:
            problem = (
                f"consumer {consumer!r} is retired. Its checkpoints are as they were; it is registered again when it "
                "next delivers: run its function, or catch_up"
            )
        super().__init__(problem)
        self.consumer = consumer
        self.known = list(known)
        self.retired = retired


class ConsumerActive(StreamSortError):
    """The consumer committed a moment ago in `queue`, and in `others` more; no checkpoint was reset.

    `force` is how who called says that it is reset all the same.
    """

    def __init__(
        self, consumer: str, queue: str, *, others: int, seconds: float, force: str = "force=True, or --force"
    ) -> None:
        more = f" and {others} more" if others else ""
        super().__init__(
            f"consumer {consumer!r} is at work: queue {queue!r}{more} moved within the last {seconds:g} seconds; "
            f"nothing was reset. Stop it first, or force the reset ({force}): what it has in hand may then come twice"
        )
        self.consumer = consumer
        self.queue = queue
        self.others = others


class FunctionFailed(StreamSortError):
    """A function of the stack was invoked, and raised: `kind` is the name of its error, `said` its text."""

    def __init__(self, function: str, kind: str, said: str) -> None:
        super().__init__(f"function {function!r} failed: {kind}: {said}")
        self.function = function
        self.kind = kind
        self.said = said


class StoreError(StreamSortError):
    """A table answered with an error; `code` and `said` are AWS's own code and text, empty if AWS did not answer."""

    def __init__(self, problem: str, *, table: str = "", operation: str = "", code: str = "", said: str = "") -> None:
        super().__init__(problem)
        self.table = table
        self.operation = operation
        self.code = code
        self.said = said


class StoreUnavailable(StoreError):
    """Throttled, failing or out of reach until the deadline: the outcome of the call is not known."""

    retryable: ClassVar[bool] = True


class RowDamaged(StoreError):
    """A row of a table that cannot be read, because somebody else wrote or changed it; it stops no other queue."""


class FileMissing(StoreError):
    """No file where one should be."""


class StoreMisconfigured(StoreError):
    """A store that no call can use before somebody changes something."""


class TableNotFound(StoreMisconfigured):
    """No such table where the client looked."""


class AccessDenied(StoreMisconfigured):
    """The caller's role lacks a permission."""


class CredentialsError(StoreMisconfigured):
    """No usable AWS credentials."""


class ArchiveDamaged(StreamSortError):
    """Files of an archive are missing, changed or contradict each other; `file` is the first of them."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file


class ReplayFailed(StreamSortError):
    """Spark gave up on a job: a task failed too often, or Spark itself did."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"Spark gave up: {problem}")


class JoinRefused(StreamSortError):
    """A replay has begun, and its consumer cannot go on where it ends; what was replayed stays as it is."""


class ExportDamaged(StreamSortError):
    """Files of a point-in-time export are missing, changed or of another kind; `file` is the first of them."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"{file}: {problem}")
        self.file = file


class LocalStackFailed(StreamSortError):
    """The local AWS could not be started; the message ends with the last lines of its log."""


class PortTaken(LocalStackFailed):
    """Something else listens on the port that the local AWS was given."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken; name another one, or none: then a free one is chosen")
        self.port = port


class InternalError(StreamSortError):
    """A bug in stream_sort itself, found in one queue; `kind` names the exception, which is the cause."""

    def __init__(self, queue: str, error: BaseException) -> None:
        super().__init__(
            f"queue {queue!r}: unexpected {shown(error, 200)}. This is a bug in stream_sort; no other queue is "
            "affected. Please report it, with the traceback"
        )
        self.queue = queue
        self.kind = kind_of(error)
        self.__cause__ = error


def named_error(queue: str, error: Exception) -> StreamSortError:
    """Return an error of ours as it is, and any other one as an InternalError of this queue."""
    return error if isinstance(error, StreamSortError) else InternalError(queue, error)


def raise_unavailable(damaged: Mapping[str, StreamSortError]) -> None:
    """Raise the first of these errors that tells nothing of a row: it may not even be there."""
    for error in damaged.values():
        if isinstance(error, StoreUnavailable):
            raise error


class SettingsError(StreamSortError):
    """A configuration that cannot work."""


class OtherKeys(SettingsError):
    """A table whose own keys are not those that the settings name: another table, or other key names."""

    def __init__(self, problem: str, *, table: str = "") -> None:
        super().__init__(problem)
        self.table = table
