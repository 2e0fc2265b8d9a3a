"""The message's own fields under a schema."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from stream_sort.errors import InvalidMessage
from stream_sort.replay.slots import MESSAGES
from stream_sort.replay.source.fields import Fields


def batch(*documents: dict[str, Any]) -> pa.RecordBatch:
    rows = [{"queue": "a", "seq": seq, "item": json.dumps(document)} for seq, document in enumerate(documents)]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGES)


def test_fields_come_typed_and_what_a_message_lacks_is_null() -> None:
    schema = pa.schema({"name": pa.string(), "size": pa.int64(), "price": pa.float64(), "ok": pa.bool_()})
    rows = Fields(schema, nulls=False).rows(
        batch({"name": "é\n", "size": 3, "price": 2, "ok": True, "other": [1]}, {"size": None})
    )
    assert rows.to_pylist() == [
        {"name": "é\n", "size": 3, "price": 2.0, "ok": True},
        {"name": None, "size": None, "price": None, "ok": None},
    ]


def test_every_type_that_spark_has_can_be_asked_for() -> None:
    schema = pa.schema(
        {
            "small": pa.int32(),
            "exact": pa.decimal128(10, 2),
            "raw": pa.binary(),
            "at": pa.timestamp("us", tz="UTC"),
            "day": pa.date32(),
            "tags": pa.map_(pa.string(), pa.int64()),
            "inner": pa.struct({"list": pa.list_(pa.float32())}),
        }
    )
    document = {
        "small": 7,
        "exact": 1.25,
        "raw": "AAE=",
        "at": "2026-01-31T12:00:00+00:00",
        "day": "2026-01-31",
        "tags": {"x": 1},
        "inner": {"list": [1, 0.5]},
    }
    (row,) = Fields(schema, nulls=False).rows(batch(document)).to_pylist()
    assert row == {
        "small": 7,
        "exact": Decimal("1.25"),
        "raw": b"\0\1",
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "day": date(2026, 1, 31),
        "tags": [("x", 1)],
        "inner": {"list": [1.0, 0.5]},
    }


@pytest.mark.parametrize(
    ("kind", "value", "place"),
    [
        (pa.int64(), "12", "f"),
        (pa.int64(), 2**70, "f"),
        (pa.int64(), True, "f"),
        (pa.int32(), 2**40, "f"),
        (pa.string(), 12, "f"),
        (pa.float64(), "x", "f"),
        (pa.bool_(), 1, "f"),
        (pa.float32(), 1e300, "f"),
        (pa.binary(), "?", "f"),
        (pa.decimal128(4, 2), 12345, "f"),
        (pa.timestamp("us", tz="UTC"), "soon", "f"),
        (pa.list_(pa.int64()), [1, "x"], "f[1]"),
        (pa.struct({"in": pa.struct({"n": pa.int64()})}), {"in": {"n": "x"}}, "f.in.n"),
        (pa.map_(pa.string(), pa.int64()), {"k": "x"}, "f.k"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_queue_seq_and_field(kind: pa.DataType, value: Any, place: str) -> None:
    schema = pa.schema([pa.field("f", kind)])
    with pytest.raises(InvalidMessage) as caught:
        Fields(schema, nulls=False).rows(batch({}, {"f": value}))
    assert (caught.value.queue, caught.value.seq) == ("a", 1)
    assert repr(place) in str(caught.value)


def test_in_null_mode_it_is_null_and_counted() -> None:
    schema = pa.schema({"a": pa.int64(), "b": pa.int64(), "_misfits": pa.int32()})
    fields = Fields(schema, nulls=True)
    rows = fields.rows(batch({"a": 1, "b": 2}, {"a": "x", "b": "y"}, {"a": "x", "b": 3}))
    assert rows.to_pylist() == [
        {"a": 1, "b": 2, "_misfits": 0},
        {"a": None, "b": None, "_misfits": 2},
        {"a": None, "b": 3, "_misfits": 1},
    ]
    assert fields.misfits == 3


def test_a_field_that_must_not_be_null_is_an_error_in_either_mode() -> None:
    schema = pa.schema([pa.field("must", pa.int64(), nullable=False)])
    for nulls in (True, False):
        with pytest.raises(InvalidMessage, match="'must'"):
            Fields(schema, nulls=nulls).rows(batch({"must": 1}, {"other": 2}))


def test_no_messages_make_no_rows() -> None:
    schema = pa.schema({"a": pa.int64()})
    assert Fields(schema, nulls=False).rows(batch()).num_rows == 0


def test_a_decimal_has_every_digit_that_the_message_has() -> None:
    schema = pa.schema({"exact": pa.decimal128(30, 2)})
    text = pa.RecordBatch.from_pylist(
        [{"queue": "a", "seq": 0, "item": '{"exact":12345678901234567.89}'}], schema=MESSAGES
    )
    assert Fields(schema, nulls=False).rows(text).to_pylist() == [{"exact": Decimal("12345678901234567.89")}]


@pytest.mark.parametrize(
    ("kind", "value", "place"),
    [
        (pa.struct([pa.field("n", pa.int64(), nullable=False)]), {"other": 1}, "f.n"),
        (pa.list_(pa.field("item", pa.int64(), nullable=False)), [1, None], "f[1]"),
    ],
)
def test_what_must_not_be_null_inside_a_value_is_named_too(kind: pa.DataType, value: Any, place: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        Fields(pa.schema([pa.field("f", kind)]), nulls=False).rows(batch({"f": value}))
    assert repr(place) in str(caught.value)
