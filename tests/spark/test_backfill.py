from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from stream_sort.errors import SettingsError
from stream_sort.replay.backfill.job import backfill, main
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.ranges import Selection
from tests.spark.backfills import files, fill, rows, source_of, table_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

LENGTHS = {"ada": 900, "bob": 40, "{x,y}": 7, "🙂": 3}


def options(access: TableAccess, out: Path, **others: Any) -> BackfillOptions:
    sink = others.pop("sink", "parquet")
    defaults = {"rows_per_part": 300} | others
    return BackfillOptions(source_of(access), SinkOptions(sink, out=str(out)), **defaults)


@pytest.fixture
def filled(access: TableAccess, sorter: StreamSorter) -> TableAccess:
    fill(sorter, {"ada": 5})
    return access


def expected(lengths: dict[str, int]) -> list[tuple[str, int]]:
    return [(queue, seq) for queue in sorted(lengths) for seq in range(lengths[queue])]


def delete(dynamodb: Any, access: TableAccess, queue: str, seq: int) -> None:
    dynamodb.delete_item(TableName=access.items_table, Key={"queue": {"S": queue}, "seq": {"N": str(seq)}})


def test_the_script_writes_every_message_in_order_with_its_item(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    fill(sorter, LENGTHS)
    out, report = tmp_path / "out", tmp_path / "report.json"
    argv = [*table_options(access), "--sink", "parquet", "--out", str(out), "--rows-per-part", "300"]
    assert main([*argv, "--report", str(report)]) == 0
    assert rows(out) == expected(LENGTHS)
    assert len(files(out)) == 4
    table = pq.read_table(out / "part-0000000.parquet")
    assert table.column_names == ["queue", "seq", "item"]
    assert json.loads(table["item"][5].as_py()) == {"queue": "ada", "seq": 5, "text": "ada 5"}
    said = capsys.readouterr()
    assert "backfill: complete" in said.out
    assert "950 of 950 rows" in said.err
    document = json.loads(report.read_text())
    assert document["complete"]
    assert {row["queue"]: row["rows"] for row in document["queues"]} == LENGTHS


def test_a_finished_job_does_nothing_and_says_so_though_more_was_released(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 50})
    first = backfill(options(access, tmp_path / "out"), spark)
    before = files(tmp_path / "out")
    sorter.put({"queue": "ada", "seq": 50})
    again = backfill(options(access, tmp_path / "out"), spark)
    assert files(tmp_path / "out") == before
    assert "finished before" in again.text()
    assert (again.complete, again.totals) == (True, first.totals)


def test_a_resumed_job_goes_by_its_plan_and_makes_what_is_missing(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    out = tmp_path / "out"
    backfill(options(access, out), spark)
    whole = files(out)
    (out / "_stream_sort" / "end.json").unlink()
    (out / "_stream_sort" / "parts" / "0000002.json").unlink()
    (out / "part-0000001.parquet").unlink()
    sorter.put({"queue": "ada", "seq": 900})
    again = backfill(options(access, out), spark)
    assert files(out) == whole
    assert "resumed: 2 of 4 parts were done before" in again.text()
    assert again.totals["rows"] == sum(LENGTHS.values())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_ranges_of_queues_and_seqs(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path, form: str
) -> None:
    fill(sorter, LENGTHS)
    sorter.put({"queue": "ada", "seq": 902})
    selection = Selection(queues=("ada", "🙂"), from_seq=2, to_seq=800)
    report = backfill(options(access, tmp_path / "out", selection=selection, sink=form), spark)
    wanted = [("ada", seq) for seq in range(2, 801)] + [("🙂", 2)]
    if form == "parquet":
        assert rows(tmp_path / "out") == wanted
    else:
        lines = b"".join(files(tmp_path / "out").values()).decode().splitlines()
        assert [(line["queue"], line["seq"]) for line in map(json.loads, lines)] == wanted
    assert report.totals["rows"] == len(wanted)


def test_tombstones_are_counted_and_left_out(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    sorter.put_many({"queue": "ada", "seq": seq} for seq in (0, 1, 4))
    sorter.skip("ada", [2, 3], "given up")
    report = backfill(options(access, tmp_path / "out"), spark)
    assert rows(tmp_path / "out") == [("ada", 0), ("ada", 1), ("ada", 4)]
    assert (report.complete, report.totals["tombstones"]) == (True, 2)


def test_a_hole_fails_the_job_and_its_part_is_not_published(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 400, "bob": 10})
    delete(dynamodb, access, "ada", 250)
    report = backfill(options(access, tmp_path / "out", rows_per_part=200), spark)
    assert not report.complete
    worst = report.queues[0]
    assert (worst["queue"], worst["gaps"]) == ("ada", [[250, 250]])
    assert "seq 250 not stored" in worst["problem"]
    (told,) = [note for note in report.notes if note.startswith("to go on: ")]
    assert told.startswith(
        "to go on: put what is missing again, or add --on-gap report to do all the rest, or --on-gap skip to do "
        "without it; then run the same command again"
    )
    assert "part-0000001.parquet" not in files(tmp_path / "out")


def test_holes_are_reported_and_then_may_be_skipped(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 400, "bob": 10})
    for seq in (250, 251, 399):
        delete(dynamodb, access, "ada", seq)
    there = [("ada", seq) for seq in range(400) if seq not in {250, 251, 399}] + [("bob", seq) for seq in range(10)]
    reported = backfill(options(access, tmp_path / "out", on_gap="report"), spark)
    assert rows(tmp_path / "out") == there
    assert (reported.complete, reported.queues[0]["gaps"]) == (False, [[250, 251], [399, 399]])
    assert "to go on: put what is missing again, or add --on-gap skip to do without it; then run" in reported.text()
    skipped = backfill(options(access, tmp_path / "out", on_gap="skip"), spark)
    assert (skipped.complete, skipped.queues[0]["gaps"]) == (True, [[250, 251], [399, 399]])
    assert "3 missing seqs were skipped" in skipped.text()


def test_a_folder_with_other_files_and_a_job_with_other_options_are_refused(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 5})
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SettingsError, match="is not empty"):
        backfill(options(access, tmp_path), spark)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    backfill(options(access, tmp_path / "out"), spark)
    with pytest.raises(SettingsError, match=r"--to-seq was None and is now 3"):
        backfill(options(access, tmp_path / "out", selection=Selection(to_seq=3)), spark)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--queue", "nobody"], "there is no queue 'nobody'"),
        (["--from-seq", "1000"], "nothing to replay"),
        (["--cursor-table", "no-such-table"], "no table 'no-such-table'"),
        (["--seq-key", "number"], "it should be 'queue' and 'number'"),
        (["--export", "/no/such/export"], "/no/such/export"),
        (["--archive", "/no/such/archive"], "/no/such/archive"),
    ],
)
def test_what_cannot_be_read_gets_one_clear_line_and_writes_nothing(
    filled: TableAccess, tmp_path: Path, argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    tables = [] if argv[-2] in {"--export", "--archive"} else table_options(filled)
    assert main([*tables, "--sink", "parquet", "--out", str(out), *argv]) in {1, 2}
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not out.exists()


def test_a_table_without_a_cursor_row_is_named(
    access: TableAccess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*table_options(access), "--sink", "jsonl", "--out", str(tmp_path / "out")]) == 2
    assert "nothing to replay" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_dry_run_tells_rows_parts_and_cost_and_reads_no_message(
    access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sorter, LENGTHS)
    delete(dynamodb, access, "ada", 5)
    argv = [*table_options(access), "--sink", "parquet", "--out", str(tmp_path / "out"), "--rows-per-part", "300"]
    assert main([*argv, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "queues 4, rows 950 (tombstones included), parts 4" in said
    assert "read units (strongly consistent" in said
    assert not (tmp_path / "out").exists()
