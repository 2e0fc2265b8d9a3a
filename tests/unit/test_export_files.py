"""Lines of an export that others wrote: what is in no slot is passed over and counted, what cannot be read is named."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import ExportDamaged
from stream_sort.model.message import MAX_SEQ, MIN_SEQ, KeyNames
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.export.files import read_keys, read_slots
from stream_sort.replay.origins.export.manifest import open_export
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.replay.origins.export.manifest import Export

STRANGE = ("1.5", "-0.25", "99999999999999999999", str(MIN_SEQ - 1), "-1E+40")


def wire(number: str, **marks: dict[str, Any]) -> dict[str, Any]:
    return item("a", 0) | {"seq": {"N": number}} | marks


def export_of(folder: Path, *items: dict[str, Any]) -> Export:
    return open_export(Storage(str(make_export(folder, [items]).folder)))


def with_line(folder: Path, line: bytes) -> Export:
    """An export whose second line is another, with a checksum that says so."""
    made = make_export(folder, [[item("a", 0), item("a", 1)]])
    first = json.dumps({"Item": item("a", 0)}).encode()
    made.replace(made.data()[0].name, gzip.compress(first + b"\n" + line + b"\n"), 2)
    return open_export(Storage(str(made.folder)))


def seqs(read: Any, export: Export, *counted: Counter[str]) -> list[int]:
    return [seq for batch in read(export, export.files[0], KeyNames(), *counted) for seq in batch["seq"].to_pylist()]


@pytest.mark.parametrize("number", STRANGE)
def test_what_is_in_no_slot_is_passed_over_and_counted(tmp_path: Path, number: str) -> None:
    export = export_of(tmp_path, item("a", 0), wire(number), item("b", MAX_SEQ), item("b", MIN_SEQ))
    counted: Counter[str] = Counter()
    assert seqs(read_keys, export, counted) == seqs(read_slots, export) == [0, MAX_SEQ, MIN_SEQ]
    assert counted == {"a": 1}


def test_an_export_of_nothing_but_what_is_in_no_slot_has_no_slots(tmp_path: Path) -> None:
    export = export_of(tmp_path, *map(wire, STRANGE))
    counted: Counter[str] = Counter()
    assert seqs(read_keys, export, counted) == seqs(read_slots, export) == []
    assert counted == {"a": len(STRANGE)}


def test_a_whole_number_is_one_however_it_is_written(tmp_path: Path) -> None:
    export = export_of(tmp_path, wire("10.0"), wire("1.1E+1"), wire("1.5"), wire("12"))
    assert seqs(read_keys, export) == seqs(read_slots, export) == [10, 11, 12]
    (batch,) = read_slots(export, export.files[0], KeyNames())
    assert [json.dumps(json.loads(text)["seq"]) for text in batch["item"].to_pylist()] == ["10", "11", "12"]


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ({"_ss_at": {"S": "noon"}}, "line 2 has a '_ss_at' that is not a whole number; who wrote it"),
        ({"_ss_at": {"N": "1.5"}}, "line 2 has a '_ss_at' that is not a whole number; who wrote it"),
        ({"_ss_skipped": {"N": "1"}}, "line 2 has a '_ss_skipped' that is not of type S"),
        ({"_ss_skipped": {"S": "x"}, "_ss_late": {"S": "y"}}, "line 2 has a '_ss_late' that is not of type M"),
    ],
)
def test_a_mark_of_another_type_is_named_by_whoever_reads(
    tmp_path: Path, marks: dict[str, dict[str, Any]], told: str
) -> None:
    export = export_of(tmp_path, item("a", 0), wire("1", **marks))
    for read in (read_keys, read_slots):
        with pytest.raises(ExportDamaged, match=told) as caught:
            seqs(read, export)
        assert "copy the export again" not in str(caught.value)


def test_what_is_no_text_is_named_by_whoever_reads(tmp_path: Path) -> None:
    export = with_line(tmp_path, b'{"Item":{"queue":{"S":"a"},"seq":{"N":"1"},"body":{"S":"\xff"}}}')
    for read in (read_keys, read_slots):
        with pytest.raises(ExportDamaged, match="line 2 is no UTF-8; copy the export again"):
            seqs(read, export)
