"""A plan and its mark may be lost: the segments are there, and no run makes them unreadable, or trims by mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort.replay.archive.job import ArchiveOptions, archive
from stream_sort.replay.origins.archive.manifest import folder_of
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from tests.spark.archives import archive_in, audited, files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    return archive_in(tmp_path, access, sorter)


def fill(sorter: StreamSorter, seqs: Iterable[int]) -> None:
    assert not sorter.put_many({"queue": "q", "seq": seq} for seq in seqs).rejected


def runs(options: ArchiveOptions, spark: SparkSession, sorter: StreamSorter, *ends: int) -> dict[str, bytes]:
    """Run after run, up to each of these seqs; returns the segments with their manifests."""
    start = 0
    for end in ends:
        fill(sorter, range(start, end + 1))
        assert archive(options, spark).complete
        start = end + 1
    return {name: content for name, content in files(options).items() if "/plans/" not in name}


def lose_plans(options: ArchiveOptions, since: int = 0) -> None:
    for name in options.storage.list(folder_of("q")):
        if "/plans/" in name and int(name.rpartition("/")[2][:19]) >= since:
            options.storage.delete(name)


def read(options: ArchiveOptions) -> list[int]:
    origin = ArchiveOrigin(options.storage)
    return [row["seq"] for held in origin.ranges() for batch in origin.read(held) for row in batch.to_pylist()]


# Where runs ended, from where on their plans are lost, and the rows of segments from then on.
LOSSES = [((39, 79), 40, 15), ((39, 55, 79), 40, 10), ((15, 35, 79), 0, 10), ((39, 79), 40, 10)]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_plan_that_is_made_again_goes_along_the_segments_that_are_there(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, loss: tuple[tuple[int, ...], int, int]
) -> None:
    ends, since, rows = loss
    before = runs(options, spark, sorter, *ends)
    lose_plans(options, since)
    assert read(options) == list(range(80))
    fill(sorter, range(80, 100))
    report = archive(replace(options, segment_rows=rows), spark)
    assert (report.complete, report.totals["rows"]) == (True, 20)
    assert before.items() <= files(options).items()
    assert read(options) == list(range(100))
    assert audited(options).complete
    assert archive(replace(options, segment_rows=rows, trim=True), spark).totals["trimmed"] == 99
    assert read(options) == list(range(100))


def test_what_is_lost_with_its_plan_is_written_again_between_what_is_there(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    before = runs(options, spark, sorter, 39, 79)
    lose_plans(options, 40)
    for name in before:
        if "0000050." in name or "0000070.json" in name:
            options.storage.delete(name)
    assert archive(replace(options, segment_rows=7), spark).complete
    assert read(options) == list(range(80))
    assert audited(options).complete


def test_segments_that_no_plan_can_go_along_are_a_problem_before_anything_is_written(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    before = runs(options, spark, sorter, 39, 79)
    lose_plans(options)
    # What a run with another size has left.
    wide = replace(options, segment_rows=15, storage=replace(options.storage, uri=options.storage.uri + "-wide"))
    archive(wide, spark)
    wanted = "queues/q-q/0000000000000000015"
    for ending in (".json", ".parquet"):
        options.storage.write(wanted + ending, wide.storage.read(wanted + ending))
    whole = files(options)
    report = archive(options, spark)
    assert not report.complete
    assert "and no plan tells what counts" in report.queues[0]["problem"]
    assert files(options) == whole
    # As it says.
    for name in options.storage.list(folder_of("q")):
        options.storage.delete(name)
    assert archive(options, spark).complete
    assert before.items() <= files(options).items()


def lose(options: ArchiveOptions, *parts: str) -> None:
    """Delete the files whose names have one of these parts."""
    for name in options.storage.list(folder_of("q")):
        if any(part in name for part in parts):
            options.storage.delete(name)


def problem(options: ArchiveOptions, spark: SparkSession) -> str:
    report = archive(options, spark)
    assert not report.complete
    return str(report.queues[0]["problem"])


def test_what_is_lost_with_its_plan_below_a_mark_is_written_again_without_the_mark(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    before = runs(options, spark, sorter, 39, 79)
    lose(options, "0000060.json", "plans/0000000000000000040.json")
    (mark,) = (name for name in options.storage.list(folder_of("q")) if name.endswith("79.4.done"))
    told = f"the mark {mark.rpartition('/')[2]} may be deleted instead: archive writes again what is missing"
    assert told in problem(options, spark)
    lose(options, mark)
    assert archive(options, spark).complete
    assert before.items() <= files(options).items()
    assert audited(options).complete


@pytest.mark.parametrize("plans", ["plans/0000000000000000040.json", "plans/0000000000000000040."])
def test_what_is_lost_in_the_middle_is_written_again_where_all_is_deleted_from_there_on(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, plans: str
) -> None:
    before = runs(options, spark, sorter, 39, 79, 99)
    lose(options, "0000060.json", plans)
    assert "Where nothing from seq 40 on was trimmed, all files of the queue from there on may be deleted" in problem(
        options, spark
    )
    lose(options, *(f"{seq:019}" for seq in range(40, 100)))
    assert archive(options, spark).complete
    assert before.items() <= files(options).items()
    assert audited(options).complete


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_a_segment_that_was_changed_is_written_again_where_it_is_deleted(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, ending: str
) -> None:
    trimming = replace(options, trim=True)
    before = runs(options, spark, sorter, 39)
    name = "queues/q-q/0000000000000000010"
    options.storage.write(name + ending, before[name + ending][:-9] + b"x")
    way = "the segment and its manifest may be deleted instead: archive writes them again"
    assert way in problem(trimming, spark)
    assert [way in one.detail for one in audited(options).findings if one.kind == "damaged"] == [True]
    lose(options, name.rpartition("/")[2])
    assert archive(trimming, spark).totals["trimmed"] == 39
    assert before.items() <= files(options).items()


@pytest.mark.parametrize("trim", [True, False])
def test_a_plan_that_is_lost_between_others_is_made_again_from_its_segments(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, *, trim: bool
) -> None:
    given = replace(options, trim=trim)
    runs(given, spark, sorter, 39, 79, 99, 109)
    whole = files(given)
    lose(given, "plans/0000000000000000040.", "plans/0000000000000000080.json")
    assert read(given) == list(range(110))
    assert audited(given).complete
    fill(sorter, range(110, 120))
    report = archive(given, spark)
    assert (report.complete, report.totals["rows"]) == (True, 10)
    assert {name: content for name, content in files(given).items() if name in whole} == {
        name: content for name, content in whole.items() if name != "queues/q-q/plans/0000000000000000080.json"
    }


@pytest.mark.parametrize("lost", ["plans/0000000000000000000.", "plans/0000000000000000040.", "/plans/"])
def test_lost_plans_of_a_trimmed_queue_stop_no_archive_while_all_segments_are_there(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, lost: str
) -> None:
    trimming = replace(options, trim=True)
    before = runs(trimming, spark, sorter, 39, 79)
    lose(options, lost)
    fill(sorter, range(80, 100))
    report = archive(replace(trimming, segment_rows=7), spark)
    assert (report.complete, report.totals["rows"], report.totals["trimmed"]) == (True, 20, 20)
    assert before.items() <= files(options).items()
    assert read(options) == list(range(100))
    assert audited(options).complete
