"""Answers that come in parts: the pages of a query or a scan, and batches of which DynamoDB leaves something over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.values import Wire

# As many as BatchGetItem and BatchWriteItem take.
MAX_KEYS = 100
MAX_WRITES = 25


def pages(read: Callable[..., dict[str, Any]], start: Any = None, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages that `read` answers, from the place `start` on, up to the last one."""
    while True:
        body = read(**request, **({} if start is None else {"ExclusiveStartKey": start}))
        yield body
        start = body.get("LastEvaluatedKey") or None
        if start is None:
            return


def searched(read: Callable[..., dict[str, Any]], limit: int, size: int, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages of the first `limit` rows, at most `size` rows each, whether or not a filter hides them."""
    start: Any = None
    while limit > 0:
        body = next(pages(read, start, Limit=min(limit, size), **request))
        yield body
        start, limit = body.get("LastEvaluatedKey"), limit - body["ScannedCount"]
        if start is None:
            return


def rows_of(calls: Calls, table: str, keys: Sequence[Wire], **options: Any) -> Iterator[Wire]:
    """Yield the rows of a table that have these keys, in any order; a hundred for one request."""
    for first in range(0, len(keys), MAX_KEYS):
        request = {table: {"Keys": keys[first : first + MAX_KEYS], **options}}
        for found in batch_get(calls, request):
            yield from found.get(table, ())


def batch_get(calls: Calls, request: dict[str, Any]) -> Iterator[dict[str, list[Wire]]]:
    """Yield what BatchGetItem finds, by table, until nothing of the request is left over, all within one deadline."""
    for body in _rounds(calls, "batch_get_item", "UnprocessedKeys", request):
        yield body["Responses"]


def batch_write(calls: Calls, request: dict[str, Any]) -> None:
    """Write with BatchWriteItem until nothing of the request is left over, all within one deadline."""
    for _ in _rounds(calls, "batch_write_item", "UnprocessedItems", request):
        pass


def _rounds(calls: Calls, method: str, rest: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    tables = " and ".join(request)
    patience = calls.patience(method, tables)
    while request:
        body = calls.across(method, tables, patience=patience, RequestItems=request).body
        yield body
        request = body.get(rest) or {}
        if request:
            patience.wait(rest)
