"""Ports: the cursor table, and both tables in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap
    from stream_sort.model.records import Cursor, CursorPage, Head, Move, QueuePage


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

    def move(self, cursor: Cursor, new: int, now: float) -> Move | None:
        """Move the position and note the time.

        3. Only if the position and the withdrawals are those of `cursor`; otherwise the row that stands, unchanged.
        4. None, and nothing written, if there is no row.
        """

    def restart(self, cursor: Cursor, first_seq: int) -> Move | None:
        """Let an untouched queue start at another seq.

        5. Only if position, first_seq and last mark are those of `cursor`; answers as `move`.
        """

    def set_waiting(self, cursor: Cursor, since: float | None) -> bool:
        """Set, change or clear the waiting mark.

        6. Only if the position and the last mark are those of `cursor`; False otherwise. To clear it forgets the gap
           that was noted.
        """

    def set_policy(self, queue: str, policy: GapPolicy | None) -> bool:
        """Set the gap policy; None goes back to the default.

        7. Changes nothing else; False, and nothing written, if there is no row.
        """

    def nudge(self, queue: str, now: float) -> bool:
        """Touch the row so that the table's stream carries a record of it, and note the time.

        8. Changes the nudge counter and its time, nothing else; False, and nothing written, if there is no row.
        """

    def waiting(self, before: float, start: Any = None) -> QueuePage:
        """List queues whose waiting mark is at or before a time, on each page the longest first.

        9. A hint: it may lag behind the rows, but shows every mark in the end.
        """

    def queues(self, start: Any = None) -> QueuePage:
        """List all queues that have a row.

        10. Every row that existed before the first page and was not removed is listed.
        """

    def rows(self, start: Any = None, limit: int | None = None) -> CursorPage:
        """List all rows, at most `limit` a page.

        11. As complete as `queues`; a row may be shown as it stood a moment before. One that cannot be read is named
            as damaged, and hides no other.
        """

    def set_floor(self, queue: str, floor: int) -> Move | None:
        """Note how far a queue is trimmed.

        12. Only if the position is at or beyond `floor` and the floor is lower or absent, so that it never goes back;
            otherwise the row that stands, unchanged.
        13. Changes nothing else; None, and nothing written, if there is no row.
        """

    def active(self, since: float, start: Any = None) -> QueuePage | None:
        """List queues that moved or were nudged at or after a time; some of the hour before may be among them.

        14. A hint, as `waiting`; its cost follows the number of queues listed, not of those that there are.
        15. None if the table has no index of them, or it is still being made.
        """

    def rows_of(self, queues: Sequence[str]) -> CursorPage:
        """Read the rows of many queues, all on one page.

        16. Those that exist, in any order; a row may be shown as it stood a moment before, or as damaged, as in `rows`:
            also one that got no answer.
        """

    def note_gap(self, cursor: Cursor, gap: Gap | None) -> bool:
        """Note the gap at which a queue was found waiting, or forget it.

        17. Only if the position and the last mark are those of `cursor`; changes nothing else; False otherwise.
        """


class HeadReader(Protocol):
    """Both tables in one request."""

    def peek(self, queue: str, seq: int) -> Head:
        """Read the cursor row and whether the slot is taken.

        1. Each is as it stands after every write that was answered before the call.
        """
