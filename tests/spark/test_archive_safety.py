"""An archive knows whose it is and what it must hold: nothing is deleted, or called complete, without that."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import ArchiveDamaged, InvalidInput, SettingsError
from stream_sort.replay.archive.job import ArchiveOptions, archive, dry_run, main
from stream_sort.replay.audit.job import audit
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix
from stream_sort.replay.ranges import Selection
from tests.spark.backfills import table_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.audit.report import AuditResult
    from stream_sort.replay.origins.access import TableAccess

SEGMENT = "queues/q-q/0000000000000000000"
LAST = "queues/q-q/0000000000000000080"


@pytest.fixture
def control_table(sorter: StreamSorter) -> str:
    name = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(name).create_table()
    return name


@pytest.fixture
def options(access: TableAccess, control_table: str, tmp_path: Path) -> ArchiveOptions:
    return ArchiveOptions(access, control_table, Storage(str(tmp_path / "archive")), segment_rows=40)


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def fill(sorter: StreamSorter, queue: str, seqs: Iterable[int], text: str = "x") -> None:
    assert not sorter.put_many({"queue": queue, "seq": seq, "text": text} for seq in seqs).rejected


def files(options: ArchiveOptions) -> dict[str, bytes]:
    return {name: options.storage.read(name) for name in options.storage.list()}


def stored(sorter: StreamSorter, queue: str) -> int:
    return len(sorter.stores.items.look(queue, -1, 1_000).seqs)


def lose(options: ArchiveOptions, name: str, *endings: str) -> None:
    for ending in endings or (".json", ".parquet"):
        options.storage.delete(name + ending)


def audited(options: ArchiveOptions, *queues: str, tables: bool = False) -> AuditResult:
    access = options.access
    names = (access.items_table, access.cursor_table, options.control_table) if tables else ()
    place = {"endpoint_url": access.endpoint_url, "region": access.region}
    return audit(AuditOptions(Source(*names, archive=options.storage.uri, **place), queues=queues or None))


def recreate(sorter: StreamSorter, access: TableAccess, dynamodb: Any) -> None:
    for table in (access.items_table, access.cursor_table):
        dynamodb.delete_table(TableName=table)
    sorter.create_tables()


def test_tables_made_anew_do_not_take_over_the_archive_of_the_old_ones(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any
) -> None:
    fill(sorter, "q", range(90), "old")
    archive(replace(trimming, trim=False), spark)
    recreate(sorter, trimming.access, dynamodb)
    fill(sorter, "q", range(100), "new")
    control = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(control).create_table()
    anew, before = replace(trimming, control_table=control), files(trimming)
    for attempt in (
        lambda: archive(anew, spark),
        lambda: archive(replace(anew, trim=False), spark),
        lambda: dry_run(anew),
    ):
        with pytest.raises(SettingsError, match="it is the archive of") as caught:
            attempt()
    assert str(caught.value).count(trimming.access.items_table) == 2
    assert stored(sorter, "q") == 100
    assert files(trimming) == before


def test_an_archive_that_does_not_say_whose_it_is_is_refused(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, "q", range(90))
    archive(replace(trimming, trim=False), spark)
    trimming.storage.delete("owner.json")
    with pytest.raises(SettingsError, match="does not say whose"):
        archive(trimming, spark)
    assert stored(sorter, "q") == 90
    assert not trimming.storage.exists("owner.json")


def test_an_owner_that_cannot_be_read_is_damage(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, "q", range(9))
    trimming.storage.write("owner.json", b"{}")
    with pytest.raises(ArchiveDamaged, match=r"owner\.json"):
        archive(trimming, spark)
    assert stored(sorter, "q") == 9


@pytest.mark.parametrize("place", [SEGMENT, LAST])
@pytest.mark.parametrize("endings", [(".json",), (".parquet",), (".json", ".parquet")])
def test_lost_segments_are_named_and_written_again_with_the_same_bytes(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, place: str, endings: tuple[str, ...]
) -> None:
    fill(sorter, "q", range(90))
    archive(options, spark)
    before = files(options)
    lose(options, place, *endings)
    with pytest.raises(ArchiveDamaged, match="missing"):
        ArchiveOrigin(options.storage).ranges()
    report = audited(options)
    assert [(one.queue, one.kind) for one in report.findings if one.kind == "damaged"] == [("q", "damaged")]

    again = archive(replace(options, min_rows=1_000), spark)
    assert (again.complete, again.totals["segments"]) == (True, 1)
    assert files(options) == before
    assert audited(options).complete
    assert options.due_reader().marks.watermark("q") == 89


def test_a_queue_that_is_lost_as_a_whole_is_no_complete_archive(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    for queue in ("q", "sound"):
        fill(sorter, queue, range(90))
    archive(options, spark)
    for name in options.storage.list("queues/q-q/"):
        if "/plans/" not in name:
            options.storage.delete(name)
    with pytest.raises(ArchiveDamaged, match="3 of the 3 segments"):
        ArchiveOrigin(options.storage).ranges()
    for report in (audited(options), audited(options, "q")):
        assert [(one.queue, one.kind) for one in report.findings] == [("q", "damaged")]
    assert audited(options, "sound").complete


def test_what_is_lost_with_its_plan_is_below_the_watermark(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    for queue in ("q", "sound"):
        fill(sorter, queue, range(90))
    archive(options, spark)
    assert audited(options, tables=True).complete
    before = files(options)
    shutil.rmtree(Path(options.storage.uri) / "queues/q-q")
    (finding,) = audited(options, tables=True).findings
    assert (finding.queue, finding.kind, finding.count) == ("q", "damaged", 90)
    assert "watermark is 89" in finding.detail
    assert archive(options, spark).complete
    assert files(options) == before


def test_lost_segments_of_what_is_trimmed_are_a_problem_of_their_queue(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    for queue in ("q", "sound"):
        fill(sorter, queue, range(90))
    archive(trimming, spark)
    lose(trimming, SEGMENT)
    fill(sorter, "q", range(90, 120))
    fill(sorter, "sound", range(90, 120))
    report = archive(trimming, spark)
    assert [(row["queue"], row["trimmed"]) for row in report.queues if row["problem"]] == [("q", 0)]
    assert "1 of the 3 segments" in report.queues[0]["problem"]
    assert not report.complete
    assert (stored(sorter, "q"), stored(sorter, "sound")) == (31, 1)


def test_a_queue_lost_after_it_was_trimmed_is_a_problem(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, "q", range(90))
    archive(trimming, spark)
    shutil.rmtree(Path(trimming.storage.uri) / "queues/q-q")
    report = archive(trimming, spark)
    assert not report.complete
    assert "in neither" in report.queues[0]["problem"]


def test_a_plan_that_is_not_finished_is_no_damage(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fill(sorter, "q", range(90))
    archive(options, spark)
    plan = {"format": "stream_sort archive plan", "version": 1, "queue": "q", "after": 89, "ends": [129, 149]}
    options.storage.write("queues/q-q/plans/0000000000000000090.json", json.dumps(plan).encode())
    assert len(ArchiveOrigin(options.storage).ranges()) == 1
    assert audited(options, tables=True).complete


def test_a_segment_whose_bytes_were_changed_is_not_relied_on(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    for queue in ("q", "sound"):
        fill(sorter, queue, range(90))
    archive(replace(trimming, trim=False), spark)
    data = trimming.storage.read(SEGMENT + ".parquet")
    trimming.storage.write(SEGMENT + ".parquet", data[:100] + bytes([data[100] ^ 1]) + data[101:])
    report = archive(trimming, spark)
    assert not report.complete
    assert [row["queue"] for row in report.queues if "sha256" in row["problem"]] == ["q"]
    assert (stored(sorter, "q"), stored(sorter, "sound")) == (90, 1)


def test_late_messages_of_an_archive_are_counted(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fill(sorter, "q", [0, 1, 4])
    sorter.skip("q", [2, 3])
    fill(sorter, "q", [3])
    archive(options, spark)
    told = audited(options).report().document()
    assert (told["messages"], told["tombstones"], told["late"]) == (3, 2, 1)


def test_a_queue_with_an_unfinished_run_is_told_of_by_whoever_reads_the_archive(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, tmp_path: Path
) -> None:
    for queue in ("q", "new", "sound"):
        fill(sorter, queue, range(90))
    archive(replace(options, queues=("q", "sound")), spark)
    plan = {"format": "stream_sort archive plan", "version": 1, "queue": "q", "after": 89, "ends": [129, 149]}
    options.storage.write("queues/q-q/plans/0000000000000000090.json", json.dumps(plan).encode())
    plan |= {"queue": "new", "after": -1, "ends": [89]}
    options.storage.write("queues/q-new/plans/0000000000000000000.json", json.dumps(plan).encode())
    source = Source(archive=options.storage.uri)
    replayed = backfill(BackfillOptions(source, SinkOptions("jsonl", out=str(tmp_path / "out"))), spark)
    assert replayed.complete
    for notes in (replayed.notes, audited(options).notes):
        assert [note.partition(":")[0] for note in notes if "not finished" in note] == ["queue 'new'", "queue 'q'"]
    assert not any("not finished" in note for note in audited(options, "sound").notes)
    for read in (
        lambda: ArchiveOrigin(options.storage, Selection(queues=("new",))).ranges(),
        lambda: audited(options, "new"),
    ):
        with pytest.raises(InvalidInput, match=r"queue 'new'.* is not finished"):
            read()
    fill(sorter, "q", range(90, 150))
    assert archive(options, spark).complete
    assert not any("not finished" in note for note in audited(options).notes)


@pytest.mark.parametrize("more", [["--dry-run"], []])
def test_a_quiet_run_that_is_not_complete_says_why_in_one_line(
    spark: SparkSession,
    sorter: StreamSorter,
    trimming: ArchiveOptions,
    capfd: pytest.CaptureFixture[str],
    more: list[str],
) -> None:
    fill(sorter, "q", range(90))
    archive(trimming, spark)
    shutil.rmtree(Path(trimming.storage.uri) / "queues/q-q")
    given = [*table_options(trimming.access), "--control-table", trimming.control_table]
    given += ["--archive", trimming.storage.uri, "--quiet", *more]
    capfd.readouterr()
    assert main(given) == 1
    told = capfd.readouterr()
    assert told.out == ""
    (line,) = told.err.strip().splitlines()
    assert "not complete: queue 'q': it is archived up to seq -1 and trimmed up to 89" in line


def test_a_run_that_another_one_overtakes_and_trims_ends_complete(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter, "q", range(90))
    others = []

    def overtaken(storage: Storage, wanted: SegmentPlan) -> tuple[SegmentPlan, bool]:
        found = fix(storage, wanted)
        monkeypatch.setattr("stream_sort.replay.archive.job.fix", fix)
        others.append(archive(trimming, spark))
        return found

    monkeypatch.setattr("stream_sort.replay.archive.job.fix", overtaken)
    report = archive(trimming, spark)
    assert [(one.complete, one.totals["trimmed"]) for one in (*others, report)] == [(True, 89), (True, 0)]
    assert trimming.due_reader().marks.watermark("q") == 89


def test_lost_marks_of_trimmed_slots_are_made_again(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    for seqs in (range(90), range(90, 150), range(150, 200)):
        fill(sorter, "q", seqs)
        archive(trimming, spark)
    whole = files(trimming)
    marks = sorted(name for name in whole if name.endswith(".done"))
    for lost in (marks[-1:], marks[:1], marks[1:], marks):
        for name in lost:
            trimming.storage.delete(name)
        # All segments are there: nothing is missing but what would show the loss of one.
        assert audited(trimming, tables=True).complete
        assert dry_run(trimming).complete
        assert archive(trimming, spark).complete
        assert files(trimming) == whole
        assert audited(trimming, tables=True).complete


def test_a_lost_mark_is_not_made_again_for_segments_that_are_lost(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, "q", range(90))
    archive(trimming, spark)
    (mark,) = (name for name in files(trimming) if name.endswith(".done"))
    trimming.storage.delete(mark)
    lose(trimming, LAST, ".parquet")
    before = files(trimming)
    report = archive(trimming, spark)
    assert not report.complete
    assert "is not marked as finished" in report.queues[0]["problem"]
    assert files(trimming) == before
