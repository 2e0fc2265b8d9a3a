"""What a job that ended, or seemed to, does when it is run again: it forgets nothing, and mends what can be mended."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.replay.backfill.job import backfill, main
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from tests.spark.backfills import files, fill, rows, source_of
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort.replay.origins.access import TableAccess

END = "_stream_sort/end.json"


def parquet(source: Source, out: Path, **others: Any) -> BackfillOptions:
    return BackfillOptions(source, SinkOptions("parquet", out=str(out)), **{"rows_per_part": 20} | others)


@pytest.fixture
def doubled(tmp_path: Path) -> Source:
    """An export with two different messages in one place."""
    wires = [item("ada", seq, text=f"ada {seq}") for seq in range(50)]
    return Source(export=str(make_export(tmp_path / "bucket", [wires, [item("ada", 7, text="other")]]).folder))


def test_a_conflict_in_an_export_is_not_forgotten_by_whoever_resumes(
    spark: SparkSession, doubled: Source, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = backfill(parquet(doubled, out), spark)
    (out / END).unlink(missing_ok=True)
    again = backfill(parquet(doubled, out), spark)
    for report in (first, again):
        assert not report.complete
        assert "queue 'ada', seq 7" in report.text()


@pytest.mark.parametrize("on_gap", ["fail", "skip"])
def test_a_finished_job_with_a_conflict_says_why_it_is_not_complete(
    spark: SparkSession, doubled: Source, tmp_path: Path, on_gap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    backfill(parquet(doubled, tmp_path / "out", on_gap=on_gap), spark)
    again = backfill(parquet(doubled, tmp_path / "out", on_gap=on_gap), spark)
    assert not again.complete
    assert "queue 'ada', seq 7" in again.text()
    assert "seq 7" in again.queues[0]["problem"]
    argv = ["--export", doubled.export, "--sink", "parquet", "--out", str(tmp_path / "out"), "--rows-per-part", "20"]
    assert main([*argv, "--on-gap", on_gap, "--quiet"]) == 1
    assert "seq 7" in capsys.readouterr().err


def test_a_conflict_that_a_sink_was_given_is_kept_too(
    spark: SparkSession, doubled: Source, access: TableAccess, tmp_path: Path
) -> None:
    sink = SinkOptions(
        "table",
        to_items_table=access.items_table,
        to_cursor_table=access.cursor_table,
        to_endpoint_url=access.endpoint_url,
        to_region=access.region,
    )
    options = BackfillOptions(doubled, sink, checkpoint=str(tmp_path / "ledger"), batch_size=10)
    for _ in range(2):
        report = backfill(options, spark)
        assert not report.complete
        assert "queue 'ada', seq 7" in report.text()
        (tmp_path / "ledger" / "end.json").unlink(missing_ok=True)


@pytest.fixture
def mend(access: TableAccess, sorter: StreamSorter, dynamodb: Any) -> Callable[[], Any]:
    """Puts back the message that is missing."""
    fill(sorter, {"ada": 50, "bob": 5})
    key = {"queue": {"S": "ada"}, "seq": {"N": "25"}}
    found = dynamodb.get_item(TableName=access.items_table, Key=key)["Item"]
    dynamodb.delete_item(TableName=access.items_table, Key=key)
    return lambda: dynamodb.put_item(TableName=access.items_table, Item=found)


@pytest.mark.parametrize("on_gap", ["report", "skip"])
def test_a_hole_that_was_mended_is_read_again_and_the_rest_is_kept(
    spark: SparkSession, access: TableAccess, mend: Callable[[], Any], tmp_path: Path, on_gap: str
) -> None:
    out = tmp_path / "out"
    assert backfill(parquet(source_of(access), out, on_gap=on_gap), spark).complete is (on_gap == "skip")
    kept = (out / "part-0000000.parquet").stat().st_mtime_ns
    names = list(files(out))
    mend()
    report = backfill(parquet(source_of(access), out, on_gap="report"), spark)
    assert report.complete
    assert rows(out) == [("ada", seq) for seq in range(50)] + [("bob", seq) for seq in range(5)]
    assert list(files(out)) == names
    assert (out / "part-0000000.parquet").stat().st_mtime_ns == kept
    assert "finished before" in backfill(parquet(source_of(access), out), spark).text()


def test_a_consumer_joins_once_the_hole_is_mended(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, mend: Callable[[], Any], tmp_path: Path
) -> None:
    control = f"control-{uuid.uuid4().hex[:12]}"
    consumer = OrderedConsumer("rebuilt", lambda _: None, sorter=sorter, control_table=control)
    consumer.create_tables()
    options = parquet(
        source_of(access, control), tmp_path / "out", on_gap="report", until_position=True, consumer="rebuilt"
    )
    assert not backfill(options, spark).complete
    mend()
    assert "joined: consumer rebuilt" in backfill(options, spark).text()
    assert consumer.checkpoint("ada") == 49


def test_tables_get_what_was_missing_once_it_is_there(
    spark: SparkSession, access: TableAccess, mend: Callable[[], Any], dynamodb: Any, tmp_path: Path
) -> None:
    name = uuid.uuid4().hex[:12]
    target = StreamSorter(f"to-items-{name}", f"to-cursor-{name}", client=dynamodb)
    target.create_tables()
    sink = SinkOptions("table", to_items_table=f"to-items-{name}", to_cursor_table=f"to-cursor-{name}")
    options = BackfillOptions(source_of(access), sink, checkpoint=str(tmp_path / "ledger"), on_gap="report")
    assert not backfill(options, spark).complete
    mend()
    report = backfill(options, spark)
    assert (report.complete, report.totals["rows"]) == (True, 55)
    assert target.position("ada") == 49


@pytest.mark.parametrize("damage", ["deleted", "cut short"])
def test_a_finished_job_whose_file_is_gone_or_cut_short_makes_it_again(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path, damage: str
) -> None:
    fill(sorter, {"ada": 50})
    out = tmp_path / "out"
    backfill(parquet(source_of(access), out), spark)
    whole = files(out)
    file = out / "part-0000001.parquet"
    if damage == "deleted":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9])
    report = backfill(parquet(source_of(access), out), spark)
    assert report.complete
    assert files(out) == whole
    assert "finished before" in backfill(parquet(source_of(access), out), spark).text()
