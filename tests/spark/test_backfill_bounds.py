"""A range that was asked for is there, or the job says what of it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.backfill.job import backfill, main
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.ranges import Selection
from tests.spark.backfills import fill, rows, source_of, table_options
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess


def run(source: Source, out: Path, spark: SparkSession, **selection: Any) -> Any:
    return backfill(BackfillOptions(source, SinkOptions("parquet", out=str(out)), Selection(**selection)), spark)


@pytest.fixture
def trimmed(access: TableAccess, sorter: StreamSorter) -> TableAccess:
    fill(sorter, {"ada": 50, "bob": 5})
    sorter.trim("ada", through=19, control_table=None)
    return access


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--from-seq", "0", "--to-seq", "30"], "seqs 0 to 19 of queue 'ada' were trimmed"),
        (["--queue", "ada", "--from-seq", "10", "--to-seq", "30"], "seqs 10 to 19 of queue 'ada' were trimmed"),
        (["--queue", "ada", "--to-seq", "15"], "all of it was trimmed"),
        (["--queue", "ada", "--from-seq", "3", "--to-seq", "15"], "all of it was trimmed"),
    ],
)
def test_a_range_that_was_trimmed_is_refused_and_the_archive_is_named(
    trimmed: TableAccess, tmp_path: Path, argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*table_options(trimmed), "--sink", "parquet", "--out", str(tmp_path / "out"), *argv]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert "--archive" in said
    assert not (tmp_path / "out").exists()


def test_without_a_first_seq_a_trimmed_beginning_is_told(
    spark: SparkSession, trimmed: TableAccess, tmp_path: Path
) -> None:
    report = run(source_of(trimmed), tmp_path / "out", spark)
    assert report.complete
    told = "queue 'ada' begins at 20: what is below was trimmed"
    assert told in report.text()
    assert told in run(source_of(trimmed), tmp_path / "out", spark).text()


def test_a_last_seq_beyond_the_position_is_not_complete_and_the_position_is_named(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 50, "bob": 5})
    selection = {"queues": ("ada", "bob"), "from_seq": 2, "to_seq": 20}
    for _ in range(2):
        report = run(source_of(access), tmp_path / "out", spark, **selection)
        assert not report.complete
        assert (report.queues[0]["queue"], "ends at 4" in report.queues[0]["problem"]) == ("bob", True)
        assert "queue 'bob' ends at 4, before --to-seq 20" in report.text()
    assert rows(tmp_path / "out") == [("ada", seq) for seq in range(2, 21)] + [("bob", seq) for seq in (2, 3, 4)]


def test_a_named_queue_with_nothing_in_the_range_is_not_complete(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 50, "bob": 5})
    report = run(source_of(access), tmp_path / "out", spark, queues=("ada", "bob"), from_seq=10, to_seq=20)
    assert not report.complete
    assert "queue 'bob' has nothing from 10 to 20" in report.text()


def test_a_queue_that_ends_before_the_range_is_not_complete_though_nobody_named_it(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 50, "bob": 5})
    for _ in range(2):
        report = run(source_of(access), tmp_path / "out", spark, from_seq=10, to_seq=20)
        assert not report.complete
        assert "queue 'bob' has nothing from 10 to 20: it ends at 4" in report.text()
        # What comes later is no part of the plan.
        sorter.put_many({"queue": "bob", "seq": seq} for seq in range(5, 30))
    assert run(source_of(access), tmp_path / "open", spark, from_seq=40).complete


def test_what_is_trimmed_under_a_job_is_said_to_be_trimmed(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 20})
    dynamodb.delete_item(TableName=access.items_table, Key={"queue": {"S": "ada"}, "seq": {"N": "7"}})
    assert "not stored" in run(source_of(access), tmp_path / "out", spark).queues[0]["problem"]
    sorter.trim("ada", through=9, control_table=None)
    problem = run(source_of(access), tmp_path / "out", spark).queues[0]["problem"]
    assert "queue 'ada' is trimmed up to seq 9" in problem
    assert "not stored" not in problem


def test_a_range_that_is_all_there_is_complete_where_a_queue_begins_later(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    sorter.open("ada", first_seq=5)
    sorter.put_many({"queue": "ada", "seq": seq} for seq in range(5, 30))
    assert run(source_of(access), tmp_path / "out", spark, from_seq=0, to_seq=29).complete


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"from_seq": 0}, "queue 'ada' begins at 5, behind --from-seq 0"),
        ({"to_seq": 100}, "queue 'ada' ends at 29, before --to-seq 100"),
        ({"from_seq": 5, "to_seq": 29}, None),
        ({}, None),
    ],
)
def test_an_export_that_does_not_hold_the_range_is_not_complete(
    spark: SparkSession, tmp_path: Path, bounds: dict[str, int], told: str | None
) -> None:
    made = make_export(tmp_path / "bucket", [[item("ada", seq) for seq in range(5, 30)]])
    report = run(Source(export=str(made.folder)), tmp_path / "out", spark, **bounds)
    assert report.complete is (told is None)
    assert told is None or told in report.text()


def test_an_export_with_a_queue_that_ends_before_the_range_is_not_complete(spark: SparkSession, tmp_path: Path) -> None:
    made = make_export(tmp_path / "bucket", [[item("ada", seq) for seq in range(30)] + [item("bob", 0)]])
    report = run(Source(export=str(made.folder)), tmp_path / "out", spark, from_seq=5, to_seq=20)
    assert "queue 'bob' has nothing from 5 to 20: it ends at 0" in report.text()
    assert not report.complete


@pytest.mark.parametrize("wrong", ["no items table", "swapped", "other keys"])
def test_wrong_tables_are_named_before_anything_is_written(
    access: TableAccess, sorter: StreamSorter, tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sorter, {"ada": 5})
    more, told = {
        "no items table": (["--items-table", "no-such-table"], "no table 'no-such-table'"),
        "swapped": (
            ["--items-table", access.cursor_table, "--cursor-table", access.items_table],
            f"items table {access.cursor_table} has the key 'queue'; it should be 'queue' and 'seq': are the tables",
        ),
        "other keys": (["--seq-key", "number"], "has the key 'queue' and 'seq'; it should be 'queue' and 'number'"),
    }[wrong]
    argv = [*table_options(access), "--sink", "parquet", "--out", str(tmp_path / "out")]
    assert main([*argv, *more]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(argv) == 0
