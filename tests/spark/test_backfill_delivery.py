from __future__ import annotations

import json
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StreamSorter
from stream_sort.errors import ReplayFailed, SettingsError
from stream_sort.replay.backfill.job import backfill, main
from stream_sort.replay.backfill.lease import Lease
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from tests.spark.backfills import fill, source_of, table_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort.local.ministack import MiniStack
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.access import TableAccess

LENGTHS = {"ada": 150, "bob": 20, "🙂": 3}


@pytest.fixture
def target(dynamodb: Any) -> StreamSorter:
    name = uuid.uuid4().hex[:12]
    sorter = StreamSorter(f"to-items-{name}", f"to-cursor-{name}", client=dynamodb)
    sorter.create_tables()
    return sorter


def to_table(access: TableAccess, target: StreamSorter, checkpoint: Path, **others: Any) -> BackfillOptions:
    cursor = target.stores.cursor_table
    sink = SinkOptions("table", to_items_table=cursor.replace("cursor", "items"), to_cursor_table=cursor)
    return BackfillOptions(source_of(access), sink, checkpoint=str(checkpoint), **others)


def test_another_pair_of_tables_gets_messages_tombstones_and_first_seqs(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, target: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    sorter.open("late", first_seq=1_000)
    sorter.put_many({"queue": "late", "seq": seq, "value": 1.0} for seq in (1_000, 1_003))
    sorter.skip("late", [1_001, 1_002], "given up")
    sorter.put({"queue": "ada", "seq": 152})
    report = backfill(to_table(access, target, tmp_path / "ledger"), spark)
    assert report.complete
    for queue in (*LENGTHS, "late"):
        assert target.position(queue) == sorter.position(queue)
        assert list(target.read(queue)) == list(sorter.read(queue))
    assert target.gaps("late") == []
    assert target.stores.items.page("late", 1_000, 1_002, 10).slots[0].entries[0].skipped == "given up"
    assert next(target.read("late"))["value"] == 1.0
    assert "finished before" in backfill(to_table(access, target, tmp_path / "ledger"), spark).text()


def test_late_messages_are_late_at_the_target_too(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, target: StreamSorter, tmp_path: Path
) -> None:
    sorter.put_many({"queue": "ada", "seq": seq} for seq in (0, 1, 4))
    sorter.skip("ada", [2, 3], "given up")
    sorter.put({"queue": "ada", "seq": 3, "text": "after all", "value": 1.5})
    assert backfill(to_table(access, target, tmp_path / "ledger"), spark).complete
    assert [one.message for one in target.late("ada")] == [one.message for one in sorter.late("ada")]
    assert len(target.late("ada")) == 1
    assert list(target.read("ada")) == list(sorter.read("ada"))
    assert backfill(to_table(access, target, tmp_path / "again"), spark).complete


def test_a_queue_that_holds_another_message_at_the_target_fails_alone(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, target: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    target.put({"queue": "ada", "seq": 7, "text": "not the same"})
    report = backfill(to_table(access, target, tmp_path / "ledger"), spark)
    assert not report.complete
    assert report.queues[0]["queue"] == "ada"
    assert "a different message is already stored" in report.queues[0]["problem"]
    assert target.position("bob") == 19


@pytest.fixture
def holed(access: TableAccess, sorter: StreamSorter, dynamodb: Any) -> TableAccess:
    fill(sorter, LENGTHS)
    dynamodb.delete_item(TableName=access.items_table, Key={"queue": {"S": "ada"}, "seq": {"N": "7"}})
    return access


@pytest.mark.parametrize("on_gap", ["report", "skip"])
def test_a_hole_waits_at_the_target_or_is_skipped_there(
    spark: SparkSession, holed: TableAccess, target: StreamSorter, tmp_path: Path, on_gap: str
) -> None:
    report = backfill(to_table(holed, target, tmp_path / "ledger", on_gap=on_gap), spark)
    assert report.complete is (on_gap == "skip")
    assert target.position("ada") == {"report": 6, "skip": 149}[on_gap]


def test_a_second_run_of_the_same_job_is_refused_while_the_first_delivers(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, target: StreamSorter, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    options = to_table(access, target, tmp_path / "ledger")
    other = Lease.take(options.ledger)
    with pytest.raises(SettingsError, match="another run of this job is at work"):
        backfill(options, spark)
    assert target.position("ada") == -1
    other.release()
    assert backfill(options, spark).complete
    Lease.take(options.ledger).check()


def test_a_run_that_was_overtaken_delivers_no_more(  # noqa: PLR0913, PLR0917  # each is a fixture
    spark: SparkSession,
    access: TableAccess,
    sorter: StreamSorter,
    target: StreamSorter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(sorter, LENGTHS)
    options = to_table(access, target, tmp_path / "ledger", batch_size=10)
    take = Lease.take

    def take_and_lose(storage: Storage, *, above: int = 0) -> Lease:
        lease = take(storage, above=above)
        storage.write(lease.name, b'{"owner": "another", "machine": "elsewhere", "pid": 1, "seen": 1}')
        return lease

    with monkeypatch.context() as patch:
        patch.setattr(Lease, "take", take_and_lose)
        with pytest.raises(ReplayFailed, match="another run of this job has taken over"):
            backfill(options, spark)
    assert target.position("ada") < 149
    assert backfill(options, spark).complete


@pytest.mark.parametrize(
    ("sink", "name"), [("sqs-fifo", "{url}/000000000000/nowhere.fifo"), ("kinesis", "nowhere"), ("lambda", "nowhere")]
)
@pytest.mark.usefixtures("spark")
def test_a_target_that_is_not_there_is_named_before_anything_is_written(  # noqa: PLR0913, PLR0917  # fixtures
    access: TableAccess,
    sorter: StreamSorter,
    ministack: MiniStack,
    tmp_path: Path,
    sink: str,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(sorter, {"ada": 5})
    ledger = tmp_path / "ledger"
    to = ["--sink", sink, "--target", name.format(url=ministack.url), "--checkpoint", str(ledger)]
    assert main([*table_options(access), *to]) == 2
    assert f"no {sink} is there" in capsys.readouterr().err
    assert not ledger.exists()


def test_an_sqs_fifo_queue_gets_each_queue_in_order(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, ministack: MiniStack, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    with closing(Fifo(ministack)) as fifo:
        assert backfill(fifo.options(access, tmp_path / "ledger"), spark).complete
        got: dict[str, list[int]] = {}
        for message in fifo.drain():
            got.setdefault(message["queue"], []).append(message["seq"])
    assert got == {queue: list(range(length)) for queue, length in LENGTHS.items()}


class Fifo:
    """An SQS FIFO queue."""

    def __init__(self, ministack: MiniStack) -> None:
        self.client = ministack.client("sqs")
        name = f"{uuid.uuid4().hex}.fifo"
        self.url = self.client.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]

    def options(self, access: TableAccess, checkpoint: Path, on_gap: str = "fail") -> BackfillOptions:
        sink = SinkOptions("sqs-fifo", target=self.url)
        return BackfillOptions(source_of(access), sink, checkpoint=str(checkpoint), on_gap=on_gap)

    def drain(self) -> list[Any]:
        got = []
        while received := self.client.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages"):
            for message in received:
                got.append(json.loads(message["Body"]))
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return got

    def close(self) -> None:
        self.client.close()


def test_a_queue_whose_hole_was_mended_comes_to_an_sqs_fifo_queue_again_as_a_whole(
    spark: SparkSession, holed: TableAccess, sorter: StreamSorter, ministack: MiniStack, tmp_path: Path
) -> None:
    with closing(Fifo(ministack)) as fifo:
        options = fifo.options(holed, tmp_path / "ledger", "report")
        assert not backfill(options, spark).complete
        assert [one["seq"] for one in fifo.drain() if one["queue"] == "ada"] == [*range(7), *range(8, 150)]
        sorter.put({"queue": "ada", "seq": 7, "text": "ada 7"})
        assert backfill(options, spark).complete
        assert [(one["queue"], one["seq"]) for one in fifo.drain()] == [("ada", seq) for seq in range(150)]


def test_what_one_job_delivers_again_vanishes_at_an_sqs_fifo_queue_and_what_another_does_arrives(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, ministack: MiniStack, tmp_path: Path
) -> None:
    fill(sorter, {"ada": 5})
    with closing(Fifo(ministack)) as fifo:
        options = fifo.options(access, tmp_path / "ledger")
        assert backfill(options, spark).complete
        # As if it had died before its first commit.
        options.ledger.delete("end.json")
        for name in options.ledger.list("parts/"):
            options.ledger.delete(name)
        assert backfill(options, spark).complete
        assert [one["seq"] for one in fifo.drain()] == [*range(5)]
        assert backfill(fifo.options(access, tmp_path / "another"), spark).complete
        assert [one["seq"] for one in fifo.drain()] == [*range(5)]


def test_a_kinesis_stream_gets_each_queue_in_order(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, ministack: MiniStack, tmp_path: Path
) -> None:
    fill(sorter, LENGTHS)
    client = ministack.client("kinesis")
    name = uuid.uuid4().hex
    client.create_stream(StreamName=name, ShardCount=1)
    client.get_waiter("stream_exists").wait(StreamName=name)
    sink = SinkOptions("kinesis", target=name)
    report = backfill(BackfillOptions(source_of(access), sink, checkpoint=str(tmp_path / "ledger")), spark)
    assert report.complete
    shard = client.list_shards(StreamName=name)["Shards"][0]["ShardId"]
    start = {"StreamName": name, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
    records = client.get_records(ShardIterator=client.get_shard_iterator(**start)["ShardIterator"], Limit=1_000)
    client.close()
    got: dict[str, list[int]] = {}
    for record in records["Records"]:
        body = json.loads(record["Data"])
        got.setdefault(body["queue"], []).append(body["seq"])
    assert got == {queue: list(range(length)) for queue, length in LENGTHS.items()}
