"""The message's own fields as columns of a schema that the user gives.

Arrow reads whole batches at once. Where it stumbles, and for the types it cannot read from JSON, one value after the
other is fitted here, so that the error can name the message and the field.
"""

from __future__ import annotations

import io
import json
import math
from base64 import b64decode
from binascii import Error as NotBase64
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import json as arrow_json
from pyarrow import types

from stream_sort.errors import InvalidMessage, shown

if TYPE_CHECKING:
    from collections.abc import Callable

MISFITS = "_misfits"
PLAIN = frozenset({pa.string(), pa.int64(), pa.float64(), pa.bool_()})


class Misfit(Exception):
    """A value that does not fit its type; `path` leads to it. Never leaves this module."""

    def __init__(self, value: Any, wanted: pa.DataType, path: str = "") -> None:
        super().__init__(path)
        self.value = value
        self.wanted = wanted
        self.path = path


class Fields:
    """Turns messages into rows of a schema; a field that a message lacks is null.

    A value that does not fit raises InvalidMessage, or with `nulls` becomes null and is counted in the column
    `_misfits`, if the schema has one.
    """

    def __init__(self, schema: pa.Schema, *, nulls: bool) -> None:
        self._schema = schema
        self._nulls = nulls
        self._own = pa.schema([field for field in schema if field.name != MISFITS])
        self._is_plain = all(_is_plain(field.type) for field in self._own)
        self.misfits = 0

    def rows(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        """Return the messages of a batch, one row each."""
        table = self._at_once(messages) if self._is_plain and messages.num_rows else None
        return table if table is not None else self._one_by_one(messages)

    def _at_once(self, messages: pa.RecordBatch) -> pa.RecordBatch | None:
        text = io.BytesIO("\n".join(messages.column("item").to_pylist()).encode())
        wanted = pa.schema([field.with_nullable(True) for field in self._own])  # noqa: FBT003  # Arrow's interface
        how = arrow_json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
        try:
            size = max(text.getbuffer().nbytes, 1)
            table = arrow_json.read_json(text, arrow_json.ReadOptions(block_size=size), how)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        columns = {field.name: _whole(table.column(field.name)) for field in self._own}
        if any(not field.nullable and columns[field.name].null_count for field in self._own):
            return None
        return self._batch(columns, [0] * table.num_rows)

    def _one_by_one(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        values: dict[str, list[Any]] = {field.name: [] for field in self._own}
        misfits = []
        rows = messages.to_pydict()
        for queue, seq, text in zip(rows["queue"], rows["seq"], rows["item"], strict=True):
            document, missed = json.loads(text, parse_float=Decimal), 0
            for field in self._own:
                try:
                    value = _fitted(document.get(field.name), field)
                except Misfit as misfit:
                    if not self._nulls or not field.nullable:
                        raise _describe(misfit, queue, seq, field) from None
                    value, missed = None, missed + 1
                values[field.name].append(value)
            misfits.append(missed)
        arrays = {field.name: pa.array(values[field.name], field.type) for field in self._own}
        self.misfits += sum(misfits)
        return self._batch(arrays, misfits)

    def _batch(self, columns: dict[str, pa.Array], misfits: list[int]) -> pa.RecordBatch:
        arrays = [
            pa.array(misfits, field.type) if field.name == MISFITS else columns[field.name] for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _describe(misfit: Misfit, queue: str, seq: int, field: pa.Field) -> InvalidMessage:
    place = field.name + misfit.path
    problem = "it has no value, and must have one" if misfit.value is None else f"{shown(misfit.value)} is none"
    return InvalidMessage(
        f"the field {place!r} should be {misfit.wanted}: {problem}; change the schema, or read with mode=null",
        queue=queue,
        seq=seq,
    )


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _is_plain(kind: pa.DataType) -> bool:
    """Return True if Arrow reads this type from JSON as we do."""
    if types.is_list(kind):
        return _is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    return kind in PLAIN


def _fitted(value: Any, field: pa.Field) -> Any:
    if value is None:
        if not field.nullable:
            raise Misfit(value, field.type)
        return None
    return _fit(value, field.type)


def _fit(value: Any, kind: pa.DataType) -> Any:
    if types.is_list(kind) and isinstance(value, list):
        return [_below(f"[{index}]", one, kind.value_field) for index, one in enumerate(value)]
    if types.is_struct(kind) and isinstance(value, dict):
        return {field.name: _below(f".{field.name}", value.get(field.name), field) for field in kind}
    if types.is_map(kind) and isinstance(value, dict) and types.is_string(kind.key_type):
        return [(name, _below(f".{name}", one, kind.item_field)) for name, one in value.items()]
    for is_kind, fit in SCALARS:
        if is_kind(kind):
            try:
                fitted = fit(value)
                _check_range(pa.scalar(fitted, kind), fitted)
            except (ValueError, TypeError, OverflowError, InvalidOperation, NotBase64, pa.ArrowException):
                break
            return fitted
    raise Misfit(value, kind)


def _check_range(held: pa.Scalar, value: Any) -> None:
    """Raise OverflowError for a float that the narrower type makes infinite."""
    if isinstance(value, float) and not math.isfinite(held.as_py()):
        raise OverflowError


def _below(step: str, value: Any, field: pa.Field) -> Any:
    try:
        return _fitted(value, field)
    except Misfit as misfit:
        raise Misfit(misfit.value, misfit.wanted, step + misfit.path) from None


def _of(*kinds: type) -> Callable[[Any], Any]:
    def same(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError
        return value

    return same


def _number(value: Any) -> float:
    number = float(_of(int, Decimal)(value))
    if not math.isfinite(number):
        raise OverflowError
    return number


def _decimal(value: Any) -> Decimal:
    return Decimal(_of(int, Decimal, str)(value))


SCALARS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (types.is_string, _of(str)),
    (types.is_integer, _of(int)),
    (types.is_floating, _number),
    (types.is_boolean, _of(bool)),
    (types.is_decimal, _decimal),
    (types.is_binary, lambda value: b64decode(_of(str)(value), validate=True)),
    (types.is_timestamp, lambda value: datetime.fromisoformat(_of(str)(value))),
    (types.is_date, lambda value: date.fromisoformat(_of(str)(value))),
)
