"""From a job's options to the origin that it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.access import TableAccess
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.rate import Rate, RateKeeper
from stream_sort.replay.origins.table import TableOrigin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort.replay.engine.options import Source
    from stream_sort.replay.origins.origin import Origin
    from stream_sort.replay.selection import Selection


def access_of(source: Source) -> TableAccess:
    """Return the tables that a source names."""
    return TableAccess(
        source.items_table,
        source.cursor_table,
        source.queue_key,
        source.seq_key,
        source.region,
        source.endpoint_url,
    )


def origin_of(source: Source, selection: Selection, *, consistent: bool = True) -> Origin:
    """Return the origin that a source names."""
    if source.kind == "table":
        return TableOrigin(access_of(source), selection, consistent)
    storage = Storage(source.export or source.archive, endpoint_url=source.endpoint_url, region=source.region)
    if source.kind == "archive":
        return ArchiveOrigin(storage, selection)
    # Loads what only exports need.
    from stream_sort.replay.origins.export.origin import ExportOrigin  # noqa: PLC0415

    return ExportOrigin(storage, selection, source.keys)


def paced(origin: Origin, units_a_second: float, spark: SparkSession) -> Origin:
    """Return the same origin, read at no more than a rate that all tasks together keep to."""
    if not isinstance(origin, TableOrigin):
        raise SettingsError("--max-read-units is for tables; an export or an archive costs no read units")
    host = spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1")
    # Lives as long as this process: tasks may ask until the last one has ended.
    keeper = RateKeeper(host or "127.0.0.1")
    return replace(origin, rate=Rate(units_a_second, keeper.address))
