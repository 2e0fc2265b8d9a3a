"""What is read from and written to the tables, as values: a cursor row, an arrival, a page. Slots have their module."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_sort.errors import StreamSortError
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap
    from stream_sort.model.message import Message
    from stream_sort.model.slots import Slot

# The tables keep times in milliseconds.
MARK_STEP = 0.001
# Whoever marks a queue and whoever moves it have clocks of their own, and a move that is tried again keeps its time.
CLOCKS_DIFFER = 60.0


@dataclass(frozen=True, slots=True)
class Cursor:
    """One queue's row in the cursor table. Times are seconds since the epoch.

    `waiting_since` is the waiting mark. A negative one is in doubt: somebody is about to take it away, so whoever
    needs it sets it again. It still counts as waiting for a sweep, should that somebody die.
    `last_mark` is the mark, or the last one there was: no mark comes twice, so it tells whether there was one since.
    `floor` is how far the queue is trimmed, None if it never was; it never goes back.
    `nudged_at` is when consumers were last woken through the row.
    `withdrawals` is the number of the last withdrawal, 0 if there was none; it never goes back.
    `gap` is the gap at which a sweep last found the queue waiting; it stays when the queue moves on.
    """

    queue: str
    position: int
    first_seq: int
    policy: GapPolicy | None = None
    waiting_since: float | None = None
    moved_at: float | None = None
    nudges: int = 0
    last_mark: float | None = None
    floor: int | None = None
    nudged_at: float | None = None
    withdrawals: int = 0
    gap: Gap | None = None

    def __post_init__(self) -> None:
        if self.waiting_since is not None:
            object.__setattr__(self, "last_mark", self.waiting_since)

    @property
    def start(self) -> int:
        """Readers begin after this seq: the queue starts there, or is trimmed up to there."""
        before = self.first_seq - 1
        return before if self.floor is None else max(before, self.floor)

    @property
    def active_at(self) -> float | None:
        """Return when the queue last moved or was nudged; None if it never was."""
        times = [at for at in (self.moved_at, self.nudged_at) if at is not None]
        return max(times, default=None)

    @property
    def is_marked(self) -> bool:
        """Return True if the waiting mark can be relied on."""
        return self.waiting_since is not None and self.waiting_since >= 0

    @property
    def is_measured(self) -> bool:
        """Return True if a sweep has measured how old the gap is at which the queue stands, and that still holds."""
        gap = self.gap
        return gap is not None and gap.seqs.start == self.position + 1 and gap.withdrawals == self.withdrawals

    @property
    def gap_since(self) -> float | None:
        """Return since when a message waits beyond the present gap, as far as the row tells; None if nothing waits.

        A row that was marked and not measured tells when the queue began to wait: the same, unless it is in doubt.
        """
        if not self.is_marked:
            return None
        return self.gap.since if self.gap is not None and self.is_measured else self.waiting_since

    @property
    def in_doubt(self) -> bool:
        """Return True if the queue moved after it was marked, so that it may wait at another gap, or no more."""
        if not self.is_marked or self.is_measured or self.waiting_since is None or self.moved_at is None:
            return False
        return self.moved_at > self.waiting_since

    def next_mark(self, now: float) -> float:
        """Return a time for another mark: now, or just after the last one if the clock has not moved on."""
        return now if self.last_mark is None else max(now, abs(self.last_mark) + MARK_STEP)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message on its way into its slot.

    `seen` is the position its writer knew when it came, None if it saw no cursor row: kept with the
    message, it is the proof that the queue had begun should the cursor row ever be lost.
    """

    message: Message
    seen: int | None


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Seqs of a queue to be given up, and why; `seen` is what it is for an Arrival."""

    queue: str
    seqs: tuple[int, ...]
    reason: str
    seen: int | None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The result of clearing the lowest slots of a range, up to `through`: how many seqs went, and which were kept."""

    emptied: int
    kept: tuple[int, ...]
    through: int


@dataclass(frozen=True, slots=True)
class TakenSlots:
    """Those of many slots that are taken; `damaged` are queues of which one got no answer, each with the error."""

    slots: set[tuple[str, int]]
    damaged: dict[str, StreamSortError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Move:
    """What a conditional move of the cursor did; `cursor` is the row as it stands now."""

    won: bool
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class Head:
    """A cursor row and whether one slot is taken, read together."""

    cursor: Cursor | None
    taken: bool


@dataclass(frozen=True, slots=True)
class Look:
    """The seqs that each slot beyond a position fills, ascending; without `more`, nothing follows the last one.

    `seen` are the positions that their writers found, those that saw the queue's cursor row.
    """

    slots: tuple[range, ...]
    more: bool
    seen: tuple[int, ...] = ()

    @property
    def seqs(self) -> tuple[int, ...]:
        """Return all seqs that are filled, one by one."""
        return tuple(chain.from_iterable(self.slots))

    @property
    def cursor_seen(self) -> bool:
        """Return True if one of them was stored by a writer that saw the cursor row."""
        return bool(self.seen)


@dataclass(frozen=True, slots=True)
class Page:
    """Slots in order; without `more`, nothing follows them in the range that was asked for."""

    slots: tuple[Slot, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Some queue names of a listing, and where to go on (None: this was the last page)."""

    queues: tuple[str, ...]
    next: Any = None


@dataclass(frozen=True, slots=True)
class CursorPage:
    """Some cursor rows of a listing, and where to go on (None: this was the last page).

    `damaged` are queues whose rows cannot be read, or got no answer, each with the error.
    """

    rows: tuple[Cursor, ...]
    next: Any = None
    damaged: dict[str, StreamSortError] = field(default_factory=dict)

    def whole(self) -> tuple[Cursor, ...]:
        """Return the rows; raises if one of them cannot be read."""
        for error in self.damaged.values():
            raise error
        return self.rows
