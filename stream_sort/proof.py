"""Whether a queue without a cursor row never had one, or lost it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.core.message import MIN_SEQ

if TYPE_CHECKING:
    from stream_sort.ports import ItemStore

PROOF_PAGE = 25


def had_cursor(items: ItemStore, queue: str) -> bool:
    """Whether a stored message proves that there was a row: its writer saw it, and rows are never deleted by us.

    Looked for from the lowest seq there can be: a queue that was opened lower holds its proof below our own start.
    """
    return items.look(queue, MIN_SEQ - 1, PROOF_PAGE).cursor_seen
