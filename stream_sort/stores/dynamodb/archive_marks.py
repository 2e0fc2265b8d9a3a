"""ArchiveMarks on DynamoDB: one row of the control table for each queue of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from stream_sort.errors import SettingsError
from stream_sort.ports.archive import Archived
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb.control import ControlTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.values import Wire

# A sort key has at most 1,024 bytes.
MAX_ADDRESS = 1_000


class WatermarkRow(rows.ControlRow):
    """How far a queue is in an archive, and where that began."""

    queue = UnicodeAttribute()
    seq = NumberAttribute()
    began = NumberAttribute(null=True)

    @property
    def mark(self) -> int:
        """Return the watermark."""
        return int(self.seq)

    @property
    def archived(self) -> Archived:
        """Return what the archive has of the queue."""
        return Archived(self.mark, rows.whole(self.began))


class DynamoArchiveMarks:
    """ArchiveMarks on a DynamoDB table; `archive` is the archive's address."""

    def __init__(self, calls: Calls, table: str, archive: str) -> None:
        self._table = ControlTable(calls, table)
        self._archive = archive
        if len(archive.encode()) > MAX_ADDRESS:
            raise SettingsError(f"the archive's address has {len(archive.encode())} bytes; it may have {MAX_ADDRESS}")

    def watermark(self, queue: str) -> int | None:
        """See ArchiveMarks."""
        wire = self._table.get(*_place_of(self._archive, queue))
        return None if wire is None else _row(wire).mark

    def archived(self, queues: Sequence[str]) -> dict[str, Archived]:
        """See ArchiveMarks."""
        found = map(_row, self._table.rows([rows.key_of(*_place_of(self._archive, queue)) for queue in queues]))
        return {row.queue: row.archived for row in found}

    def elsewhere(self, queue: str) -> dict[str, Archived]:
        """See ArchiveMarks."""
        key, _ = _place_of(self._archive, queue)
        found = map(_row, self._table.query(key, ""))
        return {row.sk: row.archived for row in found if row.sk != self._archive}

    def set_watermark(self, queue: str, old: int | None, new: int, *, began: int | None = None) -> bool:
        """See ArchiveMarks."""
        kind = WatermarkRow
        row = kind(*_place_of(self._archive, queue), queue=queue, seq=new, began=began)
        is_old = kind.pk.does_not_exist() if old is None else (kind.seq == old) & (kind.seq < new)
        reply = self._table.put(row, is_old)
        # A write whose reply was lost, and that was sent again, was refused by itself.
        return not reply.refused or (reply.item is not None and _row(reply.item).mark == new)


def _row(wire: Wire) -> WatermarkRow:
    return rows.row_of(WatermarkRow, wire)


def _place_of(archive: str, queue: str) -> tuple[str, str]:
    """Return the keys of a watermark; a consumer's name is not empty, so no checkpoint shares them."""
    return f"#archive#{queue}", archive
