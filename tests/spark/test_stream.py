"""The tables as a stream."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.reading import options_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

Batches = list[list[tuple[str, int]]]


def run(spark: SparkSession, access: TableAccess, checkpoint: Path, **options: Any) -> Batches:
    """Run a query until it has caught up; what each of its micro-batches held, in order."""
    batches: Batches = []

    def keep(frame: DataFrame, _: int) -> None:
        batches.append([(row.queue, row.seq) for row in frame.collect()])

    stream = spark.readStream.format("stream_sort").options(**options_of(access), **options).load()
    query: StreamingQuery = (
        stream.writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return batches


def by_queue(batches: Batches) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for batch in batches:
        for queue, seq in batch:
            found.setdefault(queue, []).append(seq)
    return found


def put(sorter: StreamSorter, queue: str, *seqs: int) -> None:
    sorter.put_many([{"queue": queue, "seq": seq} for seq in seqs])


def test_a_restart_loses_and_repeats_nothing_and_finds_new_queues(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(10))
    put(sorter, "b", 0, 1, 3)
    first = run(spark, access, tmp_path)
    assert by_queue(first) == {"a": list(range(10)), "b": [0, 1]}
    put(sorter, "b", 2)
    put(sorter, "new", *range(4))
    assert by_queue(run(spark, access, tmp_path)) == {"b": [2, 3], "new": [0, 1, 2, 3]}
    assert by_queue(run(spark, access, tmp_path)) == {}


def test_micro_batches_have_at_most_so_many_rows_and_every_queue_gets_on(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "long", *range(60))
    put(sorter, "short", *range(5))
    batches = run(spark, access, tmp_path, maxRowsPerBatch=20)
    assert max(map(len, batches)) <= 20
    assert {queue for queue, _ in batches[0]} == {"long", "short"}
    assert by_queue(batches) == {"long": list(range(60)), "short": list(range(5))}


def test_latest_starts_at_the_positions_and_a_new_queue_at_its_beginning(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(3))
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {}
    put(sorter, "a", 3)
    put(sorter, "b", 0)
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {"a": [3], "b": [0]}


@pytest.mark.parametrize("first", [-5, 1000])
def test_latest_gives_all_of_a_queue_that_had_not_begun_and_was_opened_elsewhere(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path, first: int
) -> None:
    put(sorter, "live", 0)
    sorter.set_policy("w", skip_after=99_999)
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {}
    put(sorter, "live", 1)
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {"live": [1]}
    sorter.open("w", first_seq=first)
    put(sorter, "w", *range(first, first + 8))
    put(sorter, "live", 2)
    batches = run(spark, access, tmp_path, startingPosition="latest", maxRowsPerBatch=5)
    assert by_queue(batches) == {"live": [2], "w": list(range(first, first + 8))}
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {}


def test_random_arrivals_and_restarts_give_what_the_sorter_reads(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    chance = random.Random(3)
    arrivals = [(f"q{n % 5}", n // 5) for n in range(100)]
    chance.shuffle(arrivals)
    batches: Batches = []
    for start in range(0, 100, 25):
        for queue, seq in arrivals[start : start + 25]:
            put(sorter, queue, seq)
        batches += run(spark, access, tmp_path, maxRowsPerBatch=chance.choice([7, 1000]))
    assert by_queue(batches) == {f"q{n}": [message["seq"] for message in sorter.read(f"q{n}")] for n in range(5)}


def _forget_last_commit(checkpoint: Path) -> None:
    """As if the query had died after it planned its last micro-batch, and before it was done."""
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def test_a_micro_batch_that_is_done_again_gives_the_same_rows_though_its_queue_was_new(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(10))
    sorter.trim("a", 3, control_table=None)
    put(sorter, "b", *range(5))
    first = run(spark, access, tmp_path)
    assert by_queue(first) == {"a": list(range(4, 10)), "b": list(range(5))}
    _forget_last_commit(tmp_path)
    assert run(spark, access, tmp_path) == first


def test_latest_goes_on_where_it_started_though_its_first_micro_batch_is_done_again(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(3))
    run(spark, access, tmp_path, startingPosition="latest")
    _forget_last_commit(tmp_path)
    put(sorter, "a", 3, 4)
    put(sorter, "new", 0)
    assert by_queue(run(spark, access, tmp_path, startingPosition="latest")) == {"a": [3, 4], "new": [0]}


def test_what_a_micro_batch_planned_to_read_and_was_trimmed_since_stops_the_query(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(10))
    run(spark, access, tmp_path)
    put(sorter, "new", *range(100))
    run(spark, access, tmp_path)
    _forget_last_commit(tmp_path)
    sorter.trim("new", 79, control_table=None)
    with pytest.raises(PySparkException, match="queue 'new' is trimmed up to seq 79"):
        run(spark, access, tmp_path)


def test_what_is_trimmed_before_a_stream_came_to_it_stops_the_query(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, tmp_path: Path
) -> None:
    put(sorter, "a", *range(10))
    run(spark, access, tmp_path)
    put(sorter, "a", *range(10, 30))
    sorter.trim("a", 19, control_table=None)
    with pytest.raises(PySparkException, match="queue 'a' is trimmed up to seq 19"):
        run(spark, access, tmp_path)


def test_a_cursor_that_went_back_or_away_stops_the_query(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any, tmp_path: Path
) -> None:
    put(sorter, "a", *range(5))
    run(spark, access, tmp_path)
    dynamodb.update_item(
        TableName=access.cursor_table,
        Key={"queue": {"S": "a"}},
        UpdateExpression="SET seq = :back",
        ExpressionAttributeValues={":back": {"N": "1"}},
    )
    with pytest.raises(PySparkException, match="had a cursor row and it is gone"):
        run(spark, access, tmp_path)


@pytest.mark.parametrize(
    ("option", "problem"), [("released", "reads what is released"), ("archive", "cannot be read as a stream")]
)
def test_what_cannot_be_streamed_is_refused(
    spark: SparkSession, access: TableAccess, tmp_path: Path, option: str, problem: str
) -> None:
    options: dict[str, str] = options_of(access) if option == "released" else {}
    stream = spark.readStream.format("stream_sort").options(**options, **{option: "false"}).load()
    with pytest.raises(PySparkException, match=problem):
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(
            availableNow=True
        ).start().awaitTermination()
