"""Spark: ordered ranges of history for backfill, audit and archive. The only place that imports pyspark.

`register(spark)` makes the format known; `spark.read.format("stream_sort")` then reads tables and archives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.replay.origins.rate import RateKeeper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_export", "register"]

_KEEPERS: dict[str, RateKeeper] = {}


def register(spark: SparkSession) -> None:
    """Make the format `stream_sort` known to a session; calling it again does no harm."""
    from stream_sort.replay.source.format import StreamSortSource  # noqa: PLC0415  # Spark's classes are loaded when needed

    context = spark.sparkContext
    keeper = _KEEPERS.get(context.applicationId)
    if keeper is None:
        keeper = _KEEPERS[context.applicationId] = RateKeeper(context.getConf().get("spark.driver.host") or "127.0.0.1")
    bound = {"keeper": keeper.address, "__doc__": StreamSortSource.__doc__}
    spark.dataSource.register(type("RegisteredSource", (StreamSortSource,), bound))


def read_export(spark: SparkSession, location: str, **options: Any) -> DataFrame:
    """Return the messages of a point-in-time export in order; see `origins.export.origin.read_export`."""
    from stream_sort.replay.origins.export import origin  # noqa: PLC0415  # as above

    return origin.read_export(spark, location, **options)
