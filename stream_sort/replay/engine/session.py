"""The Spark session of a job: the one that is there, or one on this machine."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from stream_sort.errors import SettingsError
from stream_sort.replay.engine.interrupts import interrupts_wait

LOGGING = Path(__file__).with_name("log4j2.properties")
# A Spark of one's own has its own logging.
OWN_SPARK = ("SPARK_CONF_DIR", "SPARK_HOME")


def spark_session(name: str) -> SparkSession:
    """Return the session that spark-submit, EMR or Glue has begun; elsewhere one with all cores of this machine.

    The workers run the Python that runs this: Spark would take the `python3` of the PATH. A task is tried four times,
    as on a cluster: a worker that was killed ends no job.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    is_ours = "PYSPARK_GATEWAY_PORT" not in os.environ and SparkSession.getActiveSession() is None
    conf = SparkConf().setAppName(name)
    if is_ours:
        conf.setMaster("local[*,4]").setAll(list(_on_this_machine().items()))
    # The context only: the last thing it does is to take Ctrl-C for itself, which must not last for another call.
    with interrupts_wait():
        context = _context(conf)
        if is_ours:
            atexit.register(_leave_quietly, context)
    context.setLogLevel("ERROR")
    return SparkSession.builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()


def _context(conf: SparkConf) -> SparkContext:
    try:
        return SparkContext.getOrCreate(conf)
    except PySparkRuntimeError as error:
        why = str(error).rstrip(".")
        raise SettingsError(f"{why}; Spark needs Java 17 or newer: install a JDK, or set JAVA_HOME") from error


def _on_this_machine() -> dict[str, str]:
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    if LOGGING.is_file() and not any(name in os.environ for name in OWN_SPARK):
        chosen["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    return chosen


def _leave_quietly(context: SparkContext) -> None:
    """Stop before this process ends: what a task says that loses its driver is no news to whoever stopped the job."""
    # Nothing is left to stop but this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Nor is it that its connection for accumulators ends with it.
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    # Whoever stopped it before has left nothing to do.
    with suppress(AttributeError, OSError, Py4JError):
        context.setLogLevel("OFF")
        context.stop()
