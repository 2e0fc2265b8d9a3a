"""For AWS Glue, which adds arguments of its own and knows no option without a value: `--run "archive --trim ..."`.

Runs the job that the text names with the options in it, and fails the job run unless it is complete.
"""

from __future__ import annotations

import shlex
import sys
from importlib import import_module

JOBS = ("backfill", "audit", "archive")


def main(argv: list[str]) -> int:
    """Run the job that follows `--run`, and return its exit code; whatever else Glue passes is not ours."""
    words = shlex.split(argv[argv.index("--run") + 1]) if "--run" in argv[:-1] else []
    if not words or words[0] not in JOBS:
        sys.stderr.write(f'glue: give --run "JOB OPTIONS", where JOB is {", ".join(JOBS)}\n')
        return 2
    code: int = import_module(f"stream_sort.replay.{words[0]}.job").main(words[1:])
    return code


if __name__ == "__main__" and (failed := main(sys.argv)):
    sys.exit(failed)
