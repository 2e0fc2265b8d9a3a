from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.archive.job import archive
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Selection
from tests.spark.backfills import files, fill, rows, source_of
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.local.ministack import MiniStack
    from stream_sort.replay.origins.access import TableAccess

LENGTHS = {"ada": 250, "bob": 20, "{x,y}": 7}


def parquet(out: Path) -> SinkOptions:
    return SinkOptions("parquet", out=str(out))


def test_tables_and_their_archive_give_the_same_files(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    control = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(control).create_table()
    place = Storage(str(tmp_path / "archive"))
    assert archive(ArchiveOptions(access, control, place, segment_rows=64), spark).complete
    live = BackfillOptions(source_of(access), parquet(tmp_path / "live"), rows_per_part=90)
    kept = BackfillOptions(Source(archive=place.uri), parquet(tmp_path / "kept"), rows_per_part=90)
    assert backfill(live, spark).complete
    assert backfill(kept, spark).complete
    assert files(tmp_path / "kept") == files(tmp_path / "live")
    assert rows(tmp_path / "kept") == [(queue, seq) for queue in sorted(LENGTHS) for seq in range(LENGTHS[queue])]


@pytest.fixture
def export(tmp_path: Path) -> Source:
    places = [(queue, seq) for queue, length in LENGTHS.items() for seq in range(length)]
    wires = [item(queue, seq, at=1_700_000_000_000 + seq, text=f"{queue} {seq}") for queue, seq in places]
    made = make_export(tmp_path / "bucket", [wires[1::2], wires[::2], wires[:9]])
    return Source(export=str(made.folder))


def test_an_export_is_written_in_order_and_without_doubles(spark: SparkSession, export: Source, tmp_path: Path) -> None:
    report = backfill(BackfillOptions(export, parquet(tmp_path / "out"), rows_per_part=90), spark)
    assert report.complete
    assert "doubled: 9 slots came twice" in report.text()
    assert rows(tmp_path / "out") == [(queue, seq) for queue in sorted(LENGTHS) for seq in range(LENGTHS[queue])]


def test_a_resumed_export_makes_only_what_is_missing_and_the_same(
    spark: SparkSession, export: Source, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    options = BackfillOptions(export, parquet(out), rows_per_part=40)
    backfill(options, spark)
    whole = files(out)
    (out / "_stream_sort" / "end.json").unlink()
    for number in (1, 4):
        (out / f"part-000000{number}.parquet").unlink()
    kept = (out / "part-0000002.parquet").stat().st_mtime_ns
    assert backfill(options, spark).complete
    assert files(out) == whole
    assert (out / "part-0000002.parquet").stat().st_mtime_ns == kept


def test_only_what_arrived_in_time_is_replayed(spark: SparkSession, export: Source, tmp_path: Path) -> None:
    selection = Selection(since=1_700_000_000.005, until=1_700_000_000.010)
    report = backfill(BackfillOptions(export, parquet(tmp_path / "out"), selection), spark)
    assert report.complete
    wanted = {queue: range(5, min(10, length)) for queue, length in LENGTHS.items()}
    assert rows(tmp_path / "out") == [(queue, seq) for queue in sorted(wanted) for seq in wanted[queue]]


def test_files_and_their_ledger_may_lie_in_s3(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, ministack: MiniStack, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    client: Any = ministack.client("s3")
    client.create_bucket(Bucket=bucket)
    client.close()
    far = SinkOptions("jsonl", out=f"s3://{bucket}/replay", gzip=True)
    near = SinkOptions("jsonl", out=str(tmp_path), gzip=True)
    options = BackfillOptions(source_of(access), far, rows_per_part=90)
    assert backfill(options, spark).complete
    assert backfill(BackfillOptions(source_of(access), near, rows_per_part=90), spark).complete
    storage = options.out
    assert {name: storage.read(name) for name in storage.list("part-")} == files(tmp_path)
    assert json.loads(storage.read("_stream_sort/end.json"))["finished_at"] > 0
    assert "finished before" in backfill(options, spark).text()
