"""The processes in which MiniStack runs Lambda functions, for tests and demos that kill them."""

from __future__ import annotations

import re
import subprocess

# MiniStack starts each as `python TMPDIR/ministack-lambda-FUNCTION-RANDOM/_worker.py`.
WORKER = r"^\s*(\d+)\s.*{home}/ministack-lambda-{function}-\w+/_worker\.py$"


def worker_pids(home: str, function: str) -> list[int]:
    """The process ids of a function's workers, of the MiniStack that has its temporary files in `home`."""
    asked = ["ps", "-A", "-ww", "-o", "pid=,args="]
    table = subprocess.run(asked, capture_output=True, text=True, check=True).stdout  # noqa: S603  # no input
    pattern = WORKER.format(home=re.escape(home), function=re.escape(function))
    return [int(pid) for pid in re.findall(pattern, table, re.MULTILINE)]
