"""What the services need from the outside, as Protocols with numbered guarantees.

The numbers are what `stream_sort.testing.contracts` tests, one test a number, against every adapter.
All of them: a call that fails raises StoreUnavailable or another StoreError; it never answers "empty".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_sort.core.batch import Effect
    from stream_sort.core.consumption import (
        Checkpoint,
        Commit,
        DeadLetter,
        DeadLetterPage,
        ParkedPage,
        Standing,
        Subscription,
    )
    from stream_sort.core.message import Message
    from stream_sort.core.policy import GapPolicy
    from stream_sort.core.records import (
        Arrival,
        Cursor,
        CursorPage,
        Head,
        Item,
        Look,
        Move,
        Page,
        QueuePage,
        Tombstones,
    )
    from stream_sort.errors import StreamSortError


class ItemStore(Protocol):
    """The items table: one slot for each (queue, seq), written once."""

    def put(self, arrival: Arrival, now: float) -> Item | None:
        """Store a message if its slot is empty.

        1. None: it is stored, durably, as it is, with the time it arrived.
        2. Otherwise the item that was there first, unchanged.
        """

    def put_many(self, arrivals: Sequence[Arrival], now: float) -> list[Item | StreamSortError | None]:
        """Store messages with distinct slots; one answer for each, in order.

        3. Each answer is that of `put`, or the error that kept this one message from being stored.
        4. What keeps one message out keeps no other one out.
        """

    def skip(self, tombstones: Tombstones, now: float) -> tuple[int, ...]:
        """Put tombstones.

        5. Only into empty slots; answers the seqs that got one.
        """

    def keep_late(self, message: Message, now: float) -> Item:
        """Keep a message beside the tombstone in its slot.

        6. Only if none is kept there yet; answers the slot as it stands, tombstone included.
        """

    def look(self, queue: str, after: int, limit: int) -> Look:
        """Show which seqs after `after` are taken, tombstones included.

        7. Ascending, at most `limit`, nothing left out between them; reads every write that was
           answered before the call.
        8. Empty only if nothing is stored after `after`.
        9. `cursor_seen` is True if one of the messages, or of the tombstones, was stored with `seen`.
        """

    def page(self, queue: str, after: int, through: int, limit: int) -> Page:
        """Read items of `(after, through]`.

        10. Ascending, nothing left out between them, as current as `look`; empty and not `more` only
            if nothing is stored in the range.
        """

    def highest(self, queue: str) -> int | None:
        """Name the highest stored seq.

        11. As current as `look`; None only if the queue holds nothing.
        """

    def tombstones(self, queue: str, limit: int) -> Page:
        """Find the tombstones among the highest `limit` slots.

        12. Descending; `more` says that there are slots below those that were searched.
        """


class CursorStore(Protocol):
    """The cursor table: one row for each queue that has begun or waits."""

    def get(self, queue: str) -> Cursor | None:
        """Read a row.

        1. As it stands after every write that was answered before the call; None only if absent.
        """

    def create(self, cursor: Cursor) -> Move:
        """Insert a row.

        2. Only if there is none; otherwise the row that stands, unchanged.
        """

    def move(self, queue: str, old: int, new: int, now: float) -> Move | None:
        """Move the position and note the time.

        3. Only if it is `old`; otherwise the row that stands, unchanged.
        4. None, and nothing written, if there is no row.
        """

    def restart(self, cursor: Cursor, first_seq: int) -> Move | None:
        """Let an untouched queue start at another seq.

        5. Only if position, first_seq and last mark are those of `cursor`; answers as `move`.
        """

    def set_waiting(self, cursor: Cursor, since: float | None) -> bool:
        """Set, change or clear the waiting mark.

        6. Only if the position and the last mark are those of `cursor`; False otherwise.
        """

    def set_policy(self, queue: str, policy: GapPolicy | None) -> bool:
        """Set the gap policy; None goes back to the default.

        7. Changes nothing else; False, and nothing written, if there is no row.
        """

    def nudge(self, queue: str) -> bool:
        """Touch the row so that the table's stream carries a record of it.

        8. Changes the nudge counter and nothing else; False, and nothing written, if there is no row.
        """

    def waiting(self, before: float, start: Any = None) -> QueuePage:
        """List queues whose waiting mark is at or before a time, longest first.

        9. A hint: it may lag behind the rows, but shows every mark in the end.
        """

    def queues(self, start: Any = None) -> QueuePage:
        """List all queues that have a row.

        10. Every row that existed before the first page and was not removed is listed.
        """

    def rows(self, start: Any = None) -> CursorPage:
        """List all rows.

        11. As complete as `queues`; a row may be shown as it stood a moment before.
        """


class HeadReader(Protocol):
    """Both tables in one request."""

    def peek(self, queue: str, seq: int) -> Head:
        """Read the cursor row and whether the slot is taken.

        1. Each is as it stands after every write that was answered before the call.
        """


class ControlStore(Protocol):
    """The control table: consumers, their checkpoints, what is parked and what is dead."""

    def create_table(self) -> None:
        """Create the table if it is not there, and wait for it; for local use and tests."""

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """Read a checkpoint, the queue's cursor row and whether a slot of the queue is taken, in one request.

        1. Each is as it stands after every write that was answered before the call; `taken` is None without a slot.
        """

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """Insert a checkpoint; with `starting`, as one of that consumer's first ones.

        2. Only if there is none, and `starting` is not ready yet; otherwise the row that stands, unchanged.
        """

    def commit(
        self,
        old: Checkpoint,
        new: Checkpoint,
        effects: Sequence[Effect] = (),
        dead: DeadLetter | None = None,
    ) -> Commit:
        """Put `new` in the place of `old`.

        3. Only if the version is that of `old`; otherwise the row that stands, unchanged.
        4. Effects and dead letter are written with it, all or none.
        5. EffectRefused if a condition among the effects does not hold, TransactionTooLarge if they do not fit:
           nothing is written.
        """

    def checkpoints(self, consumer: str, queues: Sequence[str]) -> dict[str, Checkpoint]:
        """Read the checkpoints of many queues.

        6. Those that exist, each as it stood after the call began.
        """

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:
        """List parked queues, those whose next try is at or before a time, or all; the next to be tried first.

        7. A hint: it may lag behind the checkpoints, but shows every parked queue in the end.
        """

    def dead_letters(self, consumer: str, start: Any = None) -> DeadLetterPage:
        """List dead letters that are not discarded, oldest first.

        8. A hint, as `parked`.
        """

    def dead_letters_of(self, consumer: str, queue: str) -> list[DeadLetter]:
        """Read the dead letters of one queue that are not discarded.

        9. In the order of their seqs, as they stand after every write that was answered before the call.
        """

    def settle(self, consumer: str, letter: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """Change a dead letter, or remove it when `new` is None.

        10. Only if its attempts are those of `letter` and it is not discarded; False otherwise.
        11. Effects are written with it, all or none, with the errors of `commit`.
        """

    def register(self, subscription: Subscription) -> Subscription:
        """Add a consumer.

        12. Only if there is none of that name; answers the one that stands.
        """

    def make_ready(self, subscription: Subscription) -> None:
        """Note that a consumer's first checkpoints are set.

        13. Changes nothing else.
        """

    def consumers(self) -> list[Subscription]:
        """Name all consumers.

        14. Every one that was registered before the call.
        """

    def bookmark(self) -> Any:
        """Where the last pass over all queues stopped; None at the beginning."""

    def set_bookmark(self, place: Any) -> None:
        """Remember where a pass over all queues stopped.

        15. `bookmark` answers what was set last.
        """


class Waker(Protocol):
    """Whoever can make a consumer look at a queue."""

    def wake(self, queue: str, delay: float) -> None:
        """See to it that the queue is looked at, not before `delay` seconds have passed.

        A later sweep does the same, so a lost wake costs time only.
        """


def _none() -> int:
    """Memory needs no requests."""
    return 0


@dataclass(frozen=True, slots=True)
class Stores:
    """The tables of one sorter.

    `cursor_table` is the name in its stream's records, empty where there is no stream; `requests` tells how many
    requests were made so far.
    """

    items: ItemStore
    cursors: CursorStore
    heads: HeadReader
    control: Callable[[str], ControlStore]
    create_tables: Callable[[], None]
    cursor_table: str = ""
    requests: Callable[[], int] = _none


class Lagging(Protocol):
    """Whoever knows which queues have sleeping consumers."""

    def lagging(self, now: float) -> Iterable[str]:
        """Name queues to nudge; naming one in vain costs a write, nothing else."""


class Clock(Protocol):
    """The time, in seconds since the epoch; a parameter, so that tests can move it."""

    def __call__(self) -> float:
        """Tell the time now."""
