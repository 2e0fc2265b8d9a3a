"""Pages of items as DynamoDB sent them, past botocore's parser: for bulk readers only.

botocore builds a Python object for each value of a page, which costs ten times what the page itself does. It lets a
handler take the text first (the `before-parse` event), and then has nothing left to parse.
"""

from __future__ import annotations

import gc
import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.paging import pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.tables import TableNames

TEXT = "RawText"
OK = 300


@dataclass(frozen=True, slots=True)
class RawPage:
    """Items in DynamoDB's JSON, and the read units they cost."""

    items: list[dict[str, dict[str, Any]]]
    units: float


class RawPages:
    """Reads ranges of the items table; its client answers queries for this reader alone."""

    def __init__(self, calls: Calls, names: TableNames, *, consistent: bool = True) -> None:
        self._calls = calls
        self._names = names
        self._consistent = consistent
        for operation in ("Query", "Scan"):
            events = calls.client.meta.events
            events.register(f"before-parse.dynamodb.{operation}", _keep_text, unique_id=f"stream_sort-raw-{operation}")

    def read(self, queue: str, after: int, through: int) -> Iterator[RawPage]:
        """Yield all items of `(after, through]`, in order; pages may be empty."""
        request: dict[str, Any] = {
            "ConsistentRead": self._consistent,
            "KeyConditionExpression": "#queue = :queue AND #seq BETWEEN :first AND :last",
            "ExpressionAttributeNames": {"#queue": self._names.keys.queue, "#seq": self._names.keys.seq},
            "ExpressionAttributeValues": {
                ":queue": {"S": queue},
                ":first": {"N": str(after + 1)},
                ":last": {"N": str(through)},
            },
        }
        return self._pages("query", request)

    def keys_of(self, queue: str) -> Iterator[RawPage]:
        """Yield the keys of a queue's items, in order, with the marks of tombstones and late messages."""
        condition = {
            "KeyConditionExpression": "#queue = :queue",
            "ExpressionAttributeValues": {":queue": {"S": queue}},
        }
        return self._pages("query", self._only_keys() | condition)

    def keys_in(self, segment: int, segments: int) -> Iterator[RawPage]:
        """Yield the keys of all items in one of so many segments of the table; a queue's come in order."""
        return self._pages("scan", self._only_keys() | {"Segment": segment, "TotalSegments": segments})

    def _only_keys(self) -> dict[str, Any]:
        # A late message's note on types is there whenever the message is, and is short.
        names = {
            "#queue": self._names.keys.queue,
            "#seq": self._names.keys.seq,
            "#skipped": tables.SKIPPED,
            "#late": tables.LATE_TYPES,
        }
        return {
            "ConsistentRead": self._consistent,
            "ProjectionExpression": ", ".join(names),
            "ExpressionAttributeNames": names,
        }

    def _pages(self, method: str, request: dict[str, Any]) -> Iterator[RawPage]:
        for body in pages(partial(self._read, method), ReturnConsumedCapacity="TOTAL", **request):
            yield RawPage(body.pop("Items"), body.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0))

    def _read(self, method: str, **request: Any) -> dict[str, Any]:
        text = self._calls.body(method, self._names.items, **request)[TEXT]
        with no_cycles():
            body: dict[str, Any] = json.loads(text)
        return body


@contextmanager
def no_cycles() -> Iterator[None]:
    """Stop looking for cycles while values are made by the thousand: that takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _keep_text(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    if response_dict["status_code"] < OK:
        customized_response_dict[TEXT] = response_dict["body"]
        response_dict["body"] = b"{}"
