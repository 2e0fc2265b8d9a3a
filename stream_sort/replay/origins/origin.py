"""Where history is read from, as jobs and the data source see it; and how its parts are run on Spark's executors."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.accumulators import AccumulatorParam

from stream_sort.errors import ReplayFailed, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from stream_sort.replay.ranges import Part, Range

    # Does some work, whose result or error of ours is the task's answer.
    Answer = Callable[[Callable[[], Any]], None]
    ArrowTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    Work = Callable[[Part, Iterator[pa.RecordBatch]], Any]

POLL = 0.1
LONGEST_STORY = 500
# How a traceback begins the line of an error of ours.
OURS = f"{StreamSortError.__module__}."


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


def run_parts(spark: SparkSession, parts: Sequence[Any], task: Callable[[Any], Any]) -> Iterator[Any]:
    """Do `task(part)`, each part as a Spark task of its own; yields the answers as they come, in any order.

    An error of ours ends the job and is raised here as it is. Whoever stops taking answers stops the job.
    """
    if not parts:
        return

    def tasks(answer: Answer) -> RDD[Any]:
        return spark.sparkContext.parallelize(parts, len(parts)).map(lambda part: answer(lambda: task(part)))

    yield from run_tasks(spark, tasks)


def run_tasks(spark: SparkSession, tasks: Callable[[Answer], RDD[Any]]) -> Iterator[Any]:
    """Run the tasks of an RDD that is made with `tasks(answer)`: what a task says by `answer(work)` comes out here.

    See `run_parts`, which is this for parts that are known beforehand.
    """
    answers = spark.sparkContext.accumulator([], _Collected())

    def answer(work: Callable[[], Any]) -> None:
        try:
            answers.add([work()])
        except StreamSortError as error:
            answers.add([_Failure(error)])

    job = _Job(spark.sparkContext, lambda: tasks(answer))
    taken = 0
    try:
        while True:
            ended = job.wait(POLL)
            for one in answers.value[taken:]:
                taken += 1
                if isinstance(one, _Failure):
                    raise one.error
                yield one
            if ended:
                return job.check()
    finally:
        job.cancel()


def map_in_arrow(frame: DataFrame, task: ArrowTask, schema: str) -> DataFrame:
    """Run a function over the Arrow batches of a frame, as `frame.mapInArrow(task, schema)` does, without pandas too.

    Spark asks for pandas there, but only because pandas UDFs are made by the same function: batches need none. Where
    it is not installed, the same plan is made past that question.
    """
    from pyspark.errors import PySparkImportError  # noqa: PLC0415  # executors do without all of it
    from pyspark.sql import DataFrame as Frame  # noqa: PLC0415
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415
    from pyspark.util import PythonEvalType  # noqa: PLC0415

    try:
        return frame.mapInArrow(task, schema)
    except PySparkImportError:
        made = UserDefinedFunction(task, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
        column: Any = made(*(frame[name] for name in frame.columns))
        return Frame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)  # noqa: FBT003, SLF001


@dataclass(frozen=True, slots=True)
class _Failure:
    """An error of ours on its way home from an executor."""

    error: StreamSortError


class _Collected(AccumulatorParam[list[Any]]):
    """Answers of tasks; Spark adds those of each task once, when it has succeeded."""

    def zero(self, value: list[Any]) -> list[Any]:  # noqa: ARG002  # Spark's interface
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802  # Spark's interface
        value1.extend(value2)
        return value1


class _Job:
    """A Spark job in a thread of its own, so that this one can look at its answers and stop it."""

    def __init__(self, context: SparkContext, rdd: Callable[[], RDD[Any]]) -> None:
        self._context = context
        self._group = f"stream_sort-{uuid.uuid4()}"
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(rdd,), daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Return True if it has ended, within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raise what ended the job, if it was not success."""
        if self._error is not None:
            raise ReplayFailed(_last_words(self._error)) from self._error

    def cancel(self) -> None:
        """Stop it; nothing happens if it has ended."""
        if self._thread.is_alive():
            self._context.cancelJobGroup(self._group)
            self._thread.join()

    def _run(self, rdd: Callable[[], RDD[Any]]) -> None:
        try:
            self._context.setJobGroup(self._group, "stream_sort", interruptOnCancel=True)
            # Made here: what comes before a shuffle runs when the RDD behind it is made.
            rdd().foreach(_nothing)
        except Exception as error:  # noqa: BLE001  # whatever ends a job is told to whoever waits for it
            self._error = error


def _nothing(_: Any) -> None:
    """Do nothing: what tasks have to say they have said."""


def _last_words(error: Exception) -> str:
    """Return the line of Spark's long story that says what happened in the task."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("at ", "File ", "Traceback", "^", "~", "..."))]
    ours = [line.removeprefix(OURS) for line in causes if line.startswith(OURS)]
    named = [line for line in causes if "Exception" in line or "Error" in line]
    return (ours or named or causes or [repr(error)])[0][:LONGEST_STORY]
