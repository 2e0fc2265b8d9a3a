"""Spark: ordered ranges of history for backfill, audit and archive. The only place that imports pyspark.

`register(spark)` makes the format known; `spark.read.format("stream_sort")` then reads tables and archives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.replay.origins.rate import RateKeeper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from stream_sort.model.message import KeyNames
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Selection

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


def read_export(
    spark: SparkSession,
    location: str | Storage,
    *,
    keys: KeyNames | None = None,
    selection: Selection | None = None,
    rows_per_part: int | None = None,
) -> DataFrame:
    """Return the messages of a point-in-time export (queue, seq, item), in order within and between partitions.

    The export is checked, all of it, before this returns: ExportDamaged names the file that is missing or changed.
    """
    from stream_sort.model.message import KeyNames  # noqa: PLC0415  # as above
    from stream_sort.replay.files.storage import Storage  # noqa: PLC0415
    from stream_sort.replay.origins.export.origin import ExportOrigin  # noqa: PLC0415
    from stream_sort.replay.ranges import ROWS_PER_PART, Selection  # noqa: PLC0415

    storage = location if isinstance(location, Storage) else Storage(location)
    origin = ExportOrigin(storage, selection or Selection(), keys or KeyNames())
    return origin.frame(spark, ROWS_PER_PART if rows_per_part is None else rows_per_part)
