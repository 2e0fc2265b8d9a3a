"""Which slots of the items table are taken: by key, a hundred a request, never by a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.values import int_at, text_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.cli.connection import Connection

# As many keys as BatchGetItem takes.
AT_ONCE = 100

Slot = tuple[str, int]


def taken_slots(connection: Connection, wanted: Iterable[Slot]) -> set[Slot]:
    """Those of the slots that hold a message or a tombstone; each is read once, consistently."""
    settings = connection.settings
    calls = Calls(connection.place.dynamodb(settings), settings.deadline)
    slots = list(dict.fromkeys(wanted))
    found: set[Slot] = set()
    for start in range(0, len(slots), AT_ONCE):
        found |= _taken(calls, connection, slots[start : start + AT_ONCE])
    return found


def _taken(calls: Calls, connection: Connection, slots: list[Slot]) -> set[Slot]:
    settings = connection.settings
    table, queue_key, seq_key = settings.items_table, settings.queue_key, settings.seq_key
    names = {"#queue": queue_key, "#seq": seq_key}
    keys = [{queue_key: {"S": queue}, seq_key: {"N": str(seq)}} for queue, seq in slots]
    only_keys = {"ConsistentRead": True, "ProjectionExpression": "#queue, #seq", "ExpressionAttributeNames": names}
    request: dict[str, Any] = {table: {"Keys": keys, **only_keys}}
    patience = calls.patience("BatchGetItem", table)
    found: set[Slot] = set()
    while request:
        body = calls("batch_get_item", table, patience=patience, RequestItems=request).body
        rows = [row for rows in body["Responses"].values() for row in rows]
        found |= {(text_at(row, queue_key), int_at(row, seq_key)) for row in rows}
        request = body.get("UnprocessedKeys") or {}
        if request and not rows:
            patience.wait("UnprocessedKeys")
    return found
