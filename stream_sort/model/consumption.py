"""What is kept of consumers, as values: checkpoints, parked queues, dead letters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stream_sort.errors import SettingsError, shown
from stream_sort.model.message import MAX_SEQ, MIN_SEQ

if TYPE_CHECKING:
    from stream_sort.errors import StreamSortError
    from stream_sort.model.records import Cursor

CONSUMER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
EARLIEST = "earliest"
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Parked:
    """A queue that one consumer cannot get past: `seq` failed, it and all behind it wait.

    `next_try` is None when it is not tried again by itself: redrive or discard it. `attempts` is how often the handler
    was given the message by itself and failed, or died, of it. `damaged` says that not the handler failed but the
    queue: it has a hole, a row that cannot be read, or its cursor is lost.
    """

    queue: str
    seq: int
    error: str
    attempts: int
    since: float
    next_try: float | None
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that a consumer gave up on; it stays in the items table.

    `discarded` is the reason, if it was; `run` names the redrive that is trying it, or died of it.
    """

    queue: str
    seq: int
    error: str
    attempts: int
    since: float
    next_try: None = None
    discarded: str | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a consumer is in a queue: everything up to `seq` is done.

    `version` counts every change and `run` names who made it: a commit succeeds only on the version it read.
    `began` is where the messages begin that the consumer has had, one after another, up to `seq`; None stands for
    `seq` itself, on a row that is new or that an older version wrote. `(replayed_after, replayed_through]` is what it
    has had ahead of `seq`, before it was reset, until it is there again.
    """

    consumer: str
    queue: str
    seq: int
    version: int = 0
    run: str = ""
    committed_at: float | None = None
    parked: Parked | None = None
    replayed_through: int | None = None
    replayed_after: int | None = None
    began: int | None = None

    def moved(self, seq: int, run: str, now: float, parked: Parked | None = None) -> Checkpoint:
        """Return the row that a commit puts in its place."""
        after, through = self.replayed_after, self.replayed_through
        if through is not None and through <= seq:
            after = through = None
        return Checkpoint(
            self.consumer, self.queue, seq, self.version + 1, run, now, parked, through, after, self._first()
        )

    def reset(self, seq: int, run: str, now: float) -> Checkpoint:
        """Return the row that a reset puts in its place. What it passes over the consumer has not had.

        Of two ranges ahead the longer one is kept: the other one comes as if it were new.
        """
        had = self._had()
        began = next((after for after, through in had if after < seq <= through), seq)
        ahead = [(max(after, seq), through) for after, through in had if through > seq]
        row = Checkpoint(self.consumer, self.queue, seq, self.version + 1, run, now, began=began)
        if not ahead:
            return row
        after, through = max(ahead, key=lambda some: some[1] - some[0])
        return replace(row, replayed_after=after, replayed_through=through)

    def is_write_of(self, other: Checkpoint) -> bool:
        """Return True if both are one write: a version is written by one run only."""
        return (self.version, self.run) == (other.version, other.run)

    def is_replay(self, through: int) -> bool:
        """Return True if the consumer has had everything from the checkpoint up to a seq, before it was reset."""
        after, end = self.replayed_after, self.replayed_through
        return after is not None and end is not None and after <= self.seq and through <= end

    def has_had(self, seq: int) -> bool:
        """Return True if the consumer has had a seq, and False if a reset passed it over, as far as is known."""
        return any(after < seq <= through for after, through in self._had())

    def border(self) -> int | None:
        """Return the next seq ahead at which what the consumer has had begins or ends: no batch goes past it."""
        borders = (self.replayed_after, self.replayed_through)
        return next((seq for seq in borders if seq is not None and seq > self.seq), None)

    def _first(self) -> int:
        return self.seq if self.began is None else self.began

    def _had(self) -> list[tuple[int, int]]:
        """Return the ranges `(after, through]` that the consumer has had, as far as is known."""
        after, through = self.replayed_after, self.replayed_through
        if after is None or through is None:
            return [(self._first(), self.seq)]
        return [(self._first(), through)] if after <= self.seq else [(self._first(), self.seq), (after, through)]


@dataclass(frozen=True, slots=True)
class Commit:
    """What a conditional commit did; `checkpoint` is the row as it stands now, None if there is none."""

    won: bool
    checkpoint: Checkpoint | None

    def put(self, new: Checkpoint) -> bool:
        """Return True if `new` is in its place: a write that was sent again after a lost reply lost to itself."""
        return self.won or (self.checkpoint is not None and self.checkpoint.is_write_of(new))


@dataclass(frozen=True, slots=True)
class Standing:
    """A consumer's checkpoint in a queue, the queue's cursor, and whether the slot that was asked for is taken."""

    checkpoint: Checkpoint | None
    cursor: Cursor | None
    taken: bool | None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A consumer and where it starts; not `ready` while the checkpoints of a "latest" one are being set.

    `retired_at` is when it was retired; nothing waits for it until it runs again.
    """

    name: str
    start: str
    since: float
    ready: bool = True
    retired_at: float | None = None

    @property
    def is_retired(self) -> bool:
        """Return True if it was retired and has not delivered since."""
        return self.retired_at is not None


@dataclass(frozen=True, slots=True)
class Reset:
    """A checkpoint that is to be set elsewhere: from `old` to `new`, in a queue that is released up to `position`.

    `active` says that the consumer committed there a moment ago. `outcome` is "planned", "reset", "overtaken": the
    consumer moved meanwhile, and nothing was changed; or "failed": it is not known whether it was. `error` says why,
    or, of one that was reset, why the consumer was not woken: then the sweep does it.
    """

    queue: str
    old: int
    new: int
    position: int
    active: bool = False
    outcome: str = "planned"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ParkedPage:
    """Some parked queues of a listing, and where to go on (None: this was the last page).

    `damaged` are queues whose rows are listed and cannot be read.
    """

    parked: tuple[Parked, ...]
    next: Any = None
    damaged: dict[str, StreamSortError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoundCheckpoints:
    """The checkpoints of many queues that can be read, and the queues whose rows cannot be, or got no answer."""

    rows: dict[str, Checkpoint]
    damaged: dict[str, StreamSortError] = field(default_factory=dict)

    def whole(self) -> dict[str, Checkpoint]:
        """Return the checkpoints; raises if one of them cannot be read."""
        for error in self.damaged.values():
            raise error
        return self.rows


@dataclass(frozen=True, slots=True)
class Consumers:
    """The consumers that can be read, retired or not, by name; and those whose rows cannot be."""

    rows: dict[str, Subscription]
    damaged: dict[str, StreamSortError] = field(default_factory=dict)

    def active(self) -> list[Subscription]:
        """Return those that are not retired."""
        return [one for one in self.rows.values() if not one.is_retired]

    def named(self, name: str) -> Subscription | None:
        """Return one that is not retired; raises if its own row cannot be read."""
        if name in self.damaged:
            raise self.damaged[name]
        return next((one for one in self.active() if one.name == name), None)


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """Some dead letters of a listing, and where to go on (None: this was the last page)."""

    dead: tuple[DeadLetter, ...]
    next: Any = None


@dataclass(frozen=True, slots=True)
class Wake:
    """A reason to look at a queue. `position` is what the wake says of it: a hint; `records` are to be answered for."""

    queue: str
    position: int | None = None
    records: tuple[str, ...] = ()


class Outcome(StrEnum):
    """What a run came to in one queue."""

    DONE = "done"
    # Just now, or before, and its time has not come.
    PARKED = "parked"
    WAITING = "waiting"
    # Another run is at work.
    OVERTAKEN = "overtaken"
    # Time was short.
    HANDED_OVER = "handed over"
    # Nothing could be recorded.
    FAILED = "failed"


@dataclass(slots=True)
class Served:
    """What one run did in one queue.

    `error` says why it FAILED, or what the tables of a queue that is PARKED lack. `failure` is what the handler raised,
    with its traceback, when the queue is parked for that; `causes` the same of the first few that are `dead`, by seq.
    """

    queue: str
    delivered: int = 0
    ended: Outcome = Outcome.DONE
    handler_failures: int = 0
    dead: list[DeadLetter] = field(default_factory=list)
    parked: Parked | None = None
    error: Exception | None = None
    failure: Exception | None = field(default=None, compare=False, repr=False)
    causes: dict[int, Exception] = field(default_factory=dict, compare=False, repr=False)


def check_consumer(name: object) -> str:
    """Return a usable consumer name."""
    if not isinstance(name, str) or not CONSUMER_NAME.fullmatch(name):
        raise SettingsError(f"consumer {shown(name)}: a name has 1 to 64 letters, digits and any of _ . -")
    return name


def check_start(start: object) -> str:
    """Return where a consumer starts, as text: "earliest", "latest" or a seq."""
    if isinstance(start, str) and start in {EARLIEST, LATEST}:
        return start
    is_number = isinstance(start, int) and not isinstance(start, bool)
    if is_number or (isinstance(start, str) and re.fullmatch(r"-?[0-9]{1,20}", start)):
        seq = int(str(start))
        if MIN_SEQ <= seq <= MAX_SEQ:
            return str(seq)
    raise SettingsError(f"start is {shown(start)}; it must be 'earliest', 'latest' or a seq")


def first_checkpoint(start: str, cursor: Cursor) -> int:
    """Return the checkpoint of a consumer that comes to a queue for the first time."""
    return cursor.start if start in {EARLIEST, LATEST} else max(int(start) - 1, cursor.start)
