"""Python functions over the Arrow batches of a Spark frame, with or without pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkImportError
from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_in_arrow(frame: DataFrame, task: Task, schema: str) -> DataFrame:
    """`frame.mapInArrow(task, schema)`.

    Spark asks for pandas there, but only because pandas UDFs are made by the same function: batches need none. Where
    it is not installed, the same plan is made past that question.
    """
    try:
        return frame.mapInArrow(task, schema)
    except PySparkImportError:
        made = UserDefinedFunction(task, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        column: Any = made(*(frame[name] for name in frame.columns))
        return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: FBT003, SLF001
