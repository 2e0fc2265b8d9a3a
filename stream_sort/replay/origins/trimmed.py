"""Whether what was asked for by seq was trimmed from the tables: rather an error than fewer rows. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, Trimmed

if TYPE_CHECKING:
    from stream_sort.errors import MissingItems
    from stream_sort.model.records import Cursor
    from stream_sort.replay.selection import Selection


def check_not_trimmed(asked: Selection, cursor: Cursor) -> None:
    """Raise InvalidInput if a seq that was asked for lies in what was trimmed from the queue."""
    first, last = asked.from_seq, asked.to_seq
    ends_below = last is not None and last <= cursor.start
    if cursor.start < cursor.first_seq or (not ends_below and (first is None or first > cursor.start)):
        return
    lowest = cursor.first_seq if first is None else max(first, cursor.first_seq)
    if last is not None and last < lowest:
        return
    highest = min(cursor.start, cursor.start if last is None else last)
    whole = "; all of it was trimmed" if ends_below else f"; what is left begins at {cursor.start + 1}"
    raise InvalidInput(
        f"seqs {lowest} to {highest} of queue {cursor.queue!r} were trimmed from the table{whole}. "
        "Read what was trimmed from the archive, if there is one (--archive, or the option archive), or ask for less"
    )


def trimmed_since(hole: MissingItems, cursor: Cursor | None) -> Trimmed | None:
    """Return what a hole is that a trim made after the range was planned; None if it is another kind of hole."""
    if cursor is None or cursor.floor is None or hole.missing[0].start > cursor.floor:
        return None
    return Trimmed(hole.queue, cursor.floor)
