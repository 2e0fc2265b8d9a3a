"""Slots as Arrow batches, from the JSON in which DynamoDB sends and exports its items.

This is the inner loop of every replay: a page's text goes through `json.loads` once, and each message's own text is
put together from the parts, without a Python object for each value. Knows no table and no Spark.
"""

from __future__ import annotations

import json
from base64 import b64decode
from decimal import Decimal
from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.errors import InvalidInput, StoreError, shown
from stream_sort.formats.json_text import dumps, loads
from stream_sort.model.message import MAX_SEQ, MIN_SEQ, RESERVED_PREFIX
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.raw_pages import no_cycles
from stream_sort.stores.dynamodb.values import decode, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.ranges import Selection

SLOTS = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("item", pa.string()),
        pa.field("arrived_at", pa.int64()),
        pa.field("skipped", pa.string()),
        pa.field("late", pa.string()),
        pa.field("binary", pa.string()),
    ]
)
"""`late` is a message that came after its seq was skipped; `binary` tells where either holds bytes, as JSON paths."""
MESSAGES = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
    ]
)

WireItem = dict[str, dict[str, Any]]
# Of a shape of items: the names of its own fields in the order of the text, and the text, with a place for each value.
Layout = tuple[list[str], str]


class SlotDecoder:
    """Turns items in DynamoDB's JSON into batches of slots.

    The text of a message has its fields sorted by name at every level: the same message gives the same bytes,
    in whichever order a table sends its attributes.
    """

    def __init__(self, keys: KeyNames) -> None:
        self._keys = keys
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._saw_bytes = False

    def batch(self, items: Sequence[WireItem]) -> pa.RecordBatch:
        """Return one row for each entry of each slot, in order; a tombstone has a reason and no message.

        What others wrote between two seqs (1.5) is no slot, and left out, as everywhere.
        """
        try:
            with no_cycles():
                return self._batch(items)
        except OverflowError:
            raise self._out_of_bounds(items) from None

    def _batch(self, items: Sequence[WireItem]) -> pa.RecordBatch:
        queues, seqs, items = self._entries(items)
        reasons = [item[tables.SKIPPED]["S"] if tables.SKIPPED in item else None for item in items]
        texts = [self._text(item) if reason is None else None for item, reason in zip(items, reasons, strict=True)]
        times = [int(item[tables.ARRIVED_AT]["N"]) if tables.ARRIVED_AT in item else None for item in items]
        # A reason may be empty: what counts is that there is one.
        skips = reasons.count(None) < len(reasons)
        lates = [self._late_text(item) if tables.LATE in item else None for item in items] if skips else None
        binaries = [_bytes_at(item) for item in items] if self._saw_bytes else None
        self._saw_bytes = False
        columns = queues, seqs, texts, times, reasons, lates, binaries
        arrays = [_array(column, field, len(items)) for column, field in zip(columns, SLOTS, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=SLOTS)

    def place(self, item: WireItem) -> tuple[str, int]:
        """Return the queue and seq of an item."""
        keys = self._keys
        try:
            return item[keys.queue]["S"], int(item[keys.seq]["N"])
        except (KeyError, TypeError, ValueError):
            raise StoreError(
                f"the item {shown(item, 200)} has no text {keys.queue!r} and whole number {keys.seq!r} as its keys; "
                "check queueKey and seqKey, and who wrote it"
            ) from None

    def _out_of_bounds(self, items: Sequence[WireItem]) -> StoreError:
        """Of an item that others wrote where no seq is; DynamoDB's numbers go further than 64 bits."""
        for item in items:
            queue, seq = self.place(item)
            if not MIN_SEQ <= seq <= MAX_SEQ:
                return StoreError(f"the item in queue {queue!r} at {seq} is at no seq; delete it, and mend its writer")
        return StoreError("an item holds a number that is out of bounds; who wrote it?")

    def _entries(self, items: Sequence[WireItem]) -> tuple[list[str], list[int], Sequence[WireItem]]:
        """Return the queue, the seq and the content of each entry; nothing else here knows how many an item has."""
        keys = self._keys
        try:
            return [item[keys.queue]["S"] for item in items], [int(item[keys.seq]["N"]) for item in items], items
        except (KeyError, TypeError, ValueError):
            slots = [item for item in items if "N" not in item.get(keys.seq, {}) or is_whole(item, keys.seq)]
            places = [self.place(item) for item in slots]
            return [queue for queue, _ in places], [seq for _, seq in places], slots

    def _text(self, item: WireItem) -> str:
        if tables.TYPES in item:
            return self._noted_text(item)
        names = tuple(item)
        layout = self._layouts.get(names)
        if layout is None:
            layout = self._layouts[names] = _layout(names)
        own, text = layout
        values = []
        for name in own:
            value = item[name]
            if "S" in value:
                values.append(quoted(value["S"]))
            elif "N" in value:
                values.append(value["N"])
            elif "BOOL" in value:
                values.append("true" if value["BOOL"] else "false")
            else:
                values.append(self._inner_text(value))
        return text % tuple(values)

    def _late_text(self, item: WireItem) -> str:
        """Return the late message beside a tombstone, with its place, which is not kept twice."""
        place = {name: item[name] for name in (self._keys.queue, self._keys.seq)}
        types = item.get(tables.LATE_TYPES, {}).get("S")
        return self._text({**place, **item[tables.LATE]["M"], **({tables.TYPES: {"S": types}} if types else {})})

    def _value_text(self, kind: str, value: Any) -> str:  # noqa: PLR0911  # one for each type
        self._saw_bytes = self._saw_bytes or kind in {"B", "BS"}
        match kind:
            case "S" | "B":
                return quoted(value)
            case "N":
                return str(value)
            case "BOOL":
                return "true" if value else "false"
            case "NULL":
                return "null"
            case "M":
                return "{" + ",".join(f"{quoted(name)}:{self._inner_text(value[name])}" for name in sorted(value)) + "}"
            case "L":
                return "[" + ",".join(map(self._inner_text, value)) + "]"
            case "SS" | "BS":
                return "[" + ",".join(map(quoted, sorted(value))) + "]"
            case "NS":
                return "[" + ",".join(sorted(value, key=Decimal)) + "]"
        raise StoreError(f"an item holds a value of the unknown type {kind!r}")

    def _inner_text(self, wire: dict[str, Any]) -> str:
        ((kind, value),) = wire.items()
        return self._value_text(kind, value)

    def _noted_text(self, item: WireItem) -> str:
        """Return a message with numbers that DynamoDB cannot hold as they were: by way of the message itself."""
        own = {name: value for name, value in item.items() if not name.startswith(RESERVED_PREFIX)}
        document = decode(_with_bytes({"M": own})["M"], item[tables.TYPES]["S"])
        self._saw_bytes = True
        try:
            return dumps(_sorted(document))
        except InvalidInput:
            queue, seq = self.place(item)
            raise InvalidInput(f"queue {queue!r}, seq {seq}: NaN and infinities have no JSON form") from None


def messages(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the messages of a batch of slots, without the tombstones."""
    if batch.column("item").null_count:
        batch = batch.filter(pc.is_valid(batch.column("item")))
    return pa.RecordBatch.from_arrays(batch.columns[: len(MESSAGES)], schema=MESSAGES)


def document_of(item: str, binary: str | None, *, exact: bool = False) -> dict[str, Any]:
    """Return the message of a slot, or its late one, with its bytes as bytes; what others stored as sets is lists.

    `exact` keeps all digits of its numbers; see `loads`.
    """
    document: dict[str, Any] = loads(item, exact=exact)
    for *steps, last in json.loads(binary) if binary else ():
        holder: Any = document
        for step in steps:
            holder = holder[step]
        holder[last] = b64decode(holder[last])
    return document


def in_time(batch: pa.RecordBatch, selection: Selection) -> pa.RecordBatch:
    """Return the slots that arrived when the selection says."""
    times = batch.column("arrived_at")
    if selection.since is not None:
        batch = batch.filter(pc.greater_equal(times, selection.since * 1000))
        times = batch.column("arrived_at")
    if selection.until is not None:
        batch = batch.filter(pc.less(times, selection.until * 1000))
    return batch


def _array(values: list[Any] | None, field: pa.Field, rows: int) -> pa.Array:
    return pa.nulls(rows, field.type) if values is None else pa.array(values, field.type)


def _layout(names: Iterable[str]) -> Layout:
    own = sorted(name for name in names if not name.startswith(RESERVED_PREFIX))
    fields = (quoted(name).replace("%", "%%") + ":%s" for name in own)
    return own, "{" + ",".join(fields) + "}"


def _bytes_at(item: WireItem) -> str | None:
    """Return the paths of all bytes in an item's own fields, or in its late message, as JSON; None for none."""
    own = {name: value for name, value in item.items() if not name.startswith(RESERVED_PREFIX)}
    own |= item[tables.LATE]["M"] if tables.LATE in item else {}
    paths = list(_paths_to_bytes({"M": own}, ()))
    return json.dumps(paths, separators=(",", ":"), ensure_ascii=False) if paths else None


def _paths_to_bytes(wire: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    ((kind, value),) = wire.items()
    if kind == "B":
        yield path
    elif kind == "BS":
        # It comes as a list, all of it bytes.
        yield from ((*path, place) for place in range(len(value)))
    elif kind in {"M", "L"}:
        for step, inner in sorted(value.items()) if kind == "M" else enumerate(value):
            yield from _paths_to_bytes(inner, (*path, step))


def _with_bytes(wire: dict[str, Any]) -> dict[str, Any]:
    """Return the value as botocore gives it: base64 text as bytes."""
    ((kind, value),) = wire.items()
    if kind == "B":
        return {kind: b64decode(value)}
    if kind == "BS":
        return {kind: [b64decode(one) for one in value]}
    if kind == "M":
        return {kind: {name: _with_bytes(inner) for name, inner in value.items()}}
    if kind == "L":
        return {kind: [_with_bytes(inner) for inner in value]}
    return wire


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value
