"""What the services need from the outside, as Protocols with numbered guarantees.

The numbers are what `stream_sort.testing.contracts` tests, one test a number, against every adapter.
All of them: a call that fails raises StoreUnavailable or another StoreError; it never answers "empty".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_sort.core.message import Message
    from stream_sort.core.policy import GapPolicy
    from stream_sort.core.records import Arrival, Cursor, Head, Item, Look, Move, Page, QueuePage
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

    def skip(self, queue: str, seqs: Sequence[int], reason: str, now: float) -> tuple[int, ...]:
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
        9. `cursor_seen` is True if one of the messages was stored with `seen`.
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

        5. Only if position, first_seq and waiting mark are those of `cursor`; answers as `move`.
        """

    def set_waiting(self, cursor: Cursor, since: float | None) -> bool:
        """Set, change or clear the waiting mark.

        6. Only if the position and the mark are those of `cursor`; False otherwise.
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


class HeadReader(Protocol):
    """Both tables in one request."""

    def peek(self, queue: str, seq: int) -> Head:
        """Read the cursor row and whether the slot is taken.

        1. Each is as it stands after every write that was answered before the call.
        """


@dataclass(frozen=True, slots=True)
class Stores:
    """The tables of one sorter."""

    items: ItemStore
    cursors: CursorStore
    heads: HeadReader
    create_tables: Callable[[], None]


class Lagging(Protocol):
    """Whoever knows which queues have sleeping consumers."""

    def lagging(self) -> Iterable[str]:
        """Name queues to nudge; naming one in vain costs a write, nothing else."""


class Clock(Protocol):
    """The time, in seconds since the epoch; a parameter, so that tests can move it."""

    def __call__(self) -> float:
        """Tell the time now."""
