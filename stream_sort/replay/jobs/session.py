"""The Spark session of a job: the one that is there, or one on this machine."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator


def spark_session(name: str) -> SparkSession:
    """The session that spark-submit, EMR or Glue has begun; elsewhere one with all cores of this machine.

    The workers run the Python that runs this: Spark would take the `python3` of the PATH. A task is tried four times,
    as on a cluster: a worker that was killed ends no job.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ and SparkSession.getActiveSession() is None:
        builder = (
            builder.master("local[*,4]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
        )
    with _interrupts_wait():
        session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Let Ctrl-C wait for the end: a Java machine that is interrupted while it starts would never end by itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
