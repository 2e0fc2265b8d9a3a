"""The archive job: released and everywhere consumed ranges go to ordered Parquet segments, each exactly once.

A queue's plan is fixed in the archive, its segments are written, it is marked as finished, then the queue's watermark
moves. A run that dies anywhere leaves a plan from which the next one writes the same bytes to the same names.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.errors import ArchiveDamaged, StreamSortError
from stream_sort.ports.archive import Archived
from stream_sort.replay.archive.due import Due
from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.archive.report import Accounts
from stream_sort.replay.archive.trim import TrimBounds, TrimmedQueue, TrimQueues
from stream_sort.replay.archive.work import WriteSegments, unplanned
from stream_sort.replay.engine.command import ask_first, check_report_file, deliver, run_main
from stream_sort.replay.engine.plan import estimate
from stream_sort.replay.engine.progress import JobProgress
from stream_sort.replay.engine.source import check_writable, job_rate
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.owner import Owner
from stream_sort.replay.origins.archive.plan import SegmentPlan, fix, is_written, mark_finished
from stream_sort.replay.origins.origin import run_parts
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import Part, Range, cut_parts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from stream_sort.model.records import Cursor
    from stream_sort.replay.archive.due import DueReader
    from stream_sort.replay.engine.command import Confirm
    from stream_sort.replay.engine.places import FindNearby
    from stream_sort.replay.engine.report import JobReport
    from stream_sort.replay.files.storage import Storage

__all__ = ["ArchiveOptions", "archive", "dry_run", "main"]


def archive(options: ArchiveOptions, spark: SparkSession) -> JobReport:
    """Archive what is due, and trim it if asked; the report is complete when nothing stood against it."""
    began = time.monotonic()
    run = _Run(options, spark)
    run.write()
    if options.trim:
        run.trim()
    return run.accounts.report(time.monotonic() - began, trimmed=options.trim)


def dry_run(options: ArchiveOptions) -> JobReport:
    """Return what a run would do and cost; writes nothing and reads no message."""
    Owner.of(options.access).check(options.storage)
    due_reader = options.due_reader()
    dues = _dues(options, due_reader)
    accounts = Accounts.of(dues, no_consumers=not due_reader.control.subscriptions.consumers())
    plans = [SegmentPlan.of(due.range, options.segment_rows) for due in _worthwhile(dues, options)]
    for plan in plans:
        accounts.queues[plan.queue].rows = plan.through - plan.after
        accounts.queues[plan.queue].segments = len(plan.ends)
    if options.trim:
        through = {due.queue: due.after for due in dues} | {plan.queue: plan.through for plan in plans}
        for bound in TrimBounds(options.access, due_reader.control).of(_deletable(dues, through)):
            accounts.queues[bound.queue].trimmed = bound.slots
    segments = [held for plan in plans for held in plan.segments]
    cost = estimate(options.access, segments, consistent=options.consistent)
    return accounts.report(trimmed=options.trim, cost=cost)


class _Run:
    """One run over all its queues."""

    def __init__(self, options: ArchiveOptions, spark: SparkSession) -> None:
        self._options = options
        self._spark = spark
        self._owner = Owner.of(options.access)
        # Before anything is made of what the archive holds.
        self._owner.check(options.storage)
        self._due_reader: DueReader = options.due_reader()
        self._bounds = TrimBounds(options.access, self._due_reader.control) if options.trim else None
        self._dues = self._marked(_dues(options, self._due_reader))
        self.accounts = Accounts.of(self._dues, no_consumers=not self._due_reader.control.subscriptions.consumers())
        self.accounts.resumed = sum(due.unmarked_segments for due in self._dues)
        self._rate = job_rate(options.max_read_units, spark)
        origin = TableOrigin(options.access, consistent=options.consistent, rate=self._rate)
        self._task = WriteSegments(origin, options.storage)

    def write(self) -> None:
        """Round after round: first what an earlier run has planned, then what was released since."""
        left = _worthwhile(self._dues, self._options)
        if left:
            self._owner.claim(self._options.storage)
        ranges = {due.queue: due.range for due in left}
        rows = sum(map(len, ranges.values()))
        with JobProgress(rows, None, quiet=self._options.quiet or not rows) as progress:
            while ranges:
                plans = self._write_plans(ranges.values(), progress)
                ranges = {
                    plan.queue: Range(plan.queue, plan.through, ranges[plan.queue].through)
                    for plan in plans
                    if not self.accounts.queues[plan.queue].problem and plan.through < ranges[plan.queue].through
                }

    def trim(self) -> None:
        """Delete what is archived, consumed by all, and no dead letter's message."""
        if self._bounds is None:
            return
        through = {queue: account.through for queue, account in self.accounts.queues.items()}
        bounds = self._bounds.of(_deletable(self._dues, through))
        for bound in bounds:
            self.accounts.take_trimmed(TrimmedQueue(bound.queue, problem=bound.problem))
        ranges = [held for bound in bounds for held in bound.ranges]
        rows, options = sum(bound.slots for bound in bounds), self._options
        task = TrimQueues(options.access, options.control_table, options.storage, self._rate)
        with JobProgress(rows, None, what="rows trimmed", quiet=options.quiet or not rows) as progress:
            for answers in self._on_executors(ranges, task):
                for answer in answers:
                    self.accounts.take_trimmed(answer)
                progress.add(sum(answer.slots for answer in answers))

    def _marked(self, dues: list[Due]) -> list[Due]:
        """Return how queues stand once finished plans have their marks, and whatever is archived has a watermark."""
        wanting = [due for due in dues if due.state.unmarked or due.lacks_watermark]
        again = {due.queue: due for due in AT_ONCE.map(self._mark, wanting)}
        return [again.get(due.queue, due) for due in dues]

    def _mark(self, due: Due) -> Due:
        for plan in due.state.unmarked:
            # One that was lost was made again.
            self._options.storage.put_if_absent(plan.name, plan.text())
            mark_finished(self._options.storage, plan)
        if not due.lacks_watermark:
            return due
        old, began = (None, due.began) if due.mark is None else (due.mark.watermark, due.mark.began)
        self._due_reader.marks.set_watermark(due.queue, old, due.after, began=began)
        return replace(due, mark=Archived(due.after, began))

    def _write_plans(self, ranges: Iterable[Range], progress: JobProgress) -> list[SegmentPlan]:
        """Write the segments of the plan that counts in each queue; those that an earlier run has finished are done."""
        steps = [self.accounts.queues[one.queue].due.step(one) for one in ranges]
        found = [one for one in AT_ONCE.map(self._fix, steps) if one is not None]
        plans = {plan.queue: plan for plan, _ in found}
        missing = {plan.queue: set(segments) for plan, segments in found}
        self.accounts.resumed += sum(len(plan.ends) - len(segments) for plan, segments in found)
        self._finish([plan for plan in plans.values() if not missing[plan.queue]])
        for answers in self._on_executors([held for _, segments in found for held in segments], self._task):
            for answer in answers:
                queue = answer.held.queue
                self.accounts.queues[queue].take(answer)
                missing[queue].discard(answer.held)
            written = {answer.held.queue: None for answer in answers}
            self._finish([plans[queue] for queue in written if not missing[queue]])
            progress.add(sum(len(answer.held) for answer in answers))
        return list(plans.values())

    def _fix(self, wanted: Range) -> tuple[SegmentPlan, list[Range]] | None:
        """Return the plan that counts, and which of its segments are to be written; None if it cannot be followed."""
        storage, account = self._options.storage, self.accounts.queues[wanted.queue]
        due, there = account.due, list[Range]()
        try:
            if due.unplanned:
                there = unplanned(storage, wanted, due.state.room(wanted.after), due.cursor.position)
            planned = SegmentPlan.along(wanted, there, self._options.segment_rows)
            _check(storage, due, planned)
            plan, is_new = fix(storage, planned)
            _check(storage, due, plan)
        except ArchiveDamaged as error:
            account.problem = f"the archive is damaged: {error}"
            return None
        new = set(plan.segments).difference(there) if is_new else set()
        return plan, [held for held in plan.segments if held in new or not is_written(storage, held)]

    def _on_executors(self, ranges: list[Range], task: Callable[[Part], list[Any]]) -> Iterator[list[Any]]:
        """Do the task on ranges as they are, small ones packed together."""
        if not ranges:
            return iter(())
        return run_parts(self._spark, cut_parts(ranges, max([self._options.rows_per_part, *map(len, ranges)])), task)

    def _finish(self, plans: Iterable[SegmentPlan]) -> None:
        """Mark plans as finished whose segments are all there, and move their watermarks."""
        AT_ONCE.map(self._move_watermark, [one for one in plans if not self.accounts.queues[one.queue].problem])

    def _move_watermark(self, plan: SegmentPlan) -> None:
        """Mark a plan as finished and move its watermark, unless somebody else has moved it as far meanwhile."""
        account = self.accounts.queues[plan.queue]
        mark_finished(self._options.storage, plan)
        due, mark = account.due, account.due.mark
        there = None if mark is None else mark.watermark
        old = there if account.through == due.after else account.through
        self._due_reader.marks.set_watermark(
            plan.queue, old, plan.through, began=due.began if mark is None else mark.began
        )
        account.through = plan.through


def main(
    argv: Sequence[str] | None = None, find_nearby: FindNearby | None = None, confirm: Confirm | None = None
) -> int:
    """Run the command; return its exit code."""
    resume = "run it again, it goes on where it was"
    run = partial(_command, confirm=confirm)
    return run_main("archive", run, argv, resume=resume, find_nearby=find_nearby)


def _command(given: argparse.Namespace, confirm: Confirm | None) -> int:
    options = ArchiveOptions.of(given)
    check_report_file(given.report)
    if given.dry_run:
        report = dry_run(options)
    else:
        check_writable("--archive", given.archive)
        Owner.of(options.access).check(options.storage)
        if options.trim:
            what = f"Delete for good, from table {given.items_table}, what is in {given.archive} and consumed by all."
            ask_first(what, given, confirm)
        # Spark takes seconds to start; what is wrong with the options is said before.
        from stream_sort.replay.engine.session import spark_session  # noqa: PLC0415

        report = archive(options, spark_session("stream-sort archive"))
    return deliver(report, given, given.report)


def _dues(options: ArchiveOptions, due_reader: DueReader) -> list[Due]:
    """Return how all queues stand. Where it deletes, a run with a mistyped address must not begin another archive."""
    damaged = dict[str, StreamSortError]()
    dues = due_reader.due(options.access.cursors(options.selection, damaged))
    dues += [Due.without_row(queue, error) for queue, error in damaged.items()]
    return due_reader.known_elsewhere(dues) if options.trim else dues


def _deletable(dues: Iterable[Due], through: Mapping[str, int]) -> list[tuple[Cursor, Range]]:
    """Return what is archived up to some seqs, and consumed by all."""
    return [
        (due.cursor, Range(due.queue, due.began, min(through[due.queue], due.consumed)))
        for due in dues
        if not due.problem
    ]


def _check(storage: Storage, due: Due, plan: SegmentPlan) -> None:
    """Raise ArchiveDamaged for a plan that would make the queue unreadable: it is neither written nor followed."""
    refusal = due.state.refusal(plan)
    if refusal:
        raise ArchiveDamaged(storage.address(plan.name), refusal)


def _worthwhile(dues: Iterable[Due], options: ArchiveOptions) -> list[Due]:
    """Return those with enough to archive; what the archive has lost does not wait for more."""
    enough = (due for due in dues if len(due.range) >= options.min_rows or due.lost is not None)
    return [due for due in enough if not due.problem]
