"""A plan is finished when all its segments are there; marks and plans that were changed harm their queue only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import ArchiveDamaged, InvalidInput
from stream_sort.replay.archive.job import ArchiveOptions, archive, dry_run
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.manifest import folder_of
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.archive.plan import SegmentPlan
from stream_sort.replay.ranges import Selection
from tests.spark.archives import archive_in, audited, files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

PLAN = SegmentPlan("q", -1, (9, 19, 29, 39))
LIE = PLAN.mark.replace(".4.done", ".5.done")
LONG = "x" * 500


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    return archive_in(tmp_path, access, sorter)


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def fill(sorter: StreamSorter, seqs: Iterable[int], *queues: str) -> None:
    held = list(seqs)
    assert not sorter.put_many({"queue": queue, "seq": seq} for queue in queues for seq in held).rejected


def problems(options: ArchiveOptions, spark: SparkSession) -> dict[str, tuple[str, int]]:
    """What a run says of each queue, and how far it has archived it."""
    return {row["queue"]: (row["problem"], row["archived_through"]) for row in archive(options, spark).queues}


@pytest.mark.parametrize("trim", [True, False])
def test_a_lost_mark_hides_nothing_from_whoever_reads_the_archive(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, tmp_path: Path, *, trim: bool
) -> None:
    given = replace(options, trim=trim)
    fill(sorter, range(40), "q", "sound")
    archive(given, spark)
    whole = files(given)
    given.storage.delete(PLAN.mark)
    source, sink = Source(archive=given.storage.uri), SinkOptions("jsonl", out=str(tmp_path / "out"))
    replayed = backfill(BackfillOptions(source, sink), spark)
    assert (replayed.complete, replayed.totals["rows"], replayed.notes) == (True, 80, ())
    result = audited(given)
    assert (result.complete, result.report().document()["messages"], result.notes) == (True, 80, ())
    assert dry_run(given).complete
    assert archive(given, spark).complete
    assert files(given) == whole


def test_a_run_that_died_before_it_could_say_so_is_finished_by_the_next(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter, range(40), "q")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("stream_sort.replay.archive.job.mark_finished", die)
        with pytest.raises(KeyboardInterrupt):
            archive(options, spark)
    assert (options.storage.exists(PLAN.mark), options.due_reader().marks.watermark("q")) == (False, None)
    report = archive(options, spark)
    assert (report.complete, report.totals["rows"], report.totals["resumed_segments"]) == (True, 0, 4)
    assert (options.storage.exists(PLAN.mark), options.due_reader().marks.watermark("q")) == (True, 39)
    fill(sorter, range(40, 50), "q")
    with monkeypatch.context() as patched:
        patched.setattr("stream_sort.replay.archive.job.mark_finished", die)
        with pytest.raises(KeyboardInterrupt):
            archive(options, spark)
    report = archive(options, spark)
    assert (report.complete, report.totals["rows"], report.totals["resumed_segments"]) == (True, 0, 1)
    assert options.due_reader().marks.watermark("q") == 49


@pytest.mark.parametrize("trim", [True, False])
def test_a_mark_that_says_more_than_its_plan_is_a_problem_of_its_queue(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, *, trim: bool
) -> None:
    given = replace(options, trim=trim)
    fill(sorter, range(40), "q", "sound")
    archive(given, spark)
    whole = files(given)
    given.storage.write(LIE, whole[PLAN.mark])
    given.storage.delete(PLAN.mark)
    fill(sorter, range(40, 50), "sound")
    found = problems(given, spark)
    assert found["sound"] == ("", 49)
    assert LIE.rpartition("/")[2] in found["q"][0]
    with pytest.raises(ArchiveDamaged, match=r"5\.done says 5 segments up to seq 39, and its plan 4"):
        ArchiveOrigin(given.storage).ranges()
    assert [(one.queue, one.kind) for one in audited(given).findings] == [("q", "damaged")]
    given.storage.delete(LIE)
    assert archive(given, spark).complete
    assert whole.items() <= files(given).items()
    assert audited(given).complete


@pytest.mark.parametrize("trim", [True, False])
@pytest.mark.parametrize("lost", [(), ("queues/q-q/0000000000000000030.json",)])
def test_a_plan_that_cannot_be_read_is_a_problem_of_its_queue(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, lost: tuple[str, ...], *, trim: bool
) -> None:
    given = replace(options, trim=trim)
    fill(sorter, range(40), "q", "sound")
    archive(given, spark)
    whole = files(given)
    for name in (PLAN.mark, *lost):
        given.storage.delete(name)
    given.storage.write(PLAN.name, b"{")
    fill(sorter, range(40, 60), "q", "sound")
    found = problems(given, spark)
    assert found["sound"] == ("", 59)
    assert "the plan from seq 0 on cannot be followed" in found["q"][0]
    with pytest.raises(ArchiveDamaged, match="the plan from seq 0 on cannot be followed"):
        ArchiveOrigin(given.storage).ranges()
    assert "q" in {one.queue for one in audited(given).findings if one.kind == "damaged"}
    # Both things that the problem advises.
    if trim:
        for name in (PLAN.name, *lost):
            given.storage.write(name, whole[name])
    else:
        for name in given.storage.list(folder_of("q")):
            given.storage.delete(name)
    assert archive(given, spark).complete
    assert audited(given).report().document()["messages"] == 120
    assert audited(given).complete


def test_a_queue_with_a_long_name_is_named_where_its_run_is_not_finished(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, range(40), LONG, "sound")
    archive(trimming, spark)
    plan = SegmentPlan(LONG, -1, (9, 19, 29, 39))
    trimming.storage.delete(plan.mark)
    assert audited(trimming, LONG).complete
    assert len(ArchiveOrigin(trimming.storage, Selection(queues=(LONG,))).ranges()) == 1
    for ending in (".json", ".parquet"):
        trimming.storage.delete(f"{folder_of(LONG)}0000000000000000000{ending}")
    assert any(note.startswith(f"queue {LONG!r}: ") for note in audited(trimming).notes)
    with pytest.raises(InvalidInput, match="is not finished"):
        ArchiveOrigin(trimming.storage, Selection(queues=(LONG,))).ranges()
    trimming.storage.write(plan.mark, plan.text())
    assert {one.queue for one in audited(trimming).findings} == {LONG}


def test_an_archive_that_begins_behind_a_trim_trims_what_it_has(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, tmp_path: Path
) -> None:
    fill(sorter, range(10), "by hand", "by archive")
    assert sorter.trim("by hand", through=9, control_table=trimming.control_table) == 9
    archive(replace(trimming, queues=("by archive",)), spark)
    fill(sorter, range(10, 20), "by hand", "by archive")
    other = replace(trimming, storage=Storage(str(tmp_path / "other")))
    # No trim begins a second archive by itself.
    assert archive(replace(other, trim=False), spark).complete
    for seqs, trimmed in ((range(20, 25), 18), ((), 10), ((), 0)):
        report = archive(other, spark)
        assert (report.complete, report.totals["trimmed"]) == (True, trimmed)
        fill(sorter, seqs, "by hand", "by archive")
    for queue in ("by hand", "by archive"):
        assert sorter.stores.items.look(queue, -1, 100).seqs == (9, 24)


def test_a_late_message_that_another_archive_has_not_is_left_alone(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, tmp_path: Path
) -> None:
    fill(sorter, [seq for seq in range(40) if seq != 5], "q")
    sorter.skip("q", [5])
    archive(replace(trimming, trim=False), spark)
    assert sorter.put({"queue": "q", "seq": 5, "late": 1}).status == "late"
    assert archive(trimming, spark).complete
    fill(sorter, range(40, 50), "q")
    other = replace(trimming, storage=Storage(str(tmp_path / "other")))
    assert archive(replace(other, trim=False), spark).complete
    report = archive(other, spark)
    assert (report.complete, report.totals["trimmed"]) == (True, 9)
    assert [one.seq for one in sorter.late("q")] == [5]
