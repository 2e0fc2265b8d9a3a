"""Backfill: source and range in, files or deliveries out, in order and complete; a killed job resumes where it was."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stream_sort.errors import JoinRefused, StreamSortError
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.backfill.run import RESUME, BackfillRun
from stream_sort.replay.engine.command import COMPLETE, check_report_file, complain, deliver, run_main

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from stream_sort.replay.engine.places import FindNearby
    from stream_sort.replay.engine.report import JobReport


def backfill(options: BackfillOptions, spark: SparkSession | None = None) -> JobReport:
    """Run a backfill, or what is left of it; the report says whether it is complete.

    Files: the same bytes under the same names, however often it is stopped and run again. Sinks that deliver: each
    queue in order, at least once, where a repeat restarts after the last commit. A finished one does nothing, unless
    a file of it is gone. What went on behind a hole is done again: the hole may have been mended.
    """
    return BackfillRun(options, spark).run()


def main(argv: Sequence[str] | None = None, find_nearby: FindNearby | None = None) -> int:
    """Run the command: exit code 0 when complete, 1 when not, 2 for bad input, 130 when interrupted."""
    return run_main("backfill", _command, argv, resume=RESUME, find_nearby=find_nearby)


def _command(given: argparse.Namespace) -> int:
    options = BackfillOptions.of(given)
    check_report_file(given.report)
    job = BackfillRun(options, None)
    if given.dry_run:
        sys.stdout.write(job.forecast().shown(given))
        return COMPLETE
    try:
        report = job.run()
    except JoinRefused:
        # It says itself where the consumer stands.
        raise
    except (StreamSortError, KeyboardInterrupt):
        if job.standing:
            complain(job.standing)
        raise
    code = deliver(report, given, given.report)
    if given.quiet and not given.json and not report.complete and job.standing:
        complain(job.standing)
    return code
