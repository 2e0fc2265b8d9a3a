"""The audit: whether everything is there, once, and cursors and consumers are where they can be.

By aggregation first: what each task reads becomes runs of seqs, in which a whole queue is one row; only what is not
whole is looked at again. The report as JSON (`--out`):

    {"job": "audit", "source": "...", "complete": bool, "seconds": s, "notes": [...],
     "queues": n, "messages": n, "tombstones": n, "late": n,       what is there; late messages lie beside tombstones
     "gaps": n, "missing": n,                                      runs of missing seqs, and how many seqs those are
     "duplicates": n, "conflicts": n, "no_slot": n, "repaired": n, those in no slot have a seq such as 1.5
     "queues_with": {kind: n},                                     queues with a finding of each kind
     "lag": {consumer: n},                                         released seqs that a consumer has not done
     "findings": [{"queue", "kind", "count", "seqs": [[first, last], ...], "more_ranges", "detail", "repaired"}],
     "findings_left_out": n,                                       beyond the first thousand
     "worst": [{"queue", "messages", "tombstones", "late", "first", "last", "position", "gaps", "missing",
                "duplicates", "conflicts", "lag", "findings"}]}    the fifty worst queues

The kinds of findings are in `findings.KINDS`. All queues with all their gaps are in the detail (`--detail`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.replay.audit.findings import AuditFinding, findings_of
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.audit.queues import QueueAudit, RunCollector, queues_of
from stream_sort.replay.audit.report import AuditResult
from stream_sort.replay.audit.standing import StandingReader, check_queues_found
from stream_sort.replay.engine.command import ask_first, deliver, run_main
from stream_sort.replay.engine.options import DETAIL_FORMS
from stream_sort.replay.engine.progress import JobProgress
from stream_sort.replay.engine.source import check_writable, job_rate
from stream_sort.replay.origins.access import check_keys
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from stream_sort.replay.engine.command import Confirm
    from stream_sort.replay.engine.places import FindNearby
    from stream_sort.replay.origins.export.order import Doubles


def audit(options: AuditOptions, spark: SparkSession | None = None) -> AuditResult:
    """Look at everything, and tell what is wrong; changes nothing, unless it is to repair."""
    if spark is None:
        options.source.check_there()
        from stream_sort.replay.engine.session import spark_session  # noqa: PLC0415  # Spark is slow to load

        spark = spark_session("stream-sort audit")
    return _Audit(options, spark).run()


def main(
    argv: Sequence[str] | None = None, find_nearby: FindNearby | None = None, confirm: Confirm | None = None
) -> int:
    """Run the command: exit code 0 when all is sound, 1 with findings, 2 for bad input, 130 when interrupted."""
    return run_main("audit", partial(_command, confirm=confirm), argv, find_nearby=find_nearby)


def _command(given: argparse.Namespace, confirm: Confirm | None) -> int:
    options = AuditOptions.of(given)
    if given.detail:
        check_writable("--detail", given.detail)
    if options.repair:
        ask_first(f"Advance the queues of table {given.cursor_table} that are found stuck.", given, confirm)
    found = audit(options)
    if given.detail:
        found.write_detail(options.source.place(given.detail), given.detail_format or DETAIL_FORMS[0])
    return deliver(found.report(), given, given.out, given.report)


@dataclass
class _Audit:
    """One run of an audit on the driver."""

    options: AuditOptions
    spark: SparkSession

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._notes: tuple[str, ...] = ()

    def run(self) -> AuditResult:
        look = {"table": self._table, "export": self._export, "archive": self._archive}[self.options.source.kind]
        queues, findings = look()
        check_queues_found(self.options.queues or (), queues)
        audited = [queues[name] for name in sorted(queues)]
        findings += [finding for one in audited for finding in findings_of(one)]
        findings.sort(key=lambda one: one.rank)
        seconds = time.monotonic() - self._began
        return AuditResult(str(self.options.source), audited, findings, seconds, self._notes)

    def _table(self) -> tuple[dict[str, QueueAudit], list[AuditFinding]]:
        from stream_sort.replay.audit.table_survey import TableSurvey  # noqa: PLC0415  # one of three is loaded

        options = self.options
        access = replace(options.source.access, first_seq=options.first_seq)
        check_keys(access)
        standing = StandingReader(access.sorter, options.source.control_table, options.first_seq)
        # Before the items: what is released by now must be among them.
        cursors = standing.cursors(options.queues)
        survey = TableSurvey(access, options.queues, options.consistent, job_rate(options.max_read_units, self.spark))
        queues = self._collected(survey.runs(self.spark))
        _add_no_slot(queues, survey.no_slot)
        for name, error in survey.failed.items():
            queues.setdefault(name, QueueAudit(name)).error = error
        findings = standing.join(queues, cursors)
        return queues, findings + (self._repaired(standing, queues) if options.repair else [])

    def _repaired(self, standing: StandingReader, queues: dict[str, QueueAudit]) -> list[AuditFinding]:
        """Return what was found stuck, and is no more."""
        stuck = [one for one in queues.values() if one.stuck]
        problems = standing.repair(stuck)
        findings = []
        for one in stuck:
            problem = problems.get(one.queue)
            told = f"advanced to {one.position}" if problem is None else f"not advanced: {problem}"
            findings.append(AuditFinding(one.queue, "stuck", 1, detail=told, repaired=problem is None))
            one.stuck = False
        return findings

    def _export(self) -> tuple[dict[str, QueueAudit], list[AuditFinding]]:
        from stream_sort.replay.audit.export_survey import ExportSurvey  # noqa: PLC0415  # one of three is loaded

        survey = ExportSurvey(self.options.source.storage, self.options.source.keys, self.options.queues)
        queues = self._collected(survey.runs(self.spark))
        _add_no_slot(queues, survey.no_slot)
        doubled = [one for one in queues.values() if one.duplicates]
        if doubled:
            runs = [Range(one.queue, first - 1, last) for one in doubled for first, last in one.runs]
            _add_conflicts(queues, survey.conflicts(self.spark, runs))
        return queues, []

    def _archive(self) -> tuple[dict[str, QueueAudit], list[AuditFinding]]:
        from stream_sort.replay.audit.archive_survey import ArchiveSurvey  # noqa: PLC0415  # as above
        from stream_sort.replay.audit.promised import (  # noqa: PLC0415  # as above
            promised,
        )

        storage, named = self.options.source.storage, self.options.queues
        # Watermarks before segments: what is archived meanwhile is no finding.
        promises = promised(self.options.source, storage, named)
        survey = ArchiveSurvey(storage, named, promises)
        queues = self._collected(survey.runs(self.spark))
        doubled = [one.queue for one in queues.values() if one.duplicates]
        if doubled:
            _add_conflicts(queues, survey.conflicts(self.spark, doubled))
        self._notes = survey.notes
        # Whose a damaged file is may not be known.
        lost = {one.queue for one in survey.damaged if one.queue} | {*survey.unfinished}.intersection(named or ())
        queues |= {queue: QueueAudit(queue) for queue in lost if queue not in queues}
        unread = [AuditFinding(queue, "failed", 1, detail=str(error)) for queue, error in promises.damaged.items()]
        return queues, [
            *unread,
            *(AuditFinding(one.queue, "damaged", one.rows, detail=one.problem) for one in survey.damaged),
        ]

    def _collected(self, found: Iterator[pa.RecordBatch]) -> dict[str, QueueAudit]:
        runs = RunCollector()
        with JobProgress(None, None, quiet=self.options.quiet) as progress:
            for some in found:
                runs.take_runs(some)
                progress.add(sum(some["rows"].to_pylist()))
        return queues_of(runs.runs())


def _add_no_slot(queues: dict[str, QueueAudit], counted: Mapping[str, int]) -> None:
    for name, count in counted.items():
        queues.setdefault(name, QueueAudit(name)).no_slot = count


def _add_conflicts(queues: dict[str, QueueAudit], doubles: Doubles) -> None:
    for name, count in doubles.lost.items():
        queues[name].conflicts = count
