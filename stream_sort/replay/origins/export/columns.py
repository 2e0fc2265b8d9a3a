"""Slots of plain lines, column by column: no Python object for each value, which is three times as fast as one by one.

Lines are plain if their fields are texts, numbers, booleans and nulls. Whatever else is in a block, the block is left
to the decoder, which has the last word on every line: both give the same bytes.
"""

from __future__ import annotations

from json.encoder import encode_basestring as quoted
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stream_sort.model.message import MIN_SEQ, RESERVED_PREFIX
from stream_sort.replay.origins.export.lines import lines_of, parsed
from stream_sort.replay.slots import SLOTS
from stream_sort.stores.dynamodb import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.slots import WireItem

KINDS = {"S": pa.string(), "N": pa.string(), "BOOL": pa.bool_(), "NULL": pa.bool_()}
# What Arrow reads in another way than Python does, or cannot tell from what is not there.
NOT_PLAIN = (rb"\u", b"null")
NEEDS_ESCAPES = r'["\\\x00-\x1f]'
# What makes an item more than the texts of its fields.
SPECIAL = frozenset({tables.SKIPPED, tables.LATE, tables.TYPES, tables.LATE_TYPES})
# Of a table with more names, most columns would be empty in most lines.
MOST_NAMES = 100


class PlainLines:
    """Reads blocks of an export whose lines have the fields that were seen so far."""

    def __init__(self, keys: KeyNames) -> None:
        self._keys = keys
        self._kinds: dict[str, set[str]] = {}
        self._is_plain = True

    def learn(self, items: Iterable[WireItem]) -> None:
        """Know the fields of some items, which the decoder has read, from now on."""
        for item in items:
            if self._is_plain and SPECIAL.isdisjoint(item):
                for name, value in item.items():
                    # What is reserved may be anything: nobody has looked at it.
                    self._kinds.setdefault(name, set()).update(value if isinstance(value, dict) else {""})
        kinds = set[str]().union(*self._kinds.values())
        self._is_plain = kinds <= KINDS.keys() and len(self._kinds) <= MOST_NAMES

    def slots(self, block: bytes) -> pa.RecordBatch | None:
        """Return one row for each line of a block; None if it takes the decoder to tell."""
        if not self._is_plain or not self._kinds or any(one in block for one in NOT_PLAIN) or not _is_text(block):
            return None
        try:
            items = self._parsed(block)
            return None if items is None else self._batch(items)
        except (pa.ArrowException, LookupError, ValueError):
            return None

    def _parsed(self, block: bytes) -> pa.StructArray | None:
        fields = [
            (name, pa.struct([(kind, KINDS[kind]) for kind in sorted(seen)])) for name, seen in self._kinds.items()
        ]
        items = parsed(block, pa.schema([("Item", pa.struct(fields))]), "error")
        return items if lines_of(block, b'{"Item"') == len(items) and not items.null_count else None

    def _batch(self, items: pa.StructArray) -> pa.RecordBatch | None:
        values = dict(zip(self._kinds, items.flatten(), strict=True))
        keys, rows = self._keys, len(items)
        queues, seqs = values[keys.queue].field("S"), _whole_numbers(values[keys.seq].field("N"))
        arrived = values.get(tables.ARRIVED_AT, pa.nulls(rows, pa.struct([("N", pa.string())])))
        times = _whole_numbers(arrived.field("N"))
        if times.null_count != arrived.null_count:
            return None
        if queues.null_count or seqs.null_count or pc.min(seqs).as_py() < MIN_SEQ:
            return None
        own = sorted(name for name in values if not name.startswith(RESERVED_PREFIX))
        texts = _joined([_field_text(name, values[name]) for name in own])
        nothing = pa.nulls(rows, pa.string())
        return pa.RecordBatch.from_arrays([queues, seqs, texts, times, nothing, nothing, nothing], schema=SLOTS)


def _is_text(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _whole_numbers(texts: pa.Array) -> pa.Array:
    """Return texts as whole numbers; ValueError if one is written in another way than Python would write it."""
    numbers = texts.cast(pa.int64())
    if not numbers.cast(pa.string()).equals(texts):
        raise ValueError("a number that is not written plainly")
    return numbers


def _field_text(name: str, values: pa.StructArray) -> pa.Array:
    """Return the name and value of each row's field as JSON; null where a row has none."""
    kinds = [field.name for field in values.type]
    texts = [_TEXTS[kind](array) for kind, array in zip(kinds, values.flatten(), strict=True)]
    text = pc.coalesce(*texts)
    there = len(values) - values.null_count
    if sum(len(one) - one.null_count for one in texts) != there or len(text) - text.null_count != there:
        raise ValueError("a value that has not one type")
    return pc.binary_join_element_wise(quoted(name) + ":", text, "")


def _joined(fields: Sequence[pa.Array]) -> pa.Array:
    inner = pc.binary_join_element_wise(*fields, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", inner, "}", "")


def _quoted(values: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(values, NEEDS_ESCAPES)).as_py():
        return pa.array([None if value is None else quoted(value) for value in values.to_pylist()], pa.string())
    return pc.binary_join_element_wise('"', values, '"', "")


_TEXTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "S": _quoted,
    "N": lambda values: values,
    "BOOL": lambda values: pc.if_else(values, "true", "false"),
    "NULL": lambda values: pc.if_else(values.is_valid(), "null", None),
}
