"""How long the gap that holds a queue up has been there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.core.message import MAX_SEQ

if TYPE_CHECKING:
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ItemStore

# The earliest of these is early enough: a sweep later the row tells by itself.
FEW = 10


def gap_began(items: ItemStore, cursor: Cursor, unknown: float) -> float | None:
    """When the present gap of a queue in which something waits began; None if its row is not marked.

    The mark of an earlier gap stays until a sweep looks. So if the queue has moved since, a gap is not older than what
    is stored beyond it. `unknown` is when that was, should it not say: others may have written it.
    """
    since = cursor.gap_since
    if since is None or not cursor.may_have_moved_on:
        return since
    untold = unknown if cursor.has_moved_on else since
    beyond = items.page(cursor.queue, cursor.position, MAX_SEQ, FEW).items
    arrivals = [untold if item.arrived_at is None else item.arrived_at for item in beyond]
    return max(since, min(arrivals, default=since))
