"""A soak on all cores ends as a whole, whatever its workers are doing."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from stream_sort.testing.simulation.simulator import RunReport
from stream_sort.testing.simulation.soak import soak

ROOT = Path(__file__).parents[2]
WORKING = "a worker is at a long seed"
LONG = 600.0


def take_long(_: int) -> RunReport:
    print(WORKING, flush=True)
    time.sleep(LONG)
    raise AssertionError


def soak_long() -> None:
    soak(0, 1, jobs=2, run=take_long)


def test_the_workers_of_a_soak_end_with_a_parent_that_is_killed() -> None:
    script = "from tests.simulation.test_soak import soak_long; soak_long()"
    parent = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip() == WORKING
        parent.kill()
        # The workers have the same stdout: it ends with the last of them.
        parent.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
