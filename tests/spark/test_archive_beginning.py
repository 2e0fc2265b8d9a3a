"""Where an archive began stands in the control table: the loss of its beginning is seen, and mended where it can be."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_sort.ports.archive import Archived
from stream_sort.replay.archive.job import ArchiveOptions, archive, dry_run
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.manifest import folder_of
from tests.spark.archives import archive_in, audited, files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    return archive_in(tmp_path, access, sorter)


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def fill(sorter: StreamSorter, seqs: Iterable[int]) -> None:
    assert not sorter.put_many({"queue": "q", "seq": seq} for seq in seqs).rejected


def began(options: ArchiveOptions) -> Archived:
    return options.due_reader().marks.archived(["q"])["q"]


def lose_beginning(options: ArchiveOptions, before: int = 40) -> None:
    """As a rule of a bucket may do that deletes what is old."""
    for name in options.storage.list(folder_of("q")):
        if int(name.rpartition("/")[2][:19]) < before:
            options.storage.delete(name)


def twice(options: ArchiveOptions, spark: SparkSession, sorter: StreamSorter) -> dict[str, bytes]:
    for seqs in (range(40), range(40, 80)):
        fill(sorter, seqs)
        archive(options, spark)
    assert began(options) == Archived(79, -1)
    return files(options)


def test_a_lost_beginning_of_what_is_trimmed_is_seen(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    whole = twice(trimming, spark, sorter)
    lose_beginning(trimming)
    (finding,) = audited(trimming).findings
    assert (finding.queue, finding.kind, finding.count) == ("q", "damaged", 40)
    assert "began at seq 0, and what is there begins at seq 40" in finding.detail
    fill(sorter, range(80, 90))
    for report in (archive(trimming, spark), dry_run(trimming)):
        assert not report.complete
        assert "it began at seq 0, and its first plan that is there begins at seq 40" in report.queues[0]["problem"]
    assert len(sorter.stores.items.look("q", -1, 100).seqs) == 11
    for name, content in whole.items():
        trimming.storage.write(name, content)
    assert archive(trimming, spark).complete
    assert audited(trimming).complete


@pytest.mark.parametrize("more", [(), range(80, 95)])
def test_a_lost_beginning_is_written_again_from_the_table(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, more: Iterable[int]
) -> None:
    whole = twice(options, spark, sorter)
    lose_beginning(options)
    assert not audited(options).complete
    fill(sorter, more)
    # Whatever the size of segments is now: what is still there stays as it is.
    report = archive(replace(options, segment_rows=25, min_rows=1_000), spark)
    assert (report.complete, report.totals["rows"]) == (True, 40 + len(list(more)))
    kept = {name: content for name, content in whole.items() if "000004" in name or "000005" in name}
    assert kept.items() <= files(options).items()
    assert audited(options).complete
    assert audited(options).report().document()["messages"] == 80 + len(list(more))
    assert began(options) == Archived(79 + len(list(more)), -1)
    before = files(options)
    assert archive(replace(options, trim=True), spark).complete
    assert files(options) == before


def test_a_beginning_of_which_segments_are_left_is_not_planned_anew_nor_trimmed(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    whole = twice(options, spark, sorter)
    for name in whole:
        if "/plans/0000000000000000000" in name:
            options.storage.delete(name)
    other = replace(options, segment_rows=25, trim=True)
    # All of them would be enough to make the plan again.
    for left in (10, 20):
        lose_beginning(options, left)
        report = archive(other, spark)
        assert not report.complete
        assert "segments before it may be deleted instead: archive writes them again" in report.queues[0]["problem"]
        assert len(sorter.stores.items.look("q", -1, 100).seqs) == 80
    assert not audited(options).complete
    lose_beginning(options)
    assert archive(other, spark).complete
    assert audited(options).complete


def test_an_archive_that_begins_behind_a_trim_has_lost_nothing(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, range(10))
    sorter.trim("q", through=9, control_table=trimming.control_table)
    fill(sorter, range(10, 20))
    given = replace(trimming, trim=False)
    for _ in range(2):
        assert archive(given, spark).complete
        assert began(given) == Archived(19, 9)
        assert audited(given).complete
        # Lost as a whole, it begins where it began.
        shutil.rmtree(Path(given.storage.uri) / folder_of("q"))


def test_a_moved_archive_begins_where_it_did(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, tmp_path: Path
) -> None:
    twice(trimming, spark, sorter)
    moved = replace(trimming, storage=Storage(str(tmp_path / "moved")))
    shutil.copytree(trimming.storage.uri, moved.storage.uri)
    assert archive(moved, spark).complete
    assert began(moved) == Archived(79, -1)


def test_where_it_is_not_known_where_an_archive_began_it_is_where_it_begins(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, range(80))
    marks = trimming.due_reader().marks
    archive(replace(trimming, trim=False), spark)
    marks.set_watermark("q", 79, 80)
    fill(sorter, range(80, 90))
    archive(trimming, spark)
    assert began(trimming) == Archived(89)
    lose_beginning(trimming, 80)
    assert archive(trimming, spark).complete
    assert audited(trimming).complete
