"""Plain lines of an export are read column by column, and give what the decoder gives; all others are left to it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.model.message import MIN_SEQ, KeyNames
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.export import files
from stream_sort.replay.origins.export.columns import MOST_NAMES, PlainLines
from stream_sort.replay.origins.export.manifest import open_export
from stream_sort.replay.slots import SlotDecoder
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from pathlib import Path

KEYS = KeyNames()
FIRST: dict[str, Any] = item("a", 0) | {"x": {"S": "text"}, "_ss_at": {"N": "5"}, "_ss_seen": {"N": "-1"}}
PLAIN = [
    {},
    {"x": {"S": ""}},
    {"x": {"S": 'say "hi" \\ and\ttab'}},
    {"x": {"S": "größer 🙂 \u2028"}},
    {"_ss_at": {"N": "-1"}},
    {"queue": {"S": "ü/1"}, "seq": {"N": str(MIN_SEQ)}},
]
NOT_PLAIN = [
    {"y": {"S": "a new name"}},
    {"x": {"N": "1"}},
    {"x": {"S": "null and void"}},
    {"x": {"S": None}},
    {"x": None},
    {"x": {}},
    {"seq": {"N": "1.0"}},
    {"seq": {"N": "0x1F"}},
    {"seq": {"N": str(MIN_SEQ - 1)}},
    {"_ss_at": {"N": "1e3"}},
    {"_ss_at": {}},
    {"_ss_skipped": {"S": "lost"}},
    {"_ss_late": {"M": {}}},
    {"_ss_types": {"S": "{}"}},
]


def block_of(*items: dict[str, Any], end: str = "\n") -> bytes:
    return ("\n".join(json.dumps({"Item": one}, ensure_ascii=False) for one in items) + end).encode()


def knowing(*items: dict[str, Any]) -> PlainLines:
    plain = PlainLines(KEYS)
    plain.learn(items)
    return plain


@pytest.mark.parametrize("end", ["\n", ""])
def test_plain_lines_give_what_the_decoder_gives(end: str) -> None:
    items = [FIRST | change for change in PLAIN]
    slots = knowing(FIRST).slots(block_of(*items, end=end))
    assert slots is not None
    assert slots.equals(SlotDecoder(KEYS).batch(items))


@pytest.mark.parametrize("name", ["x", "_ss_at", "_ss_seen"])
def test_a_field_may_be_missing(name: str) -> None:
    items = [FIRST, {key: value for key, value in FIRST.items() if key != name}]
    slots = knowing(FIRST).slots(block_of(*items))
    assert slots is not None
    assert slots.equals(SlotDecoder(KEYS).batch(items))


def test_a_field_may_have_one_type_here_and_another_there() -> None:
    values = {"S": "1"}, {"N": "1.50"}, {"BOOL": True}, {"BOOL": False}, {"NULL": True}
    items = [FIRST | {"x": value} for value in values]
    slots = knowing(*items).slots(block_of(*items))
    assert slots is not None
    assert slots.equals(SlotDecoder(KEYS).batch(items))


@pytest.mark.parametrize("change", NOT_PLAIN, ids=str)
def test_what_is_not_plain_is_left_to_the_decoder(change: dict[str, Any]) -> None:
    assert knowing(FIRST).slots(block_of(FIRST, FIRST | change)) is None


@pytest.mark.parametrize("key", ["queue", "seq"])
def test_a_line_without_its_key_is_left_to_the_decoder(key: str) -> None:
    keyless = {name: value for name, value in FIRST.items() if name != key}
    assert knowing(FIRST).slots(block_of(FIRST, keyless)) is None


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\n",
        b"\n" + block_of(FIRST),
        block_of(FIRST)[:-1] + block_of(FIRST),
        block_of(FIRST)[:-3],
        block_of(FIRST).replace(b": {", b":\n{", 1),
        block_of(FIRST).replace(b": {", b":\n{", 1)[:-1] + block_of(FIRST),
        block_of(FIRST).replace(b"text", b"\xff"),
        block_of(FIRST).replace(b"text", rb"\ud800"),
        block_of(FIRST).replace(b'"x":', b'"x":{"S":"twice"},"x":'),
        b'{"Other":1}\n',
        b"[]\n",
    ],
)
def test_lines_that_do_not_hold_one_item_each_are_left_to_the_decoder(block: bytes) -> None:
    assert knowing(FIRST).slots(block) is None


def test_a_table_with_nested_values_or_very_many_names_is_left_to_the_decoder() -> None:
    nested = FIRST | {"x": {"M": {"y": {"N": "1"}}}}
    assert knowing(FIRST, nested).slots(block_of(FIRST)) is None
    assert knowing(*(FIRST | {f"name-{n}": {"S": ""}} for n in range(MOST_NAMES))).slots(block_of(FIRST)) is None


@pytest.mark.parametrize("value", [5, None, True, [[1]]])
def test_reserved_fields_that_nobody_looks_at_may_be_anything(value: object) -> None:
    assert knowing(FIRST | {"_ss_x": value}).slots(block_of(FIRST)) is None


def test_a_tombstone_does_not_hinder_the_blocks_after_it() -> None:
    tombstone = item("a", 1) | {"_ss_skipped": {"S": "lost"}, "_ss_late": {"M": {}}}
    assert knowing(tombstone, FIRST).slots(block_of(FIRST)) is not None


def test_a_file_is_read_in_both_ways_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 512)
    rows = [item("a", seq) | {"x": {"S": f"{seq * 2654435761 % 2**32:08x}"}} for seq in range(2_000)]
    rows[1_000] |= {"x": {"N": "7"}}
    read = [0]
    by_column = PlainLines.slots

    def counting(plain: PlainLines, block: bytes) -> Any:
        slots = by_column(plain, block)
        read[0] += 0 if slots is None else slots.num_rows
        return slots

    monkeypatch.setattr(PlainLines, "slots", counting)
    export = open_export(Storage(str(make_export(tmp_path, [rows]).folder)))
    found = [row for batch in files.read_slots(export, export.files[0], KEYS) for row in batch.to_pylist()]
    assert found == SlotDecoder(KEYS).batch(rows).to_pylist()
    assert len(rows) / 2 < read[0] < len(rows)
