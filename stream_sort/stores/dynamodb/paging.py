"""Answers that come in parts: the pages of a query or a scan, and batches of which DynamoDB leaves something over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreUnavailable
from stream_sort.stores.dynamodb.calls import PassingFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stream_sort.stores.dynamodb.calls import Calls, Patience
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


@dataclass(slots=True)
class FoundRows:
    """The rows that have some keys, in any order; and the keys of those that are not known, for want of an answer."""

    rows: list[Wire] = field(default_factory=list)
    unread: list[Wire] = field(default_factory=list)
    error: StoreUnavailable | None = None


def rows_of(calls: Calls, table: str, keys: Sequence[Wire], **options: Any) -> Iterator[Wire]:
    """Yield the rows of a table that have these keys, in any order; StoreUnavailable once some are left over."""
    found = read_rows(calls, table, keys, **options)
    yield from found.rows
    if found.error is not None:
        raise found.error


def read_rows(calls: Calls, table: str, keys: Sequence[Wire], **options: Any) -> FoundRows:
    """Read the rows of a table that have these keys, a hundred for one request, and say which are left over.

    These are tried again when all others were: so a row that stays throttled hides no other. All of it has one
    deadline, of which a request that reads anything takes nothing: so one fault after a long time is not the last one.
    StoreUnavailable if nothing is known, or more is left over than one request asks for: that is the table's state.
    """
    found = FoundRows(unread=list(keys))
    patience = calls.patience("batch_get_item", table)
    while found.unread:
        problem = _read_round(calls, table, found, patience, options)
        if not found.unread:
            break
        try:
            patience.wait(problem)
        except StoreUnavailable as error:
            if len(found.unread) == len(keys) or len(found.unread) > MAX_KEYS:
                raise
            found.error = error
            break
    return found


def _read_round(calls: Calls, table: str, found: FoundRows, patience: Patience, options: dict[str, Any]) -> object:
    """Ask once for all that is unread; return why some of it still is. Failures that took all the time end it."""
    asked, found.unread = found.unread, []
    problem: object = "UnprocessedKeys"
    for first in range(0, len(asked), MAX_KEYS):
        keys = asked[first : first + MAX_KEYS]
        request, began = {table: {"Keys": keys, **options}}, calls.monotonic()
        try:
            body = calls.once("batch_get_item", patience.target, RequestItems=request).body
        except PassingFault as fault:
            problem = fault.problem
            found.unread += keys
            if patience.is_over:
                found.unread += asked[first + MAX_KEYS :]
                break
            continue
        left = body.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ())
        if len(left) < len(keys):
            patience.leave_out(calls.monotonic() - began)
        found.rows += body["Responses"].get(table, ())
        found.unread += left
    return problem


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
