"""What is kept of consumers, as values: checkpoints, parked queues, dead letters; and when to try again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import (
    PartlyDone,
    SettingsError,
    StoreMisconfigured,
    StoreUnavailable,
    TryLater,
    kind_of,
    shown,
)
from stream_sort.model.message import MAX_SEQ, MIN_SEQ

if TYPE_CHECKING:
    from stream_sort.errors import StreamSortError
    from stream_sort.model.records import Cursor

CONSUMER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
FIRST_DELAY = 2.0
# A message that fails for the first time is tried again in the same run, after a moment.
TRIES_IN_PLACE = 2
# SQS delays a message by at most 15 minutes.
LONGEST_DELAY = 900.0
MAX_ERROR = 1_000
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
        """Whether `new` is in its place: a write whose reply was lost, and that was sent again, lost to itself."""
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
    """The checkpoints of many queues that can be read, and the queues whose rows cannot be."""

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

    letters: tuple[DeadLetter, ...]
    next: Any = None


@dataclass(frozen=True, slots=True)
class Wake:
    """A reason to look at a queue. `position` is what the wake says of it: a hint; `records` are to be answered for."""

    queue: str
    position: int | None = None
    records: tuple[str, ...] = ()


@dataclass(slots=True)
class Served:
    """What one wake of one queue came to.

    `ended` is "done", "parked" (now), "waiting" (parked before, and its time has not come), "overtaken" (another
    run is at work), "handed over" (time was short) or "failed" (`error` says why; nothing could be recorded). `failure`
    is what the handler raised, with its traceback, when the queue is parked for that.
    """

    queue: str
    delivered: int = 0
    ended: str = "done"
    handler_failures: int = 0
    dead: list[DeadLetter] = field(default_factory=list)
    parked: Parked | None = None
    error: Exception | None = None
    failure: Exception | None = field(default=None, compare=False, repr=False)


def delay_before(attempt: int) -> float:
    """How long to wait after so many failed attempts: doubles up to a cap."""
    return min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(max(attempt, 1) - 1, 20))


def attempts_before(row: Checkpoint, seq: int) -> int:
    """How often a message failed before this time; a queue that is damaged keeps the count, and adds nothing to it."""
    return row.parked.attempts if row.parked is not None and row.parked.seq == seq else 0


def parked_by(row: Checkpoint, seq: int, error: Exception, attempts: int, now: float) -> Parked:
    """The queue parked at a message that failed, to be tried again after a while."""
    return Parked(row.queue, seq, told(error), attempts, _since(row, seq, now), now + delay_before(attempts))


def parked_in_outage(row: Checkpoint, seq: int, error: Exception, attempts: int, now: float) -> Parked:
    """The queue parked although no message is at fault, to be tried again after as long as it has waited so far."""
    since = _since(row, seq, now)
    delay = min(LONGEST_DELAY, max(FIRST_DELAY, now - since))
    return Parked(row.queue, seq, told(error), attempts, since, now + delay)


def is_blameless(error: Exception) -> bool:
    """Whether an error is the fault of no message: what a handler needs is out of order."""
    fault = _cause_of(error) if isinstance(error, PartlyDone) else error
    # By its type: what a cause says of its class may raise.
    return issubclass(type(fault), TryLater | StoreUnavailable | StoreMisconfigured)


def _cause_of(error: BaseException) -> BaseException | None:
    """Return the cause of an error; None if it cannot be read."""
    try:
        return error.__cause__
    except Exception:  # noqa: BLE001  # whatever a property of a stranger's class does
        return None


def _since(row: Checkpoint, seq: int, now: float) -> float:
    return row.parked.since if row.parked is not None and row.parked.seq == seq else now


def told(error: BaseException) -> str:
    """An error as it is kept: its kind and message, never long, and text that every table takes."""
    cause = _cause_of(error)
    text = _told(error) + (f" ({_told(cause)})" if cause is not None else "")
    return shortened(text.encode("utf-8", "replace").decode())


def shortened(text: str) -> str:
    """Return a text as it is, or as much of it as is kept of an error."""
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "…"


def _told(error: BaseException) -> str:
    kind = kind_of(error)
    try:
        return f"{kind}: {error}"
    except Exception as broken:  # noqa: BLE001  # whatever a stranger's __str__ does
        return f"{kind}: <{kind_of(broken)}>"


def check_consumer(name: object) -> str:
    """A usable consumer name."""
    if not isinstance(name, str) or not CONSUMER_NAME.fullmatch(name):
        raise SettingsError(f"consumer {shown(name)}: a name has 1 to 64 letters, digits and any of _ . -")
    return name


def check_start(start: object) -> str:
    """Where a consumer starts, as text: "earliest", "latest" or a seq."""
    if isinstance(start, str) and start in {EARLIEST, LATEST}:
        return start
    is_number = isinstance(start, int) and not isinstance(start, bool)
    if is_number or (isinstance(start, str) and re.fullmatch(r"-?[0-9]{1,20}", start)):
        seq = int(str(start))
        if MIN_SEQ <= seq <= MAX_SEQ:
            return str(seq)
    raise SettingsError(f"start is {shown(start)}; it must be 'earliest', 'latest' or a seq")


def first_checkpoint(start: str, cursor: Cursor) -> int:
    """The checkpoint of a consumer that comes to a queue for the first time."""
    return cursor.start if start in {EARLIEST, LATEST} else max(int(start) - 1, cursor.start)
