"""Where history is read from, as the jobs and the data source see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.replay.origins.tasks import run_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stream_sort.replay.ranges import Part, Range

    Work = Callable[[Part, Iterator[pa.RecordBatch]], Any]


class Origin(Protocol):
    """Where history is read from. Picklable; makes its clients where it runs."""

    def ranges(self, spark: SparkSession) -> list[Range]:
        """Return what there is to read of the selection, known before it is read; sorted by queue and seq."""

    def run(self, spark: SparkSession, parts: Sequence[Part], work: Work) -> Iterator[Any]:
        """Do `work(part, slots)` for each part on the executors, again where a task is tried again.

        Slots come as they are found, in order, range by range. Answers come as the parts end, in any order.
        """


class RangeReader(Protocol):
    """An origin that can read any range by itself."""

    def read(self, wanted: Range) -> Iterator[pa.RecordBatch]:
        """Return the slots of the range, in order, as they are found."""


def read_parts(spark: SparkSession, parts: Sequence[Part], reader: RangeReader, work: Work) -> Iterator[Any]:
    """`Origin.run` for an origin that reads ranges."""

    def task(part: Part) -> Any:
        return work(part, (batch for wanted in part.ranges for batch in reader.read(wanted)))

    return run_parts(spark, parts, task)
