"""Empties slots: 25 a call when a queue is trimmed; one by one, on a condition, where that could delete too much."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.paging import MAX_WRITES, batch_write
from stream_sort.stores.dynamodb.values import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.ports.in_flight import InFlight
    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire


class Deletes:
    """Deletes records by their keys. What is gone already is no error: a delete may be sent twice."""

    def __init__(self, calls: Calls, names: TableNames, in_flight: InFlight) -> None:
        self._calls = calls
        self._table = names.items
        self._in_flight = in_flight

    def many(self, keys: Sequence[Wire]) -> None:
        """Delete records, several calls at once; when this returns, all of them are gone."""
        self._in_flight.map(
            self._batch, [keys[start : start + MAX_WRITES] for start in range(0, len(keys), MAX_WRITES)]
        )

    def without_late(self, keys: Sequence[Wire]) -> list[bool]:
        """Delete tombstones, several calls at once, each unless a late message is beside it; return which are gone."""
        none_is_late = {
            "ConditionExpression": "attribute_not_exists(#late)",
            "ExpressionAttributeNames": {"#late": tables.LATE},
        }
        return self._in_flight.map(partial(self._one, none_is_late), keys)

    def seen_after(self, key: Wire, seq: int) -> bool:
        """Delete one record, only if its writer had seen a position at or beyond `seq`."""
        was_released = {
            "ConditionExpression": "#seen >= :seq",
            "ExpressionAttributeNames": {"#seen": tables.SEEN},
            "ExpressionAttributeValues": {":seq": number(seq)},
        }
        return self._one(was_released, key)

    def _one(self, condition: dict[str, Any], key: Wire) -> bool:
        return not self._calls("delete_item", self._table, Key=key, **condition).refused

    def _batch(self, keys: Sequence[Wire]) -> None:
        batch_write(self._calls, {self._table: [{"DeleteRequest": {"Key": key}} for key in keys]})
