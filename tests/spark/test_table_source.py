"""The format `stream_sort` on live tables."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo

from stream_sort import StreamSorter
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.source.format import FilteringReader, Reading
from stream_sort.replay.source.options import source_options
from tests.spark.reading import options_of, partitions, places, reader

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from stream_sort.local.ministack import MiniStack


def fill(sorter: StreamSorter, lengths: dict[str, int]) -> list[tuple[str, int]]:
    """Messages for all queues, and their places in order."""
    sorter.put_many(
        [{"queue": queue, "seq": seq, "n": seq} for queue, length in lengths.items() for seq in range(length)]
    )
    return [(queue, seq) for queue in sorted(lengths) for seq in range(lengths[queue])]


@pytest.fixture
def pushdown(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PUSHDOWN, "true")
    yield spark
    spark.conf.set(PUSHDOWN, "false")


def told(caught: pytest.ExceptionInfo[PySparkException]) -> str:
    return str(caught.value)


def test_rows_come_in_order_and_hold_the_messages_as_json(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    wanted = fill(sorter, {"b": 40, "a": 25, "c": 1})
    frame = reader(spark, access).load()
    assert frame.dtypes == [("queue", "string"), ("seq", "bigint"), ("item", "string")]
    rows = frame.collect()
    assert [(row.queue, row.seq) for row in rows] == wanted
    assert all(json.loads(row.item) == {"queue": row.queue, "seq": row.seq, "n": row.seq} for row in rows)


def test_a_long_queue_is_cut_and_short_ones_are_packed(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    wanted = fill(sorter, {"long": 900, **{f"s{n:02}": 10 for n in range(10)}})
    found = partitions(reader(spark, access, rowsPerPartition=49).load())
    assert {len(rows) for rows in found[:19]} == {47, 48}
    assert [len(rows) for rows in found[19:]] == [40, 40, 20]
    assert [place for rows in found for place in rows] == wanted


def test_nothing_past_the_position_is_read_unless_asked_for(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    fill(sorter, {"a": 5})
    sorter.put_many([{"queue": "a", "seq": seq} for seq in (7, 8)])
    assert places(reader(spark, access).load()) == [("a", seq) for seq in range(5)]
    assert places(reader(spark, access, released="false").load()) == [("a", seq) for seq in (0, 1, 2, 3, 4, 7, 8)]


def test_tombstones_are_left_out_and_shown_as_slots(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    fill(sorter, {"a": 3})
    sorter.put({"queue": "a", "seq": 4})
    sorter.skip("a", [3], reason="lost")
    assert places(reader(spark, access).load()) == [("a", seq) for seq in (0, 1, 2, 4)]
    slots = reader(spark, access, slots="true").load().collect()
    assert [(row.seq, row.item is None, row.skipped) for row in slots][2:] == [
        (2, False, None),
        (3, True, "lost"),
        (4, False, None),
    ]
    assert all(abs(row.arrived_at / 1000 - time.time()) < 600 for row in slots)


def test_a_hole_in_what_is_released_raises(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any
) -> None:
    fill(sorter, {"a": 10})
    dynamodb.delete_item(TableName=access.items_table, Key={"queue": {"S": "a"}, "seq": {"N": "4"}})
    with pytest.raises(PySparkException) as caught:
        reader(spark, access).load().collect()
    assert "MissingItems: queue 'a': seq 4 not stored" in told(caught)


def test_a_hole_behind_the_position_raises_also_where_one_reads_past_it(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any
) -> None:
    fill(sorter, {"a": 10})
    sorter.put({"queue": "a", "seq": 12})
    assert len(places(reader(spark, access, released="false").load())) == 11
    dynamodb.delete_item(TableName=access.items_table, Key={"queue": {"S": "a"}, "seq": {"N": "4"}})
    with pytest.raises(PySparkException) as caught:
        reader(spark, access, released="false").load().collect()
    assert "MissingItems: queue 'a': seq 4 not stored" in told(caught)


def test_a_named_queue_that_lost_its_cursor_is_named_as_such(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, dynamodb: Any
) -> None:
    fill(sorter, {"a": 3})
    dynamodb.delete_item(TableName=access.cursor_table, Key={"queue": {"S": "a"}})
    with pytest.raises(PySparkException, match="CursorLost"):
        reader(spark, access, queues="a").load().collect()


def test_pushed_filters_on_fields_that_are_named_like_keys_and_are_none(
    pushdown: SparkSession, ministack: MiniStack, dynamodb: Any
) -> None:
    own = TableAccess("LaneItems", "LaneCursor", "lane", "no", region="us-east-1", endpoint_url=ministack.url)
    lanes = StreamSorter("LaneItems", "LaneCursor", queue_key="lane", seq_key="no", client=dynamodb)
    lanes.create_tables()
    lanes.put_many([{"lane": "a", "no": no, "queue": "urgent", "seq": 1_000 + no} for no in range(5)])
    options = {"queueKey": "lane", "seqKey": "no", "pushFilters": "true"}
    frame = reader(pushdown, own, **options).schema("lane string, no bigint, queue string, seq bigint").load()
    assert frame.where("queue = 'urgent' and seq >= 1002 and no < 4").count() == 2


@pytest.mark.parametrize(("told", "left"), [({}, 2), ({"queueKey": "lane", "seqKey": "no"}, 0)])
def test_of_an_archive_under_a_schema_only_filters_on_keys_that_were_named_are_taken(
    tmp_path: Path, told: dict[str, str], left: int
) -> None:
    schema = pa.schema([(name, pa.string()) for name in ("lane", "queue")] + [("no", pa.int64()), ("seq", pa.int64())])
    options = source_options({"archive": str(tmp_path), "pushFilters": "true", **told})
    names = (told["queueKey"], told["seqKey"]) if told else ("queue", "seq")
    filters = [EqualTo((names[0],), "urgent"), EqualTo((names[1],), 3)]
    assert len(list(FilteringReader(Reading(options, schema)).pushFilters(filters))) == left


def test_filters_of_two_loads_do_not_meet(pushdown: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    wanted = fill(sorter, {"a": 10, "b": 5, "c": 3})
    one, other = (reader(pushdown, access, pushFilters="true").load() for _ in range(2))
    assert places(one.where("queue = 'a'").union(other.where("queue = 'b'"))) == wanted[:15]
    joined = one.where("queue = 'a'").alias("x").join(other.where("queue = 'b'").alias("y"), "seq")
    assert joined.count() == 5


def test_what_is_trimmed_is_no_hole(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    fill(sorter, {"a": 10})
    sorter.trim("a", 6, control_table=None)
    assert places(reader(spark, access).load()) == [("a", seq) for seq in range(7, 10)]
    assert places(reader(spark, access).load().where("seq >= 3")) == [("a", seq) for seq in range(7, 10)]
    assert places(reader(spark, access, fromSeq=7).load()) == [("a", seq) for seq in range(7, 10)]


def test_to_ask_for_what_was_trimmed_is_an_error(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    fill(sorter, {"a": 10})
    sorter.trim("a", 6, control_table=None)
    with pytest.raises(PySparkException) as caught:
        reader(spark, access, fromSeq=3).load().collect()
    assert "seqs 3 to 6 of queue 'a' were trimmed from the table; what is left begins at 7" in told(caught)


def test_a_range_of_chosen_queues(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    fill(sorter, {"a": 10, "b, c": 10, "d": 10})
    frame = reader(spark, access, queues=json.dumps(["d", "b, c"]), fromSeq=3, toSeq=5).load()
    assert places(frame) == [(queue, seq) for queue in ("b, c", "d") for seq in (3, 4, 5)]
    assert places(reader(spark, access, queues="a,d", fromSeq=9).load()) == [("a", 9), ("d", 9)]


def test_arrival_times_choose_messages(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    fill(sorter, {"a": 3})
    time.sleep(0.02)
    middle = time.time()
    time.sleep(0.02)
    sorter.put({"queue": "a", "seq": 3})
    assert places(reader(spark, access, since=middle).load()) == [("a", 3)]
    assert places(reader(spark, access, until=middle).load()) == [("a", seq) for seq in range(3)]
    assert places(reader(spark, access, since="2001-01-01T00:00:00Z", until="2002-01-01").load()) == []


def test_filters_work_with_and_without_pushdown(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    fill(sorter, {"a": 10, "b": 10, "c": 10})
    frame = (
        reader(spark, access).load().where("queue in ('a', 'b', 'none') and seq >= 3 and seq < 5 and item is not null")
    )
    assert places(frame) == [(queue, seq) for queue in "ab" for seq in (3, 4)]


def test_pushed_filters_become_ranges(pushdown: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    fill(sorter, {"a": 10, "b": 10, "c": 10})

    def where(condition: str) -> DataFrame:
        return reader(pushdown, access, rowsPerPartition=1, pushFilters="true").load().where(condition)

    narrow = where("queue in ('a', 'b', 'none') and seq >= 3 and seq < 5")
    assert narrow.rdd.getNumPartitions() == 4
    assert places(narrow) == [(queue, seq) for queue in "ab" for seq in (3, 4)]
    assert places(where("queue = 'c' and seq = 7 and item like '%7%'")) == [("c", 7)]
    assert places(where("seq > 5 and seq < 3")) == []
    assert places(where("queue = 'a' or seq = 1")) == [*(("a", seq) for seq in range(10)), ("b", 1), ("c", 1)]


def test_with_pushdown_switched_on_a_frame_can_be_queried_again_with_and_without_filters(
    pushdown: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    wanted = fill(sorter, {"a": 10, "b": 10})
    frame = reader(pushdown, access).load()
    assert places(frame.where("queue = 'a' and seq < 2")) == [("a", 0), ("a", 1)]
    assert places(frame) == wanted


def test_asking_for_pushed_filters_with_the_switch_off_says_which_switch(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    fill(sorter, {"a": 1})
    with pytest.raises(PySparkException, match=r"filterPushdown\.enabled"):
        reader(spark, access, pushFilters="true").load().collect()


def test_the_messages_own_fields_under_a_schema(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    sorter.put_many([{"queue": "a", "seq": 0, "price": 2.5, "tags": ["x"]}, {"queue": "a", "seq": 1, "price": 3}])
    frame = reader(spark, access).schema("seq bigint, price double, tags array<string>").load()
    assert [tuple(row) for row in frame.collect()] == [(0, 2.5, ["x"]), (1, 3.0, None)]


def test_times_and_exact_numbers_under_a_schema(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    sorter.put({"queue": "a", "seq": 0, "at": "2026-01-31T12:00:00Z", "amount": 12.5})
    frame = reader(spark, access).schema("seq bigint, amount decimal(12,2), at timestamp, _misfits int").load()
    (row,) = frame.selectExpr("seq", "cast(amount as string)", "unix_seconds(at)", "_misfits").collect()
    assert tuple(row) == (0, "12.50", 1769860800, 0)


def test_our_own_columns_come_in_the_order_that_is_asked_for(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    sorter.put({"queue": "a", "seq": 0})
    frame = reader(spark, access).schema("seq bigint, queue string, item string").load()
    assert [tuple(row) for row in frame.collect()] == [(0, "a", '{"queue":"a","seq":0}')]
    with pytest.raises(PySparkException, match="slots=true has columns of its own"):
        reader(spark, access, slots="true").schema("seq bigint, price double").load().collect()


def test_a_value_that_does_not_fit_the_schema_is_named_or_nulled(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    sorter.put_many([{"queue": "a", "seq": 0, "price": 2.5}, {"queue": "a", "seq": 1, "price": "dear"}])
    with pytest.raises(PySparkException) as caught:
        reader(spark, access).schema("price double").load().collect()
    assert "(queue 'a', seq 1): the field 'price' should be double: 'dear' is none" in told(caught)
    frame = reader(spark, access, mode="null").schema("price double, _misfits int").load()
    assert [tuple(row) for row in frame.collect()] == [(2.5, 0), (None, 1)]


def test_the_whole_job_keeps_to_a_rate(spark: SparkSession, access: TableAccess, sorter: StreamSorter) -> None:
    sorter.put_many([{"queue": f"q{seq % 4}", "seq": seq // 4, "fill": "x" * 3_900} for seq in range(120)])
    units = sum(page.units for n in range(4) for page in access.pages(consistent=True).read(f"q{n}", -1, 29))
    assert units > 0
    began = time.monotonic()
    assert reader(spark, access, maxReadUnits=units / 3, rowsPerPartition=10).load().count() == 120
    assert time.monotonic() - began > 2.5


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fromSq": "1"}, "no option 'fromsq'"),
        ({"fromSeq": "x"}, "fromSeq is 'x'"),
        ({"fromSeq": "5", "toSeq": "4"}, "from seq 5 is above to seq 4"),
        ({"queues": "[1]"}, "must hold text only"),
        ({"queues": "nobody"}, "there is no queue 'nobody'"),
        ({"since": "soon"}, "since is 'soon'"),
        ({"released": "maybe"}, "released is 'maybe'"),
        ({"mode": "drop"}, "mode is 'drop'"),
        ({"rowsPerPartition": "0"}, "rowsPerPartition is 0"),
        ({"maxReadUnits": "-1"}, "maxReadUnits is -1"),
        ({"maxReadUnits": "much"}, "maxReadUnits is 'much'"),
        ({"archive": "/tmp/x"}, "read one or the other"),
        ({"seqKey": "number"}, "it should be 'queue' and 'number'"),
        ({"queueKey": "seq", "seqKey": "queue"}, "it should be 'seq' and 'queue'"),
        ({"itemsTable": "no-such-table"}, "no-such-table"),
        ({"cursorTable": "no-such-table"}, "no-such-table"),
        ({"itemsTable": ""}, "the option itemsTable is missing"),
        ({"endpointUrl": "http://127.0.0.1:9", "queues": "a"}, "127.0.0.1:9"),
    ],
)
def test_bad_input_gets_a_clear_error(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter, options: dict[str, str], problem: str
) -> None:
    fill(sorter, {"a": 3})
    with pytest.raises(PySparkException) as caught:
        spark.read.format("stream_sort").options(**{**options_of(access), **options}).load().collect()
    assert problem in told(caught)


def test_an_empty_table_and_an_empty_range_have_no_rows(
    spark: SparkSession, access: TableAccess, sorter: StreamSorter
) -> None:
    assert places(reader(spark, access).load()) == []
    fill(sorter, {"a": 3})
    assert places(reader(spark, access, fromSeq=100).load()) == []
