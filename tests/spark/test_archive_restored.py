"""Tables that were restored to an earlier time: nothing is deleted that the archive has not, and nothing is stuck."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import SettingsError
from stream_sort.replay.archive.job import ArchiveOptions, archive, dry_run
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.options import JobParser
from stream_sort.replay.engine.source import Source
from stream_sort.replay.origins.archive.manifest import folder_of
from tests.spark.archives import archive_in, audited, files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

KEYS = {"items": ("queue", "seq"), "cursor": ("queue",), "control": ("pk", "sk")}


@pytest.fixture
def options(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> ArchiveOptions:
    return archive_in(tmp_path, access, sorter)


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def fill(sorter: StreamSorter, seqs: range, text: str = "old", queue: str = "q") -> None:
    assert not sorter.put_many({"queue": queue, "seq": seq, "text": text} for seq in seqs).rejected


class Backup:
    """What was in tables at a time."""

    def __init__(self, dynamodb: Any, options: ArchiveOptions) -> None:
        self.client = dynamodb
        access = options.access
        self.tables = {"items": access.items_table, "cursor": access.cursor_table, "control": options.control_table}
        self.held = {kind: self._rows(kind) for kind in KEYS}

    def restore(self, *kinds: str) -> None:
        for kind in kinds:
            for row in self._rows(kind):
                key = {name: row[name] for name in KEYS[kind]}
                self.client.delete_item(TableName=self.tables[kind], Key=key)
            for row in self.held[kind]:
                self.client.put_item(TableName=self.tables[kind], Item=row)

    def _rows(self, kind: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.client.scan(TableName=self.tables[kind], ConsistentRead=True)["Items"]
        return rows


def stored(sorter: StreamSorter, queue: str = "q") -> tuple[int, ...]:
    return sorter.stores.items.look(queue, -1, 100).seqs


@pytest.mark.parametrize("kinds", [("items", "cursor", "control"), ("items", "cursor")])
def test_messages_that_took_the_seqs_of_archived_ones_are_not_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any, kinds: tuple[str, ...]
) -> None:
    fill(sorter, range(20))
    archive(replace(trimming, trim=False), spark)
    backup = Backup(dynamodb, trimming)
    fill(sorter, range(20, 40))
    archive(replace(trimming, trim=False), spark)
    backup.restore(*kinds)
    for seqs in (range(20, 20), range(20, 30)):
        fill(sorter, seqs, "new")
        for run in (lambda: dry_run(trimming), lambda: archive(trimming, spark)):
            with pytest.raises(SettingsError, match=r"is archived in .* up to seq 39, and released up to"):
                run()
    fill(sorter, range(30, 50), "new")
    fill(sorter, range(30), queue="sound")
    report = archive(trimming, spark)
    assert [(row["queue"], row["trimmed"]) for row in report.queues if row["problem"]] == [("q", 20)]
    assert report.queues[0]["problem"].startswith("seq 20 in the table is not the message that is archived (their")
    assert (stored(sorter), stored(sorter, "sound")) == (tuple(range(20, 50)), (29,))
    # As it says: another archive takes all that is left.
    other = replace(trimming, storage=replace(trimming.storage, uri=trimming.storage.uri + "-other"))
    assert archive(replace(other, trim=False), spark).complete
    assert archive(other, spark).complete
    assert (stored(sorter), audited(other, "q").report().document()["messages"]) == ((49,), 30)


def test_what_was_put_back_from_the_archive_is_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, range(20))
    archive(replace(trimming, trim=False), spark)
    backup = Backup(dynamodb, trimming)
    fill(sorter, range(20, 35))
    sorter.skip("q", range(35, 40), "given up")
    archive(replace(trimming, trim=False), spark)
    backup.restore(*KEYS)
    access = trimming.access
    source = Source(archive=trimming.storage.uri, endpoint_url=access.endpoint_url, region=access.region)
    sink = SinkOptions("table", to_items_table=access.items_table, to_cursor_table=access.cursor_table)
    assert backfill(BackfillOptions(source, sink, checkpoint=str(tmp_path / "progress")), spark).complete
    report = archive(trimming, spark)
    assert (report.complete, report.totals["trimmed"]) == (True, 39)
    assert audited(trimming).complete


def test_a_control_table_that_is_older_than_the_last_trim_stops_no_archive(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any
) -> None:
    fill(sorter, range(20))
    archive(trimming, spark)
    backup = Backup(dynamodb, trimming)
    fill(sorter, range(20, 40))
    archive(trimming, spark)
    backup.restore("control")
    assert dry_run(trimming).complete
    fill(sorter, range(40, 50))
    report = archive(trimming, spark)
    assert (report.complete, report.totals["rows"], report.totals["trimmed"]) == (True, 10, 10)
    assert trimming.due_reader().marks.archived(["q"])["q"].watermark == 49
    assert audited(trimming).complete
    # The watermark is moved though nothing is due.
    backup.restore("control")
    assert archive(trimming, spark).complete
    assert trimming.due_reader().marks.archived(["q"])["q"].watermark == 49


def test_a_run_that_is_lost_shows_though_the_cursor_row_is_lost_as_well(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any
) -> None:
    long = "x" * 500
    for queue in ("q", long, "sound"):
        fill(sorter, range(20), queue=queue)
    archive(trimming, spark)
    for queue in ("q", long, "sound"):
        fill(sorter, range(20, 40), queue=queue)
    archive(trimming, spark)
    for queue in ("q", long):
        for name in trimming.storage.list(folder_of(queue)):
            if int(name.rpartition("/")[2][:19]) >= 20:
                trimming.storage.delete(name)
    there = {(one.queue, one.kind, one.count): one.detail for one in audited(trimming).findings}
    assert set(there) == {("q", "damaged", 20), (long, "damaged", 20)}
    for queue in ("q", long, "sound"):
        dynamodb.delete_item(TableName=trimming.access.cursor_table, Key={"queue": {"S": queue}})
    for report in (audited(trimming), audited(trimming, "q", long)):
        found = {(one.queue, one.kind, one.count): one.detail for one in report.findings}
        assert found == there
        assert "queue 'q' is archived, and its cursor row is lost: see stream-sort recover" in report.notes
    assert audited(trimming, "sound").complete


def test_what_is_put_back_after_a_trim_as_the_refusal_says_is_archived_on(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, dynamodb: Any, tmp_path: Path
) -> None:
    fill(sorter, range(20))
    archive(trimming, spark)
    backup = Backup(dynamodb, trimming)
    fill(sorter, range(20, 40))
    archive(trimming, spark)
    backup.restore(*KEYS)
    with pytest.raises(SettingsError, match="put back what is archived") as refused:
        archive(trimming, spark)
    told = str(refused.value)
    command = told[told.index("(backfill ") + len("(backfill ") : told.index(")", told.index("(backfill "))]
    access = trimming.access
    for given in (access.items_table, access.cursor_table, str(tmp_path / "progress")):
        command = command.replace("...", given, 1)
    place = ["--endpoint-url", str(access.endpoint_url), "--region", str(access.region)]
    assert backfill(
        BackfillOptions.of(JobParser("backfill").parse_args([*shlex.split(command), *place])), spark
    ).complete
    report = archive(trimming, spark)
    assert (report.complete, report.totals["trimmed"]) == (True, 20)
    assert (stored(sorter), audited(trimming).complete) == ((39,), True)


def test_an_unfinished_plan_of_other_messages_is_not_followed_beyond_what_is_released(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, dynamodb: Any
) -> None:
    fill(sorter, range(40))
    archive(options, spark)
    backup = Backup(dynamodb, options)
    fill(sorter, range(40, 80))
    archive(options, spark)
    # It died half way.
    for name in options.storage.list(folder_of("q")):
        if "0000000000000000050." in name or "plans/0000000000000000040.0" in name:
            options.storage.delete(name)
    backup.restore(*KEYS)
    fill(sorter, range(40, 60), "new")
    fill(sorter, range(10), queue="sound")
    before = files(options)
    for run in (lambda: dry_run(options), lambda: archive(options, spark)):
        report = run()
        assert [row["queue"] for row in report.queues if row["problem"]] == ["q"]
        assert "is planned in" in report.queues[0]["problem"]
    assert {name: content for name, content in files(options).items() if "q-sound" not in name} == before
    # As it says.
    for name in options.storage.list(folder_of("q")):
        if int(name.rpartition("/")[2][:19]) >= 40:
            options.storage.delete(name)
    assert archive(replace(options, trim=True), spark).complete
    assert audited(options).complete


def test_a_stray_mark_beyond_what_is_released_stops_no_other_queue(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fill(sorter, range(40))
    archive(options, spark)
    fill(sorter, range(10), queue="sound")
    stray = "queues/q-q/plans/0000000000000000040.0000000000000000099.6.done"
    options.storage.write(stray, b"x")
    report = archive(options, spark)
    assert [(row["queue"], row["rows"], bool(row["problem"])) for row in report.queues] == [
        ("q", 0, True),
        ("sound", 10, False),
    ]
    options.storage.delete(stray)
    assert archive(options, spark).complete
