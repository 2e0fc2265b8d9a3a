"""An audit finds what is wrong in tables, exports and archives, and nothing where nothing is."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import QueueNotFound
from stream_sort.replay.audit import export_survey as audit_export
from stream_sort.replay.audit.job import audit, main
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.segments import write_segment
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import SlotDecoder
from tests.spark.exports import item, make_export

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort.local.ministack import MiniStack
    from stream_sort.replay.audit.report import AuditResult
    from tests.conftest import Tables


@pytest.fixture
def source(ministack: MiniStack, tables: Tables) -> Source:
    return Source(tables.items, tables.cursor, endpoint_url=ministack.url, region="us-east-1")


@pytest.fixture
def given(source: Source) -> list[str]:
    """The source as a command gets it."""
    return [
        *("--items-table", source.items_table, "--cursor-table", source.cursor_table),
        *("--endpoint-url", str(source.endpoint_url), "--region", str(source.region)),
    ]


def found(result: AuditResult) -> dict[tuple[str, str], list[range]]:
    return {(one.queue, one.kind): list(one.seqs) for one in result.findings}


def put(sorter: StreamSorter, queue: str, seqs: range | list[int]) -> None:
    sorter.put_many({"queue": queue, "seq": seq, "body": "x" * 20} for seq in seqs)


def store_past_us(dynamodb: Any, tables: Tables, queue: str, seqs: range | list[int]) -> None:
    """Items without a word to the cursor, as a writer leaves them that dies in between."""
    for seq in seqs:
        dynamodb.put_item(TableName=tables.items, Item={"queue": {"S": queue}, "seq": {"N": str(seq)}})


def delete(dynamodb: Any, tables: Tables, queue: str, seqs: range | list[int]) -> None:
    for seq in seqs:
        dynamodb.delete_item(TableName=tables.items, Key={"queue": {"S": queue}, "seq": {"N": str(seq)}})


def test_tables_with_nothing_wrong_are_complete(spark: SparkSession, sorter: StreamSorter, source: Source) -> None:
    for queue in ("a", "b/é", "007"):
        put(sorter, queue, range(120))
    sorter.put({"queue": "a", "seq": 121})
    sorter.skip("a", 120)
    sorter.put({"queue": "a", "seq": 120, "late": True})
    result = audit(AuditOptions(source), spark)
    assert result.complete
    assert result.findings == []
    told = result.report().document()
    assert {
        name: told[name] for name in ("complete", "queues", "messages", "tombstones", "late", "gaps", "missing")
    } == {
        "complete": True,
        "queues": 3,
        "messages": 361,
        "tombstones": 1,
        "late": 1,
        "gaps": 0,
        "missing": 0,
    }


def test_an_empty_table_is_complete(spark: SparkSession, source: Source) -> None:
    result = audit(AuditOptions(source), spark)
    assert (result.complete, result.report().document()["queues"]) == (True, 0)
    with pytest.raises(QueueNotFound):
        audit(AuditOptions(source, queues=("nobody",)), spark)


def test_everything_that_can_be_wrong_in_tables_is_found(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    put(sorter, "whole", range(30))
    put(sorter, "waits", [0, 1, 4, 5, 9])
    put(sorter, "stuck", range(10))
    store_past_us(dynamodb, tables, "stuck", range(10, 13))
    put(sorter, "lost items", range(20))
    delete(dynamodb, tables, "lost items", [0, 7, 8, 19])
    put(sorter, "lost cursor", range(5))
    dynamodb.delete_item(TableName=tables.cursor, Key={"queue": {"S": "lost cursor"}})
    result = audit(AuditOptions(source), spark)
    assert not result.complete
    assert found(result) == {
        ("lost items", "cursor_beyond_items"): [range(1), range(7, 9), range(19, 20)],
        ("lost cursor", "no_cursor"): [],
        ("stuck", "stuck"): [],
        ("waits", "gap"): [range(2, 4), range(6, 9)],
    }
    assert [one.queue for one in result.findings] == ["lost items", "lost cursor", "stuck", "waits"]
    assert [row["queue"] for row in result.report().document()["worst"]] == [
        "lost items",
        "lost cursor",
        "stuck",
        "waits",
    ]
    assert sorter.position("stuck") == 9
    some = audit(AuditOptions(source, queues=("waits", "whole")), spark)
    assert found(some) == {("waits", "gap"): [range(2, 4), range(6, 9)]}
    assert [one.queue for one in some.queues] == ["waits", "whole"]


def test_repair_advances_what_is_stuck_and_nothing_else(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    put(sorter, "stuck", range(10))
    store_past_us(dynamodb, tables, "stuck", range(10, 13))
    result = audit(AuditOptions(source, repair=True), spark)
    assert result.complete
    assert [(one.kind, one.repaired, one.detail) for one in result.findings] == [("stuck", True, "advanced to 12")]
    assert StreamSorter(tables.items, tables.cursor, client=dynamodb).position("stuck") == 12
    assert audit(AuditOptions(source), spark).findings == []


def test_a_queue_whose_writer_died_before_its_first_cursor_row_is_stuck_and_repaired(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    store_past_us(dynamodb, tables, "new", range(1, 4))
    put(sorter, "lost cursor", range(5))
    dynamodb.delete_item(TableName=tables.cursor, Key={"queue": {"S": "lost cursor"}})
    result = audit(AuditOptions(source, first_seq=1), spark)
    assert found(result) == {("lost cursor", "no_cursor"): [], ("new", "stuck"): []}
    assert result.findings[0].detail.endswith("stream-sort recover 'lost cursor'")
    # By default queues start at 0, and this one would wait for it.
    assert found(audit(AuditOptions(source, queues=("new",)), spark)) == {("new", "gap"): [range(1)]}
    mended = audit(AuditOptions(source, repair=True, first_seq=1), spark)
    assert [(one.queue, one.kind, one.repaired) for one in mended.findings] == [
        ("lost cursor", "no_cursor", False),
        ("new", "stuck", True),
    ]
    assert StreamSorter(tables.items, tables.cursor, client=dynamodb).position("new") == 3


def test_items_in_no_slot_are_found_and_nothing_else_is_wrong_with_their_queue(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    put(sorter, "a", range(10))
    for queue, number in (("a", "5.5"), ("a", "1E+30"), ("b", "0.25")):
        dynamodb.put_item(TableName=tables.items, Item={"queue": {"S": queue}, "seq": {"N": number}})
    result = audit(AuditOptions(source), spark)
    assert [(one.queue, one.kind, one.count) for one in result.findings] == [("a", "no_slot", 2), ("b", "no_slot", 1)]
    assert (result.report().document()["no_slot"], result.report().document()["messages"]) == (3, 10)
    assert found(audit(AuditOptions(source, queues=("b",)), spark)) == {("b", "no_slot"): []}


def test_what_was_trimmed_is_not_missed(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    put(sorter, "a", range(20))
    sorter.trim("a", through=11, control_table=None)
    assert audit(AuditOptions(source), spark).complete
    delete(dynamodb, tables, "a", [12])
    assert found(audit(AuditOptions(source), spark)) == {("a", "cursor_beyond_items"): [range(12, 13)]}


def test_the_lag_of_each_consumer_is_told(
    spark: SparkSession, sorter: StreamSorter, source: Source, dynamodb: Any, tables: Tables
) -> None:
    control = f"{tables.cursor}-control"
    put(sorter, "a", range(20))
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter, control_table=control, batch_size=10)
    consumer.create_tables()
    consumer.catch_up("a")
    put(sorter, "a", range(20, 25))
    put(sorter, "b", range(3))
    named = Source(tables.items, tables.cursor, control, endpoint_url=source.endpoint_url, region=source.region)
    result = audit(AuditOptions(named), spark)
    assert result.complete
    assert result.report().document()["lag"] == {"billing": 8}
    assert {one.queue: one.lag() for one in result.queues} == {"a": {"billing": 5}, "b": {"billing": 3}}
    dynamodb.update_item(
        TableName=tables.cursor,
        Key={"queue": {"S": "a"}},
        UpdateExpression="SET seq = :old",
        ExpressionAttributeValues={":old": {"N": "10"}},
    )
    assert ("a", "checkpoint_ahead") in found(audit(AuditOptions(named), spark))


def test_the_command_writes_its_report_and_its_detail(  # noqa: PLR0913, PLR0917  # fixtures
    spark: SparkSession, sorter: StreamSorter, given: list[str], tmp_path: Path, capsys: Any, tables: Tables
) -> None:
    assert spark is not None
    put(sorter, "whole", range(30))
    out, detail = tmp_path / "report.json", tmp_path / "detail"
    assert main([*given, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["complete"] is True
    assert "audit: complete" in capsys.readouterr().out
    put(sorter, "waits", [0, *range(3, 300, 3)])
    assert main([*given, "--out", str(out), "--detail", str(detail), "--quiet"]) == 1
    told = json.loads(out.read_text())
    assert (told["complete"], told["queues"], told["gaps"], told["missing"]) == (False, 2, 99, 198)
    (finding,) = told["findings"]
    assert (finding["queue"], finding["kind"], finding["count"], finding["more_ranges"]) == ("waits", "gap", 198, 79)
    assert finding["seqs"][:2] == [[1, 2], [4, 5]]
    rows = pq.read_table(detail / "part-00000.parquet").to_pylist()
    assert [row["queue"] for row in rows] == ["waits", "whole"]
    assert len(rows[0]["gaps"]) == 99
    assert rows[0]["findings"] == ["gap"]
    assert main([*given, "--detail", str(detail), "--detail-format", "json", "--quiet"]) == 1
    lines = [json.loads(line) for line in (detail / "part-00000.json").read_text().splitlines()]
    assert lines[1] | {"gaps": [], "position": 29, "messages": 30} == lines[1]
    assert capsys.readouterr().out == ""
    assert main(["--items-table", "nothing-there", *given[2:]]) == 2
    assert "nothing-there" in capsys.readouterr().err
    assert main([*given, "--out", str(tmp_path / "no" / "report.json")]) == 2
    assert main([*given, "--export", str(tmp_path), "--repair"]) == 2
    assert tables.items in given


def test_the_script_is_the_command(sorter: StreamSorter, given: list[str], tmp_path: Path) -> None:
    put(sorter, "waits", [0, 2])
    out = tmp_path / "report.json"
    credentials = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    script = Path(__file__).parents[2] / "spark" / "audit.py"
    ran = subprocess.run(
        [sys.executable, str(script), *given, "--out", str(out)],
        env={**os.environ, **credentials},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr
    assert "audit: NOT complete" in ran.stdout
    assert json.loads(out.read_text())["findings"][0]["seqs"] == [[1, 1]]


def test_a_rate_is_kept(spark: SparkSession, sorter: StreamSorter, source: Source) -> None:
    put(sorter, "a", range(40))
    # The local AWS counts a unit for each page, and there are four segments at least.
    assert audit(AuditOptions(source, max_read_units=1), spark).seconds >= 3


def export_source(folder: Path) -> Source:
    return Source(export=str(folder))


def test_an_export_with_nothing_wrong_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    items = [item(queue, seq) for queue in "abc" for seq in range(5, 105)]
    items[7] |= {"_ss_skipped": {"S": "given up"}, "_ss_late": {"M": {"x": {"N": "1"}}}}
    random.Random(3).shuffle(items)
    made = make_export(tmp_path, [items[:150], items[150:], []])
    result = audit(AuditOptions(export_source(made.folder)), spark)
    assert result.complete
    told = result.report().document()
    assert (told["queues"], told["messages"], told["tombstones"], told["late"]) == (3, 299, 1, 1)
    assert [(one.first, one.last) for one in result.queues] == [(5, 104)] * 3


@pytest.mark.parametrize("most_runs", [audit_export.MOST_RUNS, 50])
def test_gaps_duplicates_and_conflicts_of_an_export_are_found_however_scattered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_runs: int
) -> None:
    monkeypatch.setattr(audit_export, "MOST_RUNS", most_runs)
    items = [item("a", seq) for seq in range(100) if seq not in {10, 11, 50}] + [item("b", seq) for seq in range(100)]
    # As many twice as are missing: a count alone sees nothing.
    items += [item("a", 3), item("a", 4), item("a", 5, at=5, body="another")]
    random.Random(4).shuffle(items)
    made = make_export(tmp_path, [items[::2], items[1::2]])
    result = audit(AuditOptions(export_source(made.folder)), spark)
    assert found(result) == {
        ("a", "gap"): [range(10, 12), range(50, 51)],
        ("a", "duplicate"): [],
        ("a", "conflict"): [],
    }
    told = result.report().document()
    assert (told["queues"], told["messages"], told["duplicates"], told["conflicts"]) == (2, 197, 2, 1)
    some = audit(AuditOptions(export_source(made.folder), queues=("b",)), spark)
    assert (some.complete, [one.queue for one in some.queues]) == (True, ["b"])


def test_items_of_an_export_in_no_slot_are_found(spark: SparkSession, tmp_path: Path) -> None:
    strange = [item("a", 0) | {"seq": {"N": number}} for number in ("1.5", "1E+30")]
    made = make_export(tmp_path, [[item("a", 0), *strange, item("b", 0) | {"seq": {"N": "1E+1"}}], [item("a", 1)]])
    result = audit(AuditOptions(export_source(made.folder)), spark)
    assert [(one.queue, one.kind, one.count) for one in result.findings] == [("a", "no_slot", 2)]
    assert [(one.queue, one.first, one.last) for one in result.queues] == [("a", 0, 1), ("b", 10, 10)]
    assert audit(AuditOptions(export_source(made.folder), queues=("b",)), spark).complete


def test_an_export_that_no_backfill_could_read_is_not_called_complete(
    spark: SparkSession, tmp_path: Path, capsys: Any
) -> None:
    assert spark is not None
    made = make_export(tmp_path, [[item("a", 0), item("a", 1) | {"_ss_at": {"S": "noon"}}]])
    assert main(["--export", str(made.folder), "--quiet"]) == 2
    assert "line 2 has a '_ss_at' that is not a whole number" in capsys.readouterr().err


def test_a_quiet_audit_says_in_one_line_what_is_worst(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    assert spark is not None
    made = make_export(tmp_path, [[item("a", 0), item("a", 2)]])
    assert main(["--export", str(made.folder), "--quiet"]) == 1
    assert capsys.readouterr().err == "stream-sort: not complete: queue 'a': gap of seq 1: messages are missing\n"


def test_a_damaged_export_is_bad_input(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    assert spark is not None
    made = make_export(tmp_path / "bucket", [[item("a", 0)]])
    made.data()[0].write_bytes(made.data()[0].read_bytes()[:-5])
    assert main(["--export", str(made.folder), "--out", str(tmp_path / "report.json")]) == 2
    assert "truncated or changed" in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


def segment(archive: Path, queue: str, seqs: range, body: str = "x") -> Path:
    wires = [item(queue, seq, body=body) for seq in seqs]
    if seqs.start == 0:
        wires[0] |= {"_ss_skipped": {"S": "given up"}}
    from stream_sort.model.message import KeyNames  # noqa: PLC0415

    held = Range(queue, seqs.start - 1, seqs.stop - 1)
    manifest = write_segment(Storage(str(archive)), held, [SlotDecoder(KeyNames()).batch(wires)])
    return archive / manifest.data_name


def test_an_archive_with_nothing_wrong_is_complete(spark: SparkSession, tmp_path: Path) -> None:
    for queue in ("a", "{x,y}"):
        segment(tmp_path, queue, range(50))
        segment(tmp_path, queue, range(50, 80))
    result = audit(AuditOptions(Source(archive=str(tmp_path))), spark)
    assert result.complete
    told = result.report().document()
    assert (told["queues"], told["messages"], told["tombstones"]) == (2, 158, 2)
    some = audit(AuditOptions(Source(archive=str(tmp_path)), queues=("{x,y}",)), spark)
    assert [one.queue for one in some.queues] == ["{x,y}"]


def test_everything_that_can_be_wrong_in_an_archive_is_found(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path, "gap", range(50))
    segment(tmp_path, "gap", range(60, 80))
    segment(tmp_path, "twice", range(50))
    segment(tmp_path, "twice", range(40, 60))
    segment(tmp_path, "conflict", range(50))
    segment(tmp_path, "conflict", range(48, 60), body="y")
    changed = segment(tmp_path, "changed", range(50))
    changed.write_bytes(changed.read_bytes()[:-1] + b"x")
    segment(tmp_path, "gone", range(50)).unlink()
    segment(tmp_path, "bad manifest", range(50)).with_suffix(".json").write_text("{")
    result = audit(AuditOptions(Source(archive=str(tmp_path))), spark)
    assert found(result) == {
        ("gap", "gap"): [range(50, 60)],
        ("twice", "duplicate"): [],
        ("conflict", "conflict"): [],
        ("changed", "damaged"): [],
        ("gone", "damaged"): [],
        ("bad manifest", "damaged"): [],
    }
    told = result.report().document()
    assert (told["duplicates"], told["conflicts"], told["complete"]) == (10, 2, False)
    assert "restore it" in result.findings[0].detail


def test_where_no_archive_is_the_input_is_bad(spark: SparkSession, tmp_path: Path, capsys: Any) -> None:
    assert spark is not None
    assert main(["--archive", str(tmp_path)]) == 2
    assert "there is no archive at" in capsys.readouterr().err
