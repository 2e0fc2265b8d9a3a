"""Read the slots of a range that may begin inside of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.model.records import Page

if TYPE_CHECKING:
    from stream_sort.ports import ItemStore


def read_slots(items: ItemStore, queue: str, after: int, through: int, limit: int) -> Page:
    """Read the slots that fill seqs of `(after, through]`, as `ItemStore.page` does.

    A checkpoint may stand inside of a slot. So where the page begins beyond `after + 1`, the slot that fills that seq
    is asked for: the one further request comes where a reader would else find a hole.
    """
    page = items.page(queue, after, through, limit)
    if after >= through or (page.slots and page.slots[0].first == after + 1):
        return page
    held = items.holding(queue, after + 1)
    return page if held is None else Page((held, *page.slots), page.more)
