"""What a call did, as values that users hold: Advance, PutResult, Skip, QueueState."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_sort.errors import StreamSortError
    from stream_sort.model.gap_policy import GapPolicy


class Status(StrEnum):
    """The outcome of one put; exactly one of them, or a named error."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a queue came: from `old` to `new`, of which `released` seqs by this very call.

    Ask `accepted` whether the put stored the message, and `moved` whether anything was released: an advance is
    always true, whatever its length.
    Other writers may have moved the cursor in between; what they released is theirs to count, so
    that the lengths of all advances add up to the position. A move whose reply was lost is counted by nobody.
    """

    queue: str
    old: int
    new: int
    released: int = 0
    status: Status | None = None

    @property
    def accepted(self) -> bool:
        """Return True if the put stored this message as a new one; False for a duplicate, a conflict and a late one."""
        return self.status is Status.ACCEPTED

    @property
    def moved(self) -> bool:
        """Return True if this call released anything."""
        return self.released > 0

    def __len__(self) -> int:
        return self.released

    def __bool__(self) -> bool:
        # A message that is stored and waits for an earlier one released nothing: `if sorter.put(...)` must not read
        # that as a failure.
        return True


@dataclass(frozen=True, slots=True)
class Skip(Advance):
    """An advance after a skip; `skipped` lists the seqs that got a tombstone by this call."""

    skipped: tuple[int, ...] = ()


@dataclass(slots=True)
class PutResult:
    """What became of many messages; all lists hold messages in the order they came, as the objects that were given.

    An object that was changed since it was given is listed as what it said then.
    `outcomes` holds one outcome for each message, in the order given: its Status, or the error that kept it out.
    `rejected` pairs each refused or not stored message with its error. `stalled` pairs a queue whose
    messages are stored but which could not be advanced with the error: put again, or let a sweep do it. Only a put
    tells if the queue was trimmed, or opened further on, in the meantime, so that it has no place for them.
    `out_of_order` counts, for each queue, the accepted messages that came after one with a higher seq, as far as this
    call saw that: in the call itself, or stored by others before.
    `unreleased` are the queues that were not advanced to the end because the time was over: their messages are
    stored, and a sweep releases them.
    """

    accepted: int = 0
    duplicates: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[tuple[Any, StreamSortError]] = field(default_factory=list)
    stalled: list[tuple[str, StreamSortError]] = field(default_factory=list)
    by_queue: dict[str, Advance] = field(default_factory=dict)
    outcomes: list[Status | StreamSortError] = field(default_factory=list)
    unreleased: list[str] = field(default_factory=list)
    out_of_order: dict[str, int] = field(default_factory=dict)

    @property
    def advances(self) -> list[Advance]:
        """One advance for each queue touched, in the order of first touch."""
        return list(self.by_queue.values())

    @property
    def released(self) -> int:
        """Return how many seqs this call released, over all queues."""
        return sum(map(len, self.by_queue.values()))

    def count(self, outcome: Status | StreamSortError, document: Any) -> None:
        """Note the outcome of the next message."""
        self.outcomes.append(outcome)
        match outcome:
            case Status.ACCEPTED:
                self.accepted += 1
            case Status.DUPLICATE:
                self.duplicates.append(document)
            case Status.CONFLICT:
                self.conflicts.append(document)
            case Status.LATE:
                self.late.append(document)
            case _:
                self.rejected.append((document, outcome))

    def join(self, advance: Advance, *, complete: bool = True) -> None:
        """Note a further advance of a queue, after the ones before; `complete` if it went to the end."""
        if complete and advance.queue in self.unreleased:
            self.unreleased.remove(advance.queue)
        elif not complete and advance.queue not in self.unreleased:
            self.unreleased.append(advance.queue)
        before = self.by_queue.get(advance.queue)
        if before is None:
            self.by_queue[advance.queue] = advance
            return
        # Advances may be told in another order than they were made.
        moved = [one.old for one in (before, advance) if one.moved]
        old = min(moved, default=advance.old)
        self.by_queue[advance.queue] = Advance(
            advance.queue, old, max(before.new, advance.new), before.released + advance.released
        )


@dataclass(frozen=True, slots=True)
class LateMessage:
    """A message that came after its seq was skipped; kept beside the tombstone, never delivered."""

    seq: int
    message: dict[str, Any]
    reason: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """Why a queue is where it is. Times are seconds since the epoch.

    `skipped_ahead` are seqs that were skipped beyond all that waits, with seqs missing before them: nobody waits for
    what is missing there, so neither `gaps` nor `stored_beyond` counts them.
    `complete` is False when there was more to look at than the limit of the call: then `gaps`,
    `stored_beyond`, `skipped` and `late` show what was found within it. `floor` is how far the queue is trimmed,
    `withdrawn` how many messages were withdrawn from it.
    """

    queue: str
    position: int
    first_seq: int
    highest_stored: int | None
    gaps: list[range]
    stored_beyond: int
    waiting_since: float | None
    policy: GapPolicy
    skipped: list[int]
    late: list[LateMessage]
    complete: bool
    remedy: str
    floor: int | None = None
    withdrawn: int = 0
    skipped_ahead: list[int] = field(default_factory=list)

    @property
    def waiting(self) -> bool:
        """Return True if messages wait beyond a gap."""
        return bool(self.gaps)
