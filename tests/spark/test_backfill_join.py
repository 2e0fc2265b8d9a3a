from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import JoinRefused, NotConsumed, SettingsError, StoreUnavailable, Trimmed
from stream_sort.replay.backfill.job import backfill, main
from stream_sort.replay.backfill.joining import Join
from stream_sort.replay.backfill.ledger import Ledger
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.ranges import Part, Range
from stream_sort.stores.dynamodb import control_rows
from tests.spark.backfills import files, fill, rows, source_of, table_options

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import Batch
    from stream_sort.replay.engine.report import JobReport
    from stream_sort.replay.origins.access import TableAccess

QUEUES = ("ada", "bob", "eve")


class Bench:
    """Tables, a backfill of them to files that a consumer joins, and that consumer."""

    def __init__(self, access: TableAccess, sorter: StreamSorter, out: Path) -> None:
        self.access = access
        self.sorter = sorter
        self.out = out
        self.control_table = f"control-{uuid.uuid4().hex[:12]}"
        self.got: list[tuple[str, int]] = []
        self.consumer = OrderedConsumer("rebuilt", self.handle, sorter=sorter, control_table=self.control_table)
        self.consumer.create_tables()

    def handle(self, batch: Batch) -> None:
        self.got += [(batch.queue, message["seq"]) for message in batch]

    @property
    def join(self) -> Join:
        return Join(self.access, self.control_table, "rebuilt")

    @property
    def ledger(self) -> Ledger:
        return Ledger(Storage(str(self.out / "_stream_sort")))

    @property
    def readers(self) -> list[str]:
        return [one.name for one in self.sorter.stores.control(self.control_table).subscriptions.consumers()]

    @property
    def argv(self) -> list[str]:
        joining = ["--control-table", self.control_table, "--until-position", "--consumer", "rebuilt"]
        to = ["--sink", "parquet", "--out", str(self.out), "--rows-per-part", "100"]
        return [*table_options(self.access), *joining, *to]

    def when_held(self, act: Callable[[], object]) -> threading.Thread:
        """Does something once the consumer is held in the queue ada."""

        def wait() -> None:
            while (
                self.sorter.stores.control(self.control_table).checkpoints.standing("rebuilt", "ada").checkpoint is None
            ):
                time.sleep(0.01)
            act()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def backfill(self, spark: SparkSession) -> JobReport:
        options = BackfillOptions(
            source_of(self.access, self.control_table),
            SinkOptions("parquet", out=str(self.out)),
            until_position=True,
            consumer="rebuilt",
            rows_per_part=100,
        )
        return backfill(options, spark)


@pytest.fixture
def bench(access: TableAccess, sorter: StreamSorter, tmp_path: Path) -> Bench:
    return Bench(access, sorter, tmp_path / "out")


def test_replay_and_live_stream_together_are_every_message_once_and_in_order(spark: SparkSession, bench: Bench) -> None:
    fill(bench.sorter, dict.fromkeys(QUEUES, 200))
    stop, last = threading.Event(), dict.fromkeys(QUEUES, 199)

    def write() -> None:
        while not stop.is_set():
            for queue in QUEUES:
                bench.sorter.put({"queue": queue, "seq": last[queue] + 1})
                last[queue] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        report = bench.backfill(spark)
    finally:
        stop.set()
        writer.join()
    assert report.complete
    assert "joined: consumer rebuilt goes on live in 3 queues" in report.text()
    for queue in QUEUES:
        bench.sorter.put({"queue": queue, "seq": last[queue] + 1})
    bench.sorter.put({"queue": "new", "seq": 0})
    replayed = rows(bench.out)
    for queue in (*QUEUES, "new"):
        bench.consumer.catch_up(queue)
    assert all(last[queue] > 199 for queue in QUEUES)
    for queue in QUEUES:
        both = [seq for name, seq in replayed + bench.got if name == queue]
        assert both == list(range(last[queue] + 2))
    assert [place for place in bench.got if place[0] == "new"] == [("new", 0)]


def test_a_consumer_that_has_begun_is_refused_before_anything_is_read(spark: SparkSession, bench: Bench) -> None:
    fill(bench.sorter, {"ada": 20, "bob": 5})
    bench.consumer.catch_up("bob")
    with pytest.raises(SettingsError, match=r"'rebuilt' already has a checkpoint in queue 'bob', seq 4"):
        bench.backfill(spark)
    assert not bench.out.exists()


def test_a_run_that_died_while_it_joined_is_finished_by_the_next_though_the_consumer_went_on(
    spark: SparkSession, bench: Bench
) -> None:
    fill(bench.sorter, {"ada": 20, "bob": 5})
    bench.backfill(spark)
    bench.sorter.put({"queue": "ada", "seq": 20})
    assert bench.consumer.catch_up("ada") == 1
    _delete_checkpoint(bench, "bob")
    (bench.out / "_stream_sort" / "end.json").unlink()
    before = files(bench.out)
    assert bench.backfill(spark).complete
    assert files(bench.out) == before
    assert (bench.consumer.checkpoint("ada"), bench.consumer.checkpoint("bob")) == (20, 4)
    assert bench.consumer.catch_up("bob") == 0


def test_nothing_is_joined_while_something_is_missing(spark: SparkSession, bench: Bench, dynamodb: Any) -> None:
    fill(bench.sorter, {"ada": 20})
    dynamodb.delete_item(TableName=bench.access.items_table, Key={"queue": {"S": "ada"}, "seq": {"N": "7"}})
    report = bench.backfill(spark)
    assert not report.complete
    assert "not joined" in report.text()
    assert bench.consumer.checkpoint("ada") == -1


@pytest.fixture
def holed(bench: Bench, dynamodb: Any) -> Bench:
    """A bench whose replay cannot be complete before seq 7 is put back."""
    fill(bench.sorter, {"ada": 20})
    dynamodb.delete_item(TableName=bench.access.items_table, Key={"queue": {"S": "ada"}, "seq": {"N": "7"}})
    return bench


def test_nothing_is_trimmed_between_the_replay_and_where_the_consumer_goes_on(
    spark: SparkSession, holed: Bench
) -> None:
    assert not holed.backfill(spark).complete
    holed.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(20, 40))
    with pytest.raises(NotConsumed, match="'rebuilt' stands at -1"):
        holed.sorter.trim("ada", through=39, control_table=holed.control_table)
    holed.sorter.put({"queue": "ada", "seq": 7, "text": "ada 7"})
    assert holed.backfill(spark).complete
    holed.consumer.catch_up("ada")
    assert rows(holed.out) + holed.got == [("ada", seq) for seq in range(40)]


def test_a_job_that_is_not_through_says_who_is_held_and_how_to_let_go(spark: SparkSession, holed: Bench) -> None:
    report = holed.backfill(spark)
    assert holed.readers == ["rebuilt"]
    assert "stream-sort consumers retire rebuilt" in report.text()
    holed.consumer.retire()
    holed.sorter.trim("ada", through=5, control_table=holed.control_table)


@pytest.mark.usefixtures("spark")
def test_a_job_that_fails_says_who_is_held_and_one_that_is_refused_holds_nobody(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(bench.sorter, {"ada": 5})
    joining = ["--control-table", bench.control_table, "--until-position", "--consumer", "rebuilt"]
    argv = [*table_options(bench.access), *joining, "--sink", "parquet", "--out", str(bench.out)]
    bench.out.mkdir()
    (bench.out / "other").touch()
    assert main(argv) == 2
    assert "retire" not in capsys.readouterr().err
    assert bench.readers == []
    (bench.out / "other").unlink()
    # Where the only file should go is a folder.
    (bench.out / "_stream_sort" / "parts").mkdir(parents=True)
    (bench.out / "part-0000000.parquet" / "in the way").mkdir(parents=True)
    assert main(argv) != 0
    assert "stream-sort consumers retire rebuilt" in capsys.readouterr().err


def test_a_quiet_job_that_is_not_through_says_who_is_held(
    spark: SparkSession, holed: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not holed.backfill(spark).complete
    joining = ["--control-table", holed.control_table, "--until-position", "--consumer", "rebuilt"]
    to = ["--sink", "parquet", "--out", str(holed.out), "--rows-per-part", "100"]
    assert main([*table_options(holed.access), *joining, *to, "--quiet"]) == 1
    assert "stream-sort consumers retire rebuilt" in capsys.readouterr().err.splitlines()[-1]


def test_a_job_that_died_while_it_held_the_place_is_taken_up_by_the_next(spark: SparkSession, bench: Bench) -> None:
    fill(bench.sorter, {"ada": 20, "bob": 5})
    plan = _plan(Range("ada", -1, 9))
    bench.join.hold(plan, bench.ledger)
    assert bench.readers == ["rebuilt"]
    assert bench.backfill(spark).complete
    assert (bench.consumer.checkpoint("ada"), bench.consumer.checkpoint("bob")) == (19, 4)


def test_a_consumer_that_another_job_holds_is_refused(spark: SparkSession, bench: Bench, tmp_path: Path) -> None:
    fill(bench.sorter, {"ada": 20})
    bench.join.hold(_plan(Range("ada", -1, 19)), Ledger(Storage(str(tmp_path / "elsewhere"))))
    with pytest.raises(SettingsError, match="'rebuilt' is held by another backfill"):
        bench.backfill(spark)
    assert not bench.out.exists()


def test_a_consumer_that_another_job_has_given_up_may_be_had(spark: SparkSession, bench: Bench, tmp_path: Path) -> None:
    fill(bench.sorter, {"ada": 20})
    plan, elsewhere = _plan(Range("ada", -1, 9)), Ledger(Storage(str(tmp_path / "elsewhere")))
    bench.join.hold(plan, elsewhere)
    bench.consumer.retire()
    assert bench.backfill(spark).complete
    assert bench.consumer.checkpoint("ada") == 19
    with pytest.raises(SettingsError, match="already has a checkpoint in queue 'ada', seq 19"):
        bench.join.check(plan, elsewhere)


def test_a_trim_while_the_job_begins_is_told_and_the_next_run_begins_behind_it(
    spark: SparkSession, bench: Bench
) -> None:
    fill(bench.sorter, {"ada": 20})
    plan = _plan(Range("ada", -1, 19))
    bench.sorter.trim("ada", through=9, control_table=bench.control_table)
    with pytest.raises(StoreUnavailable, match="was trimmed up to seq 9 while the job began"):
        bench.join.hold(plan, bench.ledger)
    assert bench.backfill(spark).complete
    assert bench.consumer.checkpoint("ada") == 19


def test_a_trim_past_a_consumer_that_was_let_go_is_never_joined_over(bench: Bench) -> None:
    fill(bench.sorter, {"ada": 40})
    plan = _plan(Range("ada", -1, 19))
    bench.join.hold(plan, bench.ledger)
    bench.consumer.retire()
    bench.sorter.trim("ada", through=29, control_table=bench.control_table)
    with pytest.raises(Trimmed, match="queue 'ada' is trimmed up to seq 29"):
        bench.join.join(plan, bench.ledger)
    assert bench.consumer.checkpoint("ada") == -1


def test_a_consumer_that_was_retired_after_a_join_and_passed_by_a_trim_is_neither_joined_nor_held(
    spark: SparkSession, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(bench.sorter, {"ada": 20})
    assert bench.backfill(spark).complete
    (bench.out / "_stream_sort" / "end.json").unlink()
    bench.consumer.retire()
    bench.sorter.put_many({"queue": "ada", "seq": seq} for seq in range(20, 40))
    bench.sorter.trim("ada", through=39, control_table=bench.control_table)
    joining = ["--control-table", bench.control_table, "--until-position", "--consumer", "rebuilt"]
    to = ["--sink", "parquet", "--out", str(bench.out), "--rows-per-part", "100"]
    assert main([*table_options(bench.access), *joining, *to]) != 0
    told = capsys.readouterr()
    assert "is trimmed up to seq 39, and seq 20 was not consumed before" in told.err
    assert "is held" not in told.err
    assert "joined" not in told.out
    assert bench.readers == []


def test_a_consumer_that_went_to_work_while_it_was_held_is_told(bench: Bench) -> None:
    fill(bench.sorter, {"ada": 20})
    plan = _plan(Range("ada", -1, 19))
    bench.join.hold(plan, bench.ledger)
    bench.consumer.catch_up("ada")
    with pytest.raises(JoinRefused, match="already has a checkpoint in queue 'ada', seq 19"):
        bench.join.join(plan, bench.ledger)


@pytest.mark.usefixtures("spark")
def test_a_consumer_that_began_too_early_is_refused_by_every_run_once_all_is_written(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(bench.sorter, {"ada": 30})
    early = bench.when_held(lambda: bench.consumer.catch_up("ada"))
    # A part for each seq takes Spark longer than the consumer takes for all of them.
    argv = [*bench.argv[:-1], "1"]
    told = []
    for _ in range(3):
        assert main(argv) == 1
        told.append(capsys.readouterr().err.splitlines()[-1])
    early.join()
    assert told[0].startswith("stream-sort: not joined, what was replayed stays as it is: consumer 'rebuilt' already")
    assert {*told} == {told[0]}
    assert "is held" not in told[0]
    assert len(rows(bench.out)) == 30


@pytest.mark.usefixtures("spark")
def test_a_job_that_goes_on_is_refused_once_its_consumer_has_begun_and_that_is_no_bad_input(
    holed: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(holed.argv) == 1
    holed.sorter.put({"queue": "ada", "seq": 7, "text": "ada 7"})
    holed.consumer.catch_up("ada")
    capsys.readouterr()
    for _ in range(2):
        assert main(holed.argv) == 1
        assert "already has a checkpoint in queue 'ada', seq 19" in capsys.readouterr().err
    assert files(holed.out) == {}


@pytest.mark.usefixtures("spark")
def test_what_was_trimmed_before_it_was_replayed_is_never_joined_over_though_holes_are_skipped(
    holed: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(holed.argv) == 1
    holed.consumer.retire()
    holed.sorter.trim("ada", through=9, control_table=holed.control_table)
    capsys.readouterr()
    for _ in range(2):
        assert main([*holed.argv, "--on-gap", "skip"]) == 1
        told = capsys.readouterr().out
        assert "not joined: something was trimmed that neither the replay nor the consumer would get" in told
        assert "queue 'ada' is trimmed up to seq 9" in told
        assert "run the same command again" not in told
    assert holed.consumer.checkpoint("ada") == -1


def test_a_hole_that_no_trim_made_is_skipped_and_joined_over_when_told_so(spark: SparkSession, holed: Bench) -> None:
    assert not holed.backfill(spark).complete
    assert main([*holed.argv, "--on-gap", "skip"]) == 0
    assert holed.consumer.checkpoint("ada") == 19


@pytest.mark.usefixtures("spark")
def test_a_queue_that_has_not_begun_is_no_hindrance_and_comes_live(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(bench.sorter, {"ada": 5})
    bench.sorter.open("new", first_seq=3)
    argv = [*bench.argv, "--queue", "ada", "--queue", "new"]
    for _ in range(2):
        assert main(argv) == 0
    assert "goes on live in 1 queues, and gets all of 1 more" in capsys.readouterr().out
    bench.sorter.put_many({"queue": "new", "seq": seq} for seq in (3, 4))
    assert bench.consumer.catch_up("new") == 2
    assert bench.got == [("new", 3), ("new", 4)]


def _plan(*ranges: Range) -> JobPlan:
    return JobPlan({}, (Part(0, ranges),), 1.0)


def _delete_checkpoint(bench: Bench, queue: str) -> None:
    """As if the job had died before it came to this queue."""
    table = bench.control_table
    calls: Any = bench.sorter.stores.control(table).checkpoints._table.calls  # type: ignore[attr-defined]  # DynamoDB's
    calls("delete_item", table, Key=control_rows.key_of(*control_rows.place_of("rebuilt", queue)))
