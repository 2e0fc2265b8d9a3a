"""The Spark session of a job: the one that is there, or one on this machine."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from stream_sort.errors import SettingsError
from stream_sort.replay.jobs.interrupts import interrupts_wait


def spark_session(name: str) -> SparkSession:
    """The session that spark-submit, EMR or Glue has begun; elsewhere one with all cores of this machine.

    The workers run the Python that runs this: Spark would take the `python3` of the PATH. A task is tried four times,
    as on a cluster: a worker that was killed ends no job.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    is_ours = "PYSPARK_GATEWAY_PORT" not in os.environ and SparkSession.getActiveSession() is None
    if is_ours:
        builder = (
            builder.master("local[*,4]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
        )
    with interrupts_wait():
        try:
            session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        except PySparkRuntimeError as error:
            why = str(error).rstrip(".")
            raise SettingsError(f"{why}; Spark needs Java 17 or newer: install a JDK, or set JAVA_HOME") from error
        session.sparkContext.setLogLevel("ERROR")
    if is_ours:
        atexit.register(_leave_quietly, session)
    return session


def _leave_quietly(session: SparkSession) -> None:
    """Stop before this process ends: what a task says that loses its driver is no news to whoever stopped the job."""
    # Whoever stopped the session before has left nothing to do.
    with suppress(AttributeError, OSError, Py4JError):
        session.sparkContext.setLogLevel("OFF")
        session.stop()
