from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import SettingsError
from stream_sort.replay.backfill.job import backfill
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.stores.dynamodb import control_rows
from tests.spark.backfills import files, fill, rows, source_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort import Batch
    from stream_sort.replay.access import TableAccess
    from stream_sort.replay.jobs.report import Report

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

    def backfill(self, spark: SparkSession) -> Report:
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


def _delete_checkpoint(bench: Bench, queue: str) -> None:
    """As if the job had died before it came to this queue."""
    table = bench.control_table
    calls = bench.sorter.stores.control(table)._calls
    calls("delete_item", table, TableName=table, Key=control_rows.key_of(*control_rows.place_of("rebuilt", queue)))
