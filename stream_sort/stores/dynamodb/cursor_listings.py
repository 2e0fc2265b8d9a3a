"""Listings of the cursor table on DynamoDB: queues that wait, that are active, and all of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.aws.errors import lacks_index
from stream_sort.errors import StreamSortError
from stream_sort.model.activity import SHARES, earliest_hour, hour_of, share_of
from stream_sort.model.records import Cursor, CursorPage, QueuePage
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.paging import pages, read_rows
from stream_sort.stores.dynamodb.values import millis, number, number_at, text_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.tables import TableNames
from stream_sort.stores.dynamodb.values import Wire


class DynamoCursorListings:
    """The listings of a CursorStore; `row_of` reads a row."""

    def __init__(self, calls: Calls, names: TableNames, row_of: Callable[[Wire], Cursor]) -> None:
        self._calls = calls
        self._table = names.cursor
        self._queue_key = names.keys.queue
        self._row_of = row_of

    def waiting(self, before: float, start: Any = None) -> QueuePage:
        """See CursorStore."""
        request: dict[str, Any] = {
            "IndexName": tables.WAITING_INDEX,
            "KeyConditionExpression": "#share = :share AND #since <= :before",
            "ExpressionAttributeNames": {"#share": tables.WAITING, "#since": tables.WAITING_SINCE},
        }
        values = {":before": millis(before)}
        found, left = self._query(request, values, dict.fromkeys(tables.WAITING_SHARES) if start is None else start)
        found.sort(key=lambda wire: number_at(wire, tables.WAITING_SINCE))
        return QueuePage(tuple(text_at(wire, self._queue_key) for wire in found), left)

    def active(self, since: float, start: Any = None) -> QueuePage | None:
        """See CursorStore."""
        request: dict[str, Any] = {
            "IndexName": tables.ACTIVE_INDEX,
            "KeyConditionExpression": "#share = :share AND #hour >= :hour",
            "ExpressionAttributeNames": {"#share": tables.SHARE, "#hour": tables.HOUR},
        }
        values = {":hour": number(earliest_hour(since))}
        shares = dict.fromkeys(map(str, range(SHARES))) if start is None else start
        try:
            found, left = self._query(request, values, shares)
        except StreamSortError as error:
            if lacks_index(error.__cause__):
                return None
            raise
        hours = ((text_at(wire, self._queue_key), number_at(wire, tables.HOUR)) for wire in found)
        return QueuePage(tuple(queue for queue, hour in hours if hour >= hour_of(queue, since)), left)

    def queues(self, start: Any = None) -> QueuePage:
        """See CursorStore."""
        names = {"ProjectionExpression": "#queue", "ExpressionAttributeNames": {"#queue": self._queue_key}}
        body = self._scan(start, names)
        return QueuePage(tuple(text_at(row, self._queue_key) for row in body["Items"]), body.get("LastEvaluatedKey"))

    def rows(self, start: Any = None, limit: int | None = None) -> CursorPage:
        """See CursorStore."""
        body = self._scan(start, {} if limit is None else {"Limit": limit})
        return self._page(body["Items"], body.get("LastEvaluatedKey"))

    def rows_of(self, queues: Sequence[str]) -> CursorPage:
        """See CursorStore."""
        # Not consistent, at half the price: what is read here decides nothing.
        keys = [{self._queue_key: {"S": queue}} for queue in dict.fromkeys(queues)]
        found = read_rows(self._calls, self._table, keys)
        page = self._page(found.rows)
        if found.error is not None:
            page.damaged.update(dict.fromkeys((text_at(key, self._queue_key) for key in found.unread), found.error))
        return page

    def _query(self, request: dict[str, Any], values: Wire, shares: dict[str, Any]) -> tuple[list[Wire], Any]:
        """Ask an index for one page of each share, each from its place on; and where to go on, None at the end."""
        query = partial(self._calls.body, "query", self._table)
        found: list[Wire] = []
        left: dict[str, Any] = {}
        for share, place in shares.items():
            ours = {**values, ":share": {"S": share}}
            body = next(pages(query, place, ExpressionAttributeValues=ours, **request))
            found += body["Items"]
            if "LastEvaluatedKey" in body:
                left[share] = body["LastEvaluatedKey"]
        return found, left or None

    def _scan(self, start: Any, request: dict[str, Any]) -> dict[str, Any]:
        return next(pages(partial(self._calls.body, "scan", self._table), start, **request))

    def _page(self, wires: Iterable[Wire], following: Any = None) -> CursorPage:
        """Read rows; one that cannot be read is its own queue's trouble. What names no queue is no row of ours."""
        rows: list[Cursor] = []
        damaged: dict[str, StreamSortError] = {}
        for wire in wires:
            try:
                rows.append(self._row_of(wire))
            except StreamSortError as error:
                if "S" in wire.get(self._queue_key, {}):
                    damaged[text_at(wire, self._queue_key)] = error
        return CursorPage(tuple(rows), following, damaged)


def waiting_share(queue: str) -> dict[str, str]:
    """Return the key that a queue has in the index of waiting queues."""
    return {"S": tables.WAITING_SHARES[share_of(queue)]}


def activity_of(queue: str, at: float) -> Wire:
    """Return the attributes that list a queue as active at a time."""
    return {tables.SHARE: {"S": str(share_of(queue))}, tables.HOUR: number(hour_of(queue, at))}
