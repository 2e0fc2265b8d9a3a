"""Backfill: source and range in, files or deliveries out, in order and complete; a killed job resumes where it was."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stream_sort.errors import JoinRefused, StreamSortError
from stream_sort.replay.backfill.options import backfill_parser, options_of
from stream_sort.replay.backfill.run import RESUME, BackfillRun
from stream_sort.replay.engine.options import COMPLETE, INCOMPLETE, complain, run_main
from stream_sort.replay.engine.report import check_report_file, shown_json, width_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.engine.places import FindNearby
    from stream_sort.replay.engine.report import JobReport


def backfill(options: BackfillOptions, spark: SparkSession | None = None) -> JobReport:
    """Run a backfill, or what is left of it; the report says whether it is complete.

    Files: the same bytes under the same names, however often it is stopped and run again. Sinks that deliver: each
    queue in order, at least once, where a repeat restarts after the last commit. A finished one does nothing, unless
    a file of it is gone. What went on behind a hole is done again: the hole may have been mended.
    """
    return BackfillRun(options, spark).run()


def dry_run(options: BackfillOptions, spark: SparkSession | None = None) -> str:
    """Return what a backfill would do and cost, as text; reads positions, but no message."""
    return BackfillRun(options, spark).forecast().text()


def main(argv: Sequence[str] | None = None, find_nearby: FindNearby | None = None) -> int:
    """Run the command: exit code 0 when complete, 1 when not, 2 for bad input, 130 when interrupted."""
    return run_main(backfill_parser(), _command, argv, resume=RESUME, find_nearby=find_nearby)


def _command(given: argparse.Namespace) -> int:
    options = options_of(given)
    check_report_file(given.report)
    if given.dry_run:
        planned = BackfillRun(options, None).forecast()
        sys.stdout.write(shown_json(planned.document()) if given.json else planned.text(width_of(given)))
        return COMPLETE
    job = BackfillRun(options, None)
    try:
        report = job.run()
    except JoinRefused:
        # It says itself where the consumer stands.
        raise
    except (StreamSortError, KeyboardInterrupt):
        if job.standing:
            complain(job.standing)
        raise
    if given.report:
        report.write(given.report, options.source)
    if given.json or not given.quiet:
        sys.stdout.write(shown_json(report.document()) if given.json else report.text(width_of(given)))
    elif not report.complete:
        worst = report.queues[0]
        complain(f"not complete: queue {worst['queue']!r}: {worst['problem'] or worst['gaps']}")
        if job.standing:
            complain(job.standing)
    return COMPLETE if report.complete else INCOMPLETE
