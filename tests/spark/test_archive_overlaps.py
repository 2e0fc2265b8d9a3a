"""No plan is made over another one, whatever was lost or restored: a run that is complete leaves what all can read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.archive.job import ArchiveOptions, archive
from stream_sort.replay.origins.archive.manifest import folder_of
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, mark_finished
from tests.spark.archives import archive_in, audited
from tests.spark.test_archive_lost_plans import fill, lose, problem, read, runs
from tests.spark.test_archive_restored import Backup

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    return archive_in(tmp_path, access, sorter)


def check_whole(options: ArchiveOptions, spark: SparkSession, end: int) -> None:
    """A run says that it is complete; so do all readers, and the next runs, whose trim leaves the slot at the end."""
    assert archive(options, spark).complete
    assert read(options) == list(range(end + 1))
    assert audited(options).complete
    report = archive(replace(options, trim=True), spark)
    assert (report.complete, report.totals["trimmed"]) == (True, end)
    assert archive(options, spark).complete
    assert read(options) == list(range(end + 1))


def test_a_plan_in_the_place_of_lost_ones_is_not_planned_over_where_its_run_has_died(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    runs(options, spark, sorter, 39)
    lose(options, "/plans/")
    fill(sorter, range(40, 80))
    # A run that planned along the segments, and died before its mark and its watermark.
    whole = SegmentPlan("q", -1, tuple(range(9, 80, 10)))
    aside = replace(options, storage=replace(options.storage, uri=options.storage.uri + "-aside"))
    archive(aside, spark)
    for name in aside.storage.list(folder_of("q")):
        if "/plans/" not in name:
            options.storage.write(name, aside.storage.read(name))
    fix(options.storage, whole)
    check_whole(options, spark, 79)
    assert [name for name in options.storage.list(folder_of("q")) if "/plans/" in name] == [whole.mark, whole.name]


def test_what_is_written_again_before_a_mark_without_its_plan_goes_over_no_other_plan(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    runs(options, spark, sorter, 39, 79, 99)
    lose(options, "0000010.parquet", "plans/0000000000000000040.json")
    check_whole(options, spark, 99)


def test_what_is_written_again_before_a_mark_that_lacks_plan_and_segment_is_written_and_the_mark_named(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    runs(options, spark, sorter, 39, 79)
    lose(options, "0000010.parquet", "q-q/0000000000000000060.", "plans/0000000000000000040.json")
    narrow = replace(options, segment_rows=5)
    told = problem(narrow, spark)
    (mark,) = (name for name in options.storage.list(folder_of("q")) if name.endswith("79.4.done"))
    assert f"the mark {mark.rpartition('/')[2]} may be deleted instead: archive writes again what is missing" in told
    lose(options, mark)
    check_whole(narrow, spark, 79)


@pytest.mark.parametrize("lost", ["plans/0000000000000000040.json", "/plans/"])
def test_a_control_table_that_is_older_than_a_plan_lets_no_other_be_planned_over_it(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, dynamodb: Any, lost: str
) -> None:
    runs(options, spark, sorter, 39)
    backup = Backup(dynamodb, options)
    for start, end in ((40, 80), (80, 100)):
        fill(sorter, range(start, end))
        archive(options, spark)
    lose(options, lost)
    if lost == "/plans/":
        # One plan is made in the place of three.
        assert archive(options, spark).complete
    backup.restore("control")
    check_whole(options, spark, 99)


@pytest.mark.parametrize("trim", [True, False])
def test_plans_that_overlap_are_mended_as_their_problem_says(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, *, trim: bool
) -> None:
    given = replace(options, trim=trim)
    runs(given, spark, sorter, 39, 79)
    # As earlier versions made them.
    over = SegmentPlan("q", 19, (29, 39, 49, 59))
    fix(options.storage, over)
    mark_finished(options.storage, over)
    told = problem(options, spark)
    files = [name for name in options.storage.list(folder_of("q")) if "plans/0000000000000000020." in name]
    assert f"{' and '.join(name.removeprefix(folder_of('q')) for name in files)} may be deleted" in told
    lose(options, *files)
    assert archive(given, spark).complete
    assert read(options) == list(range(80))
    assert audited(options).complete
