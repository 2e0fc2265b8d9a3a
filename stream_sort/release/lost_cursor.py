"""Whether a queue without a cursor row never had one, or lost it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import CursorLost
from stream_sort.model.message import MIN_SEQ

if TYPE_CHECKING:
    from stream_sort.model.records import Cursor, Look
    from stream_sort.ports import CursorStore, ItemStore

PROOF_PAGE = 25


def find_row(items: ItemStore, cursors: CursorStore, queue: str) -> Cursor | None:
    """Return the cursor row of a queue, None if there never was one; CursorLost if there was."""
    row = cursors.get(queue)
    if row is None and look_for_proof(items, queue).cursor_seen:
        # Somebody saw a row: it was made just now, or it is lost.
        row = cursors.get(queue)
        if row is None:
            raise CursorLost(queue)
    return row


def look_for_proof(items: ItemStore, queue: str) -> Look:
    """Return the lowest slots of a queue: one that was filled by us proves that there was a row, and rows stay.

    From the lowest seq there can be: a queue that was opened lower holds its proof below our own start.
    """
    return items.look(queue, MIN_SEQ - 1, PROOF_PAGE)
