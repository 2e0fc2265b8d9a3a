from __future__ import annotations

import json
import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import ReplayFailed, SettingsError
from stream_sort.model.consumption import Checkpoint, DeadLetter, Subscription
from stream_sort.replay.archive import job as archive_job
from stream_sort.replay.archive.job import ArchiveOptions, archive, dry_run, main
from stream_sort.replay.archive.work import WriteSegments
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.ranges import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.local.ministack import MiniStack
    from stream_sort.ports import ControlStores
    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.origins.origin import RangeReader
    from stream_sort.replay.ranges import Range

HOSTILE = ["{x,y}", "a*b", "..", "_x", ".x", "007", "🙂", "A", "a", "x" * 1024]


@pytest.fixture
def control_table(sorter: StreamSorter) -> str:
    name = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(name).create_table()
    return name


@pytest.fixture
def control(sorter: StreamSorter, control_table: str) -> ControlStores:
    return sorter.stores.control(control_table)


@pytest.fixture
def options(access: TableAccess, control_table: str, tmp_path: Path) -> ArchiveOptions:
    return ArchiveOptions(access, control_table, Storage(str(tmp_path / "archive")), segment_rows=40)


def fill(sorter: StreamSorter, queue: str, seqs: Iterable[int]) -> None:
    result = sorter.put_many({"queue": queue, "seq": seq, "text": f"{queue[:9]} {seq}"} for seq in seqs)
    assert not result.rejected


def files(options: ArchiveOptions) -> dict[str, bytes]:
    return {name: options.storage.read(name) for name in options.storage.list()}


def names(options: ArchiveOptions) -> list[str]:
    return [name for name in options.storage.list() if name.endswith(".parquet")]


def archived(options: ArchiveOptions, queue: str) -> list[dict[str, Any]]:
    origin = ArchiveOrigin(options.storage, Selection(queues=(queue,)))
    rows = [row for held in origin.ranges() for batch in origin.read(held) for row in batch.to_pylist()]
    seqs = [row["seq"] for row in rows]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
    return [json.loads(row["item"]) for row in rows if row["item"] is not None]


def watermark(options: ArchiveOptions, queue: str) -> int | None:
    return options.due_reader().marks.watermark(queue)


def test_what_is_released_is_archived_in_order_and_a_second_run_does_nothing(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fill(sorter, "q", [*reversed(range(100)), 105])
    fill(sorter, "small", range(3))
    sorter.skip("q", [100])
    report = archive(options, spark)
    assert report.complete
    assert (report.totals["rows"], report.totals["tombstones"], report.totals["segments"]) == (104, 1, 4)
    assert [Path(name).stem for name in names(options) if "q-q/" in name] == [f"{seq:019d}" for seq in (0, 40, 80)]
    for queue in ("q", "small"):
        assert archived(options, queue) == list(sorter.read(queue))
    assert (watermark(options, "q"), watermark(options, "small")) == (100, 2)

    before = files(options)
    again = archive(options, spark)
    assert again.complete
    assert (again.totals["rows"], again.totals["resumed_segments"]) == (0, 0)
    assert files(options) == before


def test_a_run_that_died_before_the_watermark_is_repeated_with_the_same_bytes_though_more_was_released(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter, "q", range(90))
    with monkeypatch.context() as patch:
        patch.setattr(archive_job._Run, "_move_watermark", lambda *_: None)
        archive(options, spark)
    assert watermark(options, "q") is None
    before = files(options)
    lost = names(options)[1]
    options.storage.delete(lost)
    options.storage.delete(lost.replace(".parquet", ".json"))
    unfinished = names(options)[-1]
    options.storage.delete(unfinished.replace(".parquet", ".json"))
    fill(sorter, "q", range(90, 130))

    report = archive(options, spark)
    assert report.complete
    assert report.totals["resumed_segments"] == 1
    after = files(options)
    assert {name: content for name, content in after.items() if name in before} == before
    assert [Path(name).stem for name in names(options)] == [f"{seq:019d}" for seq in (0, 40, 80, 90)]
    assert watermark(options, "q") == 129
    assert archived(options, "q") == list(sorter.read("q"))


def test_an_archive_that_was_moved_goes_on_where_it_ends(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, access: TableAccess, tmp_path: Path
) -> None:
    fill(sorter, "q", range(50))
    archive(options, spark)
    (tmp_path / "archive").rename(tmp_path / "moved")
    fill(sorter, "q", range(50, 60))
    moved = ArchiveOptions(access, options.control_table, Storage(str(tmp_path / "moved")))
    report = archive(moved, spark)
    assert report.totals["rows"] == 10
    assert archived(moved, "q") == list(sorter.read("q"))
    assert watermark(moved, "q") == 59


def test_consumers_hold_the_archive_back(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, control: ControlStores
) -> None:
    for queue in ("begun", "not begun", "elsewhere"):
        fill(sorter, queue, range(60))
    control.subscriptions.register(Subscription("billing", "earliest", 0.0))
    control.subscriptions.register(Subscription("search", "30", 0.0))
    control.checkpoints.create(Checkpoint("billing", "begun", 44))
    control.checkpoints.create(Checkpoint("search", "begun", 59))
    control.checkpoints.create(Checkpoint("billing", "elsewhere", 59))
    report = archive(options, spark)
    assert report.complete
    through = {row["queue"]: (row["archived_through"], row["held_by"]) for row in report.queues}
    assert through == {"begun": (44, "billing"), "not begun": (None, "billing"), "elsewhere": (29, "search")}
    assert archived(options, "begun") == list(sorter.read("begun", through=44))


def test_no_consumers_are_told_of(spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions) -> None:
    fill(sorter, "q", range(3))
    assert "no consumer is registered" in archive(options, spark).text()


def test_hostile_names_round_trip(spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions) -> None:
    for number, queue in enumerate(HOSTILE):
        fill(sorter, queue, range(5 + number))
    assert archive(options, spark).complete
    for queue in HOSTILE:
        assert archived(options, queue) == list(sorter.read(queue))
    reader = spark.read.format("stream_sort").option("archive", options.storage.uri)
    rows = reader.option("queues", json.dumps(HOSTILE)).load().collect()
    assert {row.queue for row in rows} == set(HOSTILE)
    for queue in HOSTILE:
        assert [json.loads(row.item) for row in rows if row.queue == queue] == list(sorter.read(queue))


def test_a_hole_in_one_queue_is_named_and_stops_no_other(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, dynamodb: Any
) -> None:
    fill(sorter, "damaged", range(90))
    fill(sorter, "sound", range(9))
    table = options.access.items_table
    dynamodb.delete_item(TableName=table, Key={"queue": {"S": "damaged"}, "seq": {"N": "50"}})
    report = archive(options, spark)
    assert not report.complete
    assert "seq 50 not stored" in report.queues[0]["problem"]
    assert (watermark(options, "damaged"), watermark(options, "sound")) == (None, 8)
    fill(sorter, "damaged", [50])
    assert archive(options, spark).complete
    assert archived(options, "damaged") == list(sorter.read("damaged"))


def test_small_ranges_wait_for_more(
    spark: SparkSession, sorter: StreamSorter, access: TableAccess, control_table: str, tmp_path: Path
) -> None:
    options = ArchiveOptions(access, control_table, Storage(str(tmp_path)), min_rows=10)
    fill(sorter, "q", range(9))
    assert archive(options, spark).totals["rows"] == 0
    fill(sorter, "q", [9])
    assert archive(options, spark).totals["rows"] == 10


def test_another_tables_archive_is_refused(spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions) -> None:
    fill(sorter, "q", range(4))
    options.due_reader().marks.set_watermark("q", None, 50)
    with pytest.raises(SettingsError, match="is it the archive of other tables"):
        archive(options, spark)
    assert files(options) == {}


def test_a_dry_run_tells_rows_and_segments_and_writes_nothing(sorter: StreamSorter, options: ArchiveOptions) -> None:
    fill(sorter, "q", range(90))
    report = dry_run(options)
    assert (report.totals["rows"], report.totals["segments"]) == (90, 3)
    assert "dry run: no message was read, nothing written" in report.text()
    assert files(options) == {}
    assert watermark(options, "q") is None


@pytest.fixture
def trimming(options: ArchiveOptions) -> ArchiveOptions:
    return replace(options, trim=True)


def test_a_dry_run_tells_what_a_trim_would_delete(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions
) -> None:
    fill(sorter, "q", range(90))
    fill(sorter, "r", range(4))
    planned = dry_run(trimming)
    assert {row["queue"]: row["trimmed"] for row in planned.queues} == {"q": 89, "r": 3}
    assert "trimmed 92" in planned.text()
    assert stored(sorter, "q") == list(range(90))
    assert archive(trimming, spark).totals["trimmed"] == 92
    assert dry_run(trimming).totals["trimmed"] == 0


def test_a_mistyped_address_neither_begins_an_archive_nor_trims_for_it(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, tmp_path: Path
) -> None:
    fill(sorter, "q", range(20))
    assert archive(trimming, spark).complete
    fill(sorter, "q", range(20, 40))
    mistyped = replace(trimming, storage=Storage(str(tmp_path / "mistyped")))
    for report in (dry_run(mistyped), archive(mistyped, spark)):
        assert not report.complete
        assert report.queues[0]["problem"].startswith(f"it is archived in {trimming.storage.canonical}")
    assert files(mistyped) == {}
    assert stored(sorter, "q") == list(range(19, 40))
    # Once it was meant.
    assert archive(replace(mistyped, trim=False), spark).complete
    assert archive(mistyped, spark).complete
    # What is before the second one is the first one's.
    assert stored(sorter, "q") == [19, 39]


def stored(sorter: StreamSorter, queue: str) -> list[int]:
    return list(sorter.stores.items.look(queue, -1, 1_000).seqs)


def test_what_is_trimmed_is_read_from_the_archive_and_the_rest_from_the_table(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, control: ControlStores
) -> None:
    fill(sorter, "q", range(90))
    everything = list(sorter.read("q"))
    control.subscriptions.register(Subscription("billing", "earliest", 0.0))
    row = Checkpoint("billing", "q", 60)
    control.checkpoints.create(row)
    report = archive(trimming, spark)
    assert report.complete
    assert report.totals["trimmed"] == 61
    assert stored(sorter, "q") == list(range(61, 90))
    assert archived(trimming, "q") + list(sorter.read("q", after=60)) == everything

    assert archive(trimming, spark).totals["trimmed"] == 0
    control.checkpoints.commit(row, Checkpoint("billing", "q", 89, 1))
    report = archive(trimming, spark)
    # The message at the position stays: it is the proof that the queue had begun.
    assert (report.complete, report.totals["rows"], report.totals["trimmed"]) == (True, 29, 28)
    assert archived(trimming, "q") == everything
    fill(sorter, "q", range(90, 100))
    control.checkpoints.commit(Checkpoint("billing", "q", 89, 1), Checkpoint("billing", "q", 99, 2))
    assert archive(trimming, spark).totals["trimmed"] == 10
    assert [message["seq"] for message in archived(trimming, "q")] == list(range(100))


def test_a_dead_letters_message_and_all_behind_it_are_archived_and_not_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, control: ControlStores
) -> None:
    fill(sorter, "q", range(90))
    control.subscriptions.register(Subscription("billing", "earliest", 0.0))
    row = Checkpoint("billing", "q", 19)
    control.checkpoints.create(row)
    control.checkpoints.commit(row, Checkpoint("billing", "q", 89, 1), dead=DeadLetter("q", 20, "no", 5, 0.0))
    report = archive(trimming, spark)
    assert (report.complete, report.totals["rows"], report.totals["trimmed"]) == (True, 90, 20)
    assert stored(sorter, "q") == list(range(20, 90))


@pytest.mark.parametrize("lost", [".json", ".parquet"])
def test_what_the_archive_has_lost_is_written_again_before_anything_is_trimmed(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, lost: str
) -> None:
    fill(sorter, "q", range(90))
    everything = list(sorter.read("q"))
    archive(replace(trimming, trim=False), spark)
    before = files(trimming)
    trimming.storage.delete(names(trimming)[0].replace(".parquet", lost))
    report = archive(trimming, spark)
    assert (report.complete, report.totals["trimmed"]) == (True, 89)
    assert files(trimming) == before
    assert archived(trimming, "q") == everything


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_nothing_is_trimmed_of_a_queue_that_the_archive_does_not_hold_whole(
    spark: SparkSession, sorter: StreamSorter, trimming: ArchiveOptions, ending: str
) -> None:
    fill(sorter, "q", range(90))
    fill(sorter, "sound", range(90))
    archive(replace(trimming, trim=False), spark)
    changed = names(trimming)[0].replace(".parquet", ending)
    trimming.storage.write(changed, trimming.storage.read(changed)[:-9])
    report = archive(trimming, spark)
    assert not report.complete
    assert [(row["queue"], changed in row["problem"]) for row in report.queues if row["problem"]] == [("q", True)]
    assert [len(stored(sorter, queue)) for queue in ("q", "sound")] == [90, 1]


def test_what_was_trimmed_before_it_was_archived_is_named_and_stops_no_other(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    for queue in ("q", "other"):
        fill(sorter, queue, range(10))
    archive(options, spark)
    for queue in ("q", "other"):
        fill(sorter, queue, range(10, 30))
    sorter.trim("q", 20, control_table=None)
    report = archive(options, spark)
    assert not report.complete
    assert [row["queue"] for row in report.queues if row["problem"]] == ["q"]
    assert "archived up to seq 9 and trimmed up to 20" in report.queues[0]["problem"]
    assert (watermark(options, "q"), watermark(options, "other")) == (9, 29)


def test_a_new_archive_of_a_trimmed_queue_begins_where_the_table_does(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions
) -> None:
    fill(sorter, "q", range(30))
    sorter.trim("q", 9, control_table=None)
    assert archive(options, spark).complete
    assert [message["seq"] for message in archived(options, "q")] == list(range(10, 30))


def test_a_killed_worker_leaves_what_the_next_run_finishes(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sorter, "q", range(200))
    whole = replace(options, storage=Storage(options.storage.uri + "-undisturbed"))
    archive(whole, spark)

    class Deadly:
        """Kills the worker that reads it in the middle of a segment."""

        def __init__(self, inner: RangeReader) -> None:
            self.inner = inner

        def read(self, wanted: Range) -> Iterator[Any]:
            for batch in self.inner.read(wanted):
                yield batch
                if wanted.after == 79:
                    os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(archive_job, "WriteSegments", lambda reader, storage: WriteSegments(Deadly(reader), storage))
        with pytest.raises(ReplayFailed):
            archive(options, spark)
    assert watermark(options, "q") is None
    assert archive(options, spark).complete
    assert files(options) == files(whole)


def test_two_runs_at_once_write_the_same(spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions) -> None:
    for queue in ("a", "b"):
        fill(sorter, queue, range(100))
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: archive(options, spark), range(2)))
    assert all(report.complete for report in reports)
    for queue in ("a", "b"):
        assert archived(options, queue) == list(sorter.read(queue))
        assert watermark(options, queue) == 99


def test_an_archive_in_s3_holds_the_same_bytes(
    spark: SparkSession, sorter: StreamSorter, options: ArchiveOptions, ministack: MiniStack
) -> None:
    client: Any = ministack.client("s3")
    client.create_bucket(Bucket="archive-of-tests")
    client.close()
    fill(sorter, "q", range(100))
    there = replace(options, storage=Storage("s3://archive-of-tests/of/history", ministack.url, "us-east-1"))
    assert archive(options, spark).complete
    assert archive(there, spark).complete
    assert files(there) == files(options)
    reader = spark.read.format("stream_sort").option("archive", there.storage.uri)
    reader = reader.option("endpointUrl", ministack.url).option("region", "us-east-1").option("fromSeq", 55)
    assert [row.seq for row in reader.load().collect()] == list(range(55, 100))

    changed = names(there)[0]
    data = there.storage.read(changed)
    there.storage.write(changed, data[:-1] + b"?")
    report = archive(replace(there, trim=True), spark)
    assert "sha256" in report.queues[0]["problem"]
    assert len(stored(sorter, "q")) == 100
    there.storage.write(changed, data)
    assert archive(replace(there, trim=True), spark).totals["trimmed"] == 99


def command(options: ArchiveOptions, *more: str) -> list[str]:
    access = options.access
    tables = ["--items-table", access.items_table, "--cursor-table", access.cursor_table]
    place = ["--endpoint-url", str(access.endpoint_url), "--region", "us-east-1"]
    return [*tables, "--control-table", options.control_table, *place, "--archive", options.storage.uri, *more]


@pytest.mark.usefixtures("spark")
def test_the_command_reports_as_a_table_and_as_json(
    sorter: StreamSorter, options: ArchiveOptions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(sorter, "q", range(90))
    fill(sorter, "other", range(9))
    report = tmp_path / "report.json"
    assert main(command(options, "--queue", "q", "--segment-rows", "50", "--report", str(report))) == 0
    shown = capsys.readouterr().out
    assert "archive: complete" in shown
    document = json.loads(report.read_text())
    assert (document["complete"], document["totals"]["rows"], document["totals"]["segments"]) == (True, 90, 2)
    assert watermark(options, "other") is None


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--queue", "nobody"], "nobody"),
        (["--segment-rows", "0"], "0"),
        (["--archive", "gs://x/y"], "address"),
        (["--control-table", "no-such-table"], "no-such-table"),
        (["--items-table", "x y"], "x y"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_a_bad_option_is_one_line_and_writes_nothing(
    sorter: StreamSorter,
    options: ArchiveOptions,
    more: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(sorter, "q", range(3))
    assert main(command(options, *more)) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert problem in told.err
    assert len(told.err.strip().splitlines()) == 1
    assert files(options) == {}
