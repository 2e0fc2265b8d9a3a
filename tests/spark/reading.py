"""How the tests read with the data source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from stream_sort.replay.origins.access import TableAccess


def options_of(access: TableAccess) -> dict[str, str]:
    return {
        "itemsTable": access.items_table,
        "cursorTable": access.cursor_table,
        "endpointUrl": access.endpoint_url or "",
        "region": access.region or "",
    }


def reader(spark: SparkSession, access: TableAccess, **options: Any) -> DataFrameReader:
    return spark.read.format("stream_sort").options(**options_of(access), **options)


def places(frame: DataFrame) -> list[tuple[str, int]]:
    """Queue and seq of every row, in the order in which they come."""
    return [(row.queue, row.seq) for row in frame.collect()]


def partitions(frame: DataFrame) -> list[list[tuple[str, int]]]:
    return [[(row.queue, row.seq) for row in rows] for rows in frame.rdd.glom().collect()]
