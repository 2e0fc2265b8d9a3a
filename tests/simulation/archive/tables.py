"""The tables of a run in memory: the ports that a run writes to have a fuse, and what it deletes is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.model.slots import expand
from stream_sort.replay.archive.due import DueReader
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.origins.access import TableAccess
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.raw_pages import RawPage, RawPages
from stream_sort.stores.dynamodb.values import encode
from stream_sort.stores.memory.cursors import MemoryCursorStore
from stream_sort.stores.memory.tables import MemoryItemStore
from tests.archive_marks import MemoryArchiveMarks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_sort.model.records import Cleared, Move
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore
    from stream_sort.ports.archive import Archived
    from stream_sort.sorter import Sorter
    from stream_sort.stores.memory.tables import MemoryTables
    from tests.simulation.archive.fuse import Fuse, T

CONTROL = "Control"
# Slots that one page of the table holds: few, so that most segments need several.
PAGE = 4


class FusedItems(MemoryItemStore):
    """An ItemStore that keeps in `deleted` what was deleted from it."""

    def __init__(self, rows: MemoryTables, fuse: Fuse) -> None:
        super().__init__(rows)
        self.deleted: dict[int, Entry] = {}
        self._fuse = fuse

    def delete(self, queue: str, after: int, through: int, limit: int) -> int:
        return self._watched(queue, lambda: super(FusedItems, self).delete(queue, after, through, limit))

    def clear(self, queue: str, after: int, through: int, limit: int) -> Cleared:
        return self._watched(queue, lambda: super(FusedItems, self).clear(queue, after, through, limit))

    def _watched(self, queue: str, change: Callable[[], T]) -> T:
        before = self._tables.queue(queue).entries()
        try:
            return self._fuse.through(change)
        finally:
            left = self._tables.queue(queue).entries()
            self.deleted |= {seq: item for seq, item in before.items() if seq not in left}


class FusedCursors(MemoryCursorStore):
    """A CursorStore whose floors are set by processes that may die."""

    def __init__(self, rows: MemoryTables, fuse: Fuse) -> None:
        super().__init__(rows)
        self._fuse = fuse

    def set_floor(self, queue: str, floor: int) -> Move | None:
        return self._fuse.through(lambda: super(FusedCursors, self).set_floor(queue, floor))


class FusedMarks(MemoryArchiveMarks):
    """ArchiveMarks that can be lost, or put back to any of their `history`, as a restored control table does."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self.history: list[Archived] = []
        self._fuse = fuse

    def set_watermark(self, queue: str, old: int | None, new: int, *, began: int | None = None) -> bool:
        def change() -> bool:
            is_set = super(FusedMarks, self).set_watermark(queue, old, new, began=began)
            self.history.append(self._marks[queue])
            return is_set

        return self._fuse.through(change)

    def lose(self, queue: str) -> None:
        self._marks.pop(queue, None)

    def put_back(self, queue: str, mark: Archived) -> None:
        self._marks[queue] = mark


def wire_of(queue: str, item: Entry) -> dict[str, dict[str, Any]]:
    """Return an item as DynamoDB sends it."""
    document, _ = encode({"queue": queue, "seq": item.seq, **item.document})
    told: dict[str, dict[str, Any]] = {tables.ARRIVED_AT: {"N": str(int((item.arrived_at or 0) * 1000))}}
    if item.skipped is not None:
        told[tables.SKIPPED] = {"S": item.skipped}
    return {**document, **told}


class MemoryPages(RawPages):
    """What a run reads of the items table, page by page."""

    def __init__(self, items: ItemStore) -> None:
        self._items = items

    def read(self, queue: str, after: int, through: int) -> Iterator[RawPage]:
        page = self._items.page(queue, after, through, PAGE)
        while page.slots:
            yield RawPage([wire_of(queue, entry) for entry in expand(page.slots)], 1.0)
            page = self._items.page(queue, page.slots[-1].last, through, PAGE)


class MemoryAccess(TableAccess):
    """Access to tables that are here already."""

    def __init__(self, sorter: Sorter) -> None:
        super().__init__("Items", "Cursor")
        # In the place of the one that it would make, and check, for tables in AWS.
        self.__dict__.update(sorter=sorter, _checked=sorter)

    def pages(self, *, consistent: bool) -> RawPages:
        del consistent
        return MemoryPages(self.sorter.stores.items)


@dataclass(frozen=True, slots=True)
class MemoryOptions(ArchiveOptions):
    """The options of a run whose watermarks are here."""

    marks: FusedMarks = field(kw_only=True)

    def due_reader(self) -> DueReader:
        stores = self.access.sorter.stores
        return DueReader(stores.control(self.control_table), self.marks, self.storage, stores.cursors)
