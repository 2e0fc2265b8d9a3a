"""ArchiveMarks on DynamoDB: one row of the control table for each queue of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from stream_sort.errors import SettingsError
from stream_sort.model.table_names import check_table_name
from stream_sort.ports.archive import Archived
from stream_sort.stores.dynamodb import control_rows as rows
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.values import Wire

MAX_KEYS = 100
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
        self._calls = calls
        self._table = check_table_name(table)
        self._archive = archive
        if len(archive.encode()) > MAX_ADDRESS:
            raise SettingsError(f"the archive's address has {len(archive.encode())} bytes; it may have {MAX_ADDRESS}")

    def watermark(self, queue: str) -> int | None:
        """See ArchiveMarks."""
        key = rows.key_of(*_place_of(self._archive, queue))
        wire = self._calls("get_item", self._table, TableName=self._table, Key=key, ConsistentRead=True).item
        return None if wire is None else _row(wire).mark

    def archived(self, queues: Sequence[str]) -> dict[str, Archived]:
        """See ArchiveMarks."""
        found: dict[str, Archived] = {}
        for start in range(0, len(queues), MAX_KEYS):
            chunk = queues[start : start + MAX_KEYS]
            keys = [rows.key_of(*_place_of(self._archive, queue)) for queue in chunk]
            for row in map(_row, self._batch_get(keys)):
                found[row.queue] = row.archived
        return found

    def elsewhere(self, queue: str) -> dict[str, Archived]:
        """See ArchiveMarks."""
        key, _ = _place_of(self._archive, queue)
        request: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#pk = :pk",
            "ExpressionAttributeNames": {"#pk": tables.CONTROL_PK},
            "ExpressionAttributeValues": {":pk": {"S": key}},
        }
        found: dict[str, Archived] = {}
        while True:
            body = self._calls("query", self._table, **request).body
            found |= {row.sk: row.archived for row in map(_row, body["Items"])}
            if not body.get("LastEvaluatedKey"):
                found.pop(self._archive, None)
                return found
            request["ExclusiveStartKey"] = body["LastEvaluatedKey"]

    def set_watermark(self, queue: str, old: int | None, new: int, *, began: int | None = None) -> bool:
        """See ArchiveMarks."""
        kind = WatermarkRow
        row = kind(*_place_of(self._archive, queue), queue=queue, seq=new, began=began)
        is_old = kind.pk.does_not_exist() if old is None else (kind.seq == old) & (kind.seq < new)
        request = {"TableName": self._table, "Item": rows.wire_of(row), **rows.condition_of(is_old)}
        reply = self._calls("put_item", self._table, **request)
        # A write whose reply was lost, and that was sent again, was refused by itself.
        return not reply.refused or (reply.item is not None and _row(reply.item).mark == new)

    def _batch_get(self, keys: list[Wire]) -> list[Wire]:
        left = {self._table: {"Keys": keys, "ConsistentRead": True}}
        patience = self._calls.patience("BatchGetItem", self._table)
        found: list[Wire] = []
        while left:
            body = self._calls("batch_get_item", self._table, patience=patience, RequestItems=left).body
            found += body["Responses"].get(self._table, ())
            left = body.get("UnprocessedKeys") or {}
            if left:
                patience.wait("UnprocessedKeys")
        return found


def _row(wire: Wire) -> WatermarkRow:
    return rows.row_of(WatermarkRow, wire)


def _place_of(archive: str, queue: str) -> tuple[str, str]:
    """Return the keys of a watermark; a consumer's name is not empty, so no checkpoint shares them."""
    return f"#archive#{queue}", archive
