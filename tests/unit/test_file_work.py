from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream_sort.replay.backfill.ledger import Ledger
from stream_sort.replay.backfill.targets import files
from stream_sort.replay.backfill.targets.files import FileWork
from stream_sort.replay.completeness import pieces
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Part, Range, Selection
from tests.replayed import slots, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PART = Part(2, (Range("a", -1, 99), Range("b", 9, 20)))
NAME = "part-0000002"


def whole() -> Iterator[pa.RecordBatch]:
    yield slots("a", range(100), skipped={7: "given up"})
    yield slots("b", range(10, 21))


@pytest.fixture
def work(tmp_path: Path) -> FileWork:
    ledger = Ledger(Storage(str(tmp_path / "ledger")))
    return FileWork(Storage(str(tmp_path / "out")), ledger, "parquet", Selection(), may_have_holes=False)


EXPECTED = [("a", seq) for seq in range(100) if seq != 7] + [("b", seq) for seq in range(10, 21)]


def test_a_part_becomes_a_file_with_its_messages_in_order(work: FileWork, tmp_path: Path) -> None:
    record = work(PART, whole())
    table = pq.read_table(tmp_path / "out" / f"{NAME}.parquet")
    assert table.column_names == ["queue", "seq", "item"]
    places = list(zip(table["queue"].to_pylist(), table["seq"].to_pylist(), strict=True))
    assert places == EXPECTED
    assert table["item"].to_pylist() == [text_of(*place) for place in places]
    assert [(one.queue, one.rows, one.tombstones, one.is_whole) for one in record.tallies] == [
        ("a", 99, 1, True),
        ("b", 11, 0, True),
    ]
    assert work.ledger.record(2) == record
    assert record.ended


def test_json_lines_hold_queue_seq_and_message(work: FileWork, tmp_path: Path) -> None:
    replace(work, form="jsonl")(PART, whole())
    replace(work, form="jsonl.gz")(PART, whole())
    text = (tmp_path / "out" / f"{NAME}.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["queue"], line["seq"]) for line in lines] == EXPECTED
    assert all(line["item"]["text"] == f"{line['queue']} {line['seq']}" for line in lines)
    packed = (tmp_path / "out" / f"{NAME}.jsonl.gz").read_bytes()
    assert gzip.decompress(packed).decode() == text
    # Where gzip would note the time of day.
    assert packed[4:8] == bytes(4)


@pytest.mark.parametrize("form", ["parquet", "jsonl", "jsonl.gz"])
def test_the_bytes_are_the_same_in_whatever_batches_the_slots_come(
    work: FileWork, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 13)
    monkeypatch.setattr(files, "GROUP_BYTES", 300)
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    digests = set()
    for size in (1, 5, 13, 14, 1000):
        replace(work, form=form)(PART, pieces(whole(), size))
        content = (tmp_path / "out" / f"{NAME}.{form}").read_bytes()
        digests.add(hashlib.sha256(content).hexdigest())
    assert len(digests) == 1


def test_row_groups_end_by_rows_or_by_bytes(work: FileWork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 13)
    monkeypatch.setattr(files, "GROUP_BYTES", 3 * len(text_of("a", 10)))
    work(PART, whole())
    file = pq.ParquetFile(tmp_path / "out" / f"{NAME}.parquet")
    sizes = {file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)}
    assert max(sizes) == 4
    monkeypatch.setattr(files, "GROUP_BYTES", 10**9)
    work(PART, whole())
    file = pq.ParquetFile(tmp_path / "out" / f"{NAME}.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(3)] == [13, 13, 13]


def test_a_part_with_a_hole_is_not_published(work: FileWork, tmp_path: Path) -> None:
    record = work(PART, iter([slots("a", [0, 1, 5])]))
    assert not record.ended
    assert record.tallies[0].missing == (Range("a", 1, 4),)
    assert "seqs 2 to 4 not stored" in record.tallies[0].failed
    assert not (tmp_path / "out").exists()
    assert work.ledger.record(2) is None


def test_holes_that_are_allowed_are_counted_and_the_rest_is_written(work: FileWork, tmp_path: Path) -> None:
    record = replace(work, may_have_holes=True)(PART, iter([slots("a", range(95)), slots("b", [12, 15])]))
    assert [one.missing for one in record.tallies] == [
        (Range("a", 94, 99),),
        (Range("b", 9, 11), Range("b", 12, 14), Range("b", 15, 20)),
    ]
    assert pq.read_table(tmp_path / "out" / f"{NAME}.parquet").num_rows == 97
    assert record.ended
    assert all(one.is_done and not one.is_whole for one in record.tallies)


def test_only_what_arrived_in_time_is_written_and_completeness_counts_all(work: FileWork, tmp_path: Path) -> None:
    part = Part(2, (Range("a", -1, 4),))
    times = {0: 1_000, 1: 5_000, 2: 2_000, 3: 2_999, 4: 3_000}
    record = replace(work, selection=Selection(since=2.0, until=3.0))(part, iter([slots("a", range(5), at=times)]))
    assert pq.read_table(tmp_path / "out" / f"{NAME}.parquet")["seq"].to_pylist() == [2, 3]
    assert (record.tallies[0].rows, record.tallies[0].outside, record.tallies[0].is_whole) == (2, 3, True)


def test_a_part_of_tombstones_only_is_an_empty_file(work: FileWork, tmp_path: Path) -> None:
    part = Part(2, (Range("a", -1, 0),))
    for form in ("parquet", "jsonl"):
        replace(work, form=form)(part, iter([slots("a", [0], skipped={0: "gone"})]))
    assert pq.read_table(tmp_path / "out" / f"{NAME}.parquet").num_rows == 0
    assert (tmp_path / "out" / f"{NAME}.jsonl").read_bytes() == b""
