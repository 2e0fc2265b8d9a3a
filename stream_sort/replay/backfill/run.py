"""One run of a backfill on the driver: plan, work, join and end; what was done before is not done again."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from stream_sort.errors import SettingsError, Trimmed
from stream_sort.replay.backfill.bounds import shortfalls, trimmed_meanwhile, trimmed_notes
from stream_sort.replay.backfill.joining import Join, begun_text, held_text, lost_text
from stream_sort.replay.backfill.lease import Lease
from stream_sort.replay.backfill.ledger import Ledger, RunningParts
from stream_sort.replay.backfill.plan import check_new, check_sink_takes, left_over, new_plan
from stream_sort.replay.backfill.report import forecast, hole_text, is_complete, is_settled, outcome
from stream_sort.replay.backfill.tally import NOT_DONE, RangeTally
from stream_sort.replay.backfill.targets.delivery import DeliveryWork
from stream_sort.replay.backfill.targets.files import FileWork
from stream_sort.replay.engine.plan import estimate
from stream_sort.replay.engine.progress import JobProgress
from stream_sort.replay.engine.source import check_writable, job_rate
from stream_sort.replay.origins.access import check_keys
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import clipped

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyspark.sql import SparkSession

    from stream_sort.replay.backfill.ledger import PartRecord
    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.engine.plan import JobPlan
    from stream_sort.replay.engine.report import JobReport
    from stream_sort.replay.origins.export.origin import ExportOrigin
    from stream_sort.replay.origins.origin import Origin, Work
    from stream_sort.replay.ranges import Part

RESUME = "run the same command again; it resumes at its checkpoint"


@dataclass
class BackfillRun:
    """What a job does, from its plan to its report.

    `standing` is what is to be said of the consumer if it is not joined.
    """

    options: BackfillOptions
    session: SparkSession | None

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._ledger = Ledger(self.options.ledger)
        self.standing = ""

    def forecast(self) -> JobReport:
        """Return what it would do and cost; reads positions, but no message."""
        options, plan = self.options, self._new_plan()
        if options.source.kind != "table":
            return forecast(options, plan)
        cost = estimate(options.source.access, plan.ranges(), consistent=options.consistent)
        return forecast(options, plan, cost)

    def run(self) -> JobReport:
        """Do what is left to be done."""
        there = self._ledger.plan()
        if there is not None:
            there.check(self.options.identity(), self._ledger.where)
        plan = there or self._begin()
        with self._alone():
            return self._go_on(plan, resumes=there is not None)

    def _go_on(self, plan: JobPlan, *, resumes: bool) -> JobReport:
        end = self._ledger.end()
        holes_stay = end is not None and self.options.on_gap == "skip"
        parts, records = left_over(self.options, plan, self._ledger, holes_stay=holes_stay)
        if end is not None:
            if not parts:
                return self._finished(plan, end)
            self._ledger.reopen()
        if self._join is not None and resumes:
            self._join.check(plan, self._ledger, begins=False)
            self._hold(self._join, plan, begins=False)
        if resumes and parts:
            check_sink_takes(self.options, plan)
        done = len(plan.parts) - len(parts)
        notes = [f"resumed: {done:,} of {len(plan.parts):,} parts were done before"] if records else []
        return self._end(plan, self._work_on(plan, parts, records), [*plan.notes, *notes])

    def _begin(self) -> JobPlan:
        plan = self._new_plan()
        if self._join is not None:
            self._join.check(plan, self._ledger)
        check_new(self.options, plan)
        self._check_places()
        # What Spark lacks, such as Java, is found before anything is written.
        _ = self._spark
        if self._join is not None:
            self._hold(self._join, plan, begins=True)
        return self._ledger.begin(plan)

    def _check_places(self) -> None:
        sink = self.options.sink
        if sink.is_files:
            check_writable("--out", sink.out)
        if self.options.checkpoint:
            check_writable("--checkpoint", self.options.checkpoint)

    def _hold(self, join: Join, plan: JobPlan, *, begins: bool) -> None:
        if not join.is_let_go(self._ledger):
            text = begun_text if join.has_begun(self._ledger) else held_text
            self.standing = text(self.options.consumer)
        join.hold(plan, self._ledger, begins=begins)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While another run delivers the same queues, this one must not; files come out the same in any case."""
        if self.options.sink.is_files:
            yield
            return
        # Its file may have been deleted by hand: records must not be older than those before.
        lease = Lease.take(self._ledger.storage, above=self._ledger.last_lease())
        self._ledger = replace(self._ledger, lease=lease)
        with lease.kept():
            yield

    def _new_plan(self) -> JobPlan:
        origin = self._origin
        if isinstance(origin, TableOrigin):
            check_keys(origin.access)
            cursors = list(origin.access.cursors(origin.selection))
            notes = trimmed_notes(origin.selection, cursors)
            whole = [origin.whole(cursor) for cursor in cursors]
            ends = {one.queue: one.through for one in whole}
            return new_plan(self.options, clipped(origin.selection, whole), ends, notes)
        spark = None
        if self.options.source.kind == "export":
            # Its manifests first: only what they name must be read by Spark to know what there is.
            _ = cast("ExportOrigin", origin).export
            spark = self._spark
        ranges = origin.ranges(cast("SparkSession", spark))
        return new_plan(self.options, ranges, _ends(origin), getattr(origin, "notes", ()))

    def _work_on(self, plan: JobPlan, parts: list[Part], records: dict[int, PartRecord]) -> list[RangeTally]:
        before = {number: record.rows for number, record in records.items()}
        if parts:
            # A session takes a while to begin, which is no part of the job's pace.
            _ = self._spark
        under_way = RunningParts(self._ledger, [part.number for part in parts], before)
        with JobProgress(sum(part.rows for part in parts), len(parts), quiet=self.options.quiet) as progress:
            if not self.options.sink.is_files:
                progress.watch(under_way)
            answers = self._answers(plan, parts)
            for record in answers:
                under_way.ended(record.number)
                progress.add(record.rows - before.get(record.number, 0))
                records[record.number] = record
                if self.options.on_gap == "fail" and any(one.failed and one.missing for one in record.tallies):
                    answers.close()
                    break
        return [tally for part in plan.parts for tally in _tallies(part, records.get(part.number))]

    def _answers(self, plan: JobPlan, parts: list[Part]) -> Generator[PartRecord, None, None]:
        if not parts:
            return
        spark, origin = self._spark, self._origin
        if isinstance(origin, TableOrigin):
            origin = replace(origin, rate=job_rate(self.options.max_read_units, spark))
        yield from origin.run(spark, parts, self._work(plan))

    def _work(self, plan: JobPlan) -> Work:
        options = self.options
        if options.sink.is_files:
            may_have_holes = options.on_gap != "fail"
            return FileWork(options.out, self._ledger, options.sink.form, options.selection, may_have_holes)
        if self._spark.sparkContext.getConf().get("spark.speculation", "false") == "true":
            raise SettingsError(
                f"spark.speculation is on: two tasks would deliver the same queue to {options.sink.sink} at once; "
                "set it to false"
            )
        how = options.selection, options.on_gap, options.batch_size
        return DeliveryWork(options.sender(), self._ledger, *how, plan.id)

    def _end(self, plan: JobPlan, tallies: list[RangeTally], notes: list[str]) -> JobReport:
        # Once a join has begun, the consumer has what is trimmed.
        joins = self._join is not None and not self._join.has_begun(self._ledger)
        tallies, trimmed = self._explained(tallies, is_failure=joins)
        complete, settled = is_complete(self.options, tallies), is_settled(self.options, tallies)
        notes = [*notes, *self._doubled(), *trimmed]
        if is_lost := joins and bool(trimmed):
            self._give_up()
        if self._join is not None and complete:
            notes.append(self._joined(self._join, plan))
        elif self.standing:
            notes.append(f"not joined: {self.standing}")
        if settled:
            if self.options.sink.is_files:
                self.options.out.sweep()
            self._ledger.finish({"finished_at": time.time(), "queues": [one.wire() for one in tallies]})
        elif not is_lost:
            first = hole_text(self.options, tallies, is_trimmed=bool(trimmed))
            notes.append(f"to go on: {first}{RESUME} ({self._ledger.where})")
        return self._report(plan, tallies, notes)

    def _joined(self, join: Join, plan: JobPlan) -> str:
        try:
            count = join.join(plan, self._ledger)
        except Trimmed:
            self._give_up()
            raise
        self.standing = ""
        more = len({*(self.options.selection.queues or ())} - {*plan.ends()})
        rest = f", and gets all of {more:,} more, in which nothing was to be replayed" if more else ""
        return f"joined: consumer {self.options.consumer} goes on live in {count:,} queues{rest}"

    def _give_up(self) -> None:
        self.standing = self.standing and lost_text(self.options.consumer)

    def _explained(self, tallies: list[RangeTally], *, is_failure: bool) -> tuple[list[RangeTally], list[str]]:
        """Holes that a trim made while the job ran are told from others."""
        origin = self._origin
        holed = sorted({one.queue for one in tallies if one.missing})
        if not holed or not isinstance(origin, TableOrigin):
            return tallies, []
        found = origin.access.sorter.in_flight.map(origin.access.homes.only.cursors.get, holed)
        return trimmed_meanwhile(tallies, dict(zip(holed, found, strict=True)), is_failure=is_failure)

    def _doubled(self) -> list[str]:
        """Return what an export held twice; none of it was written twice."""
        doubles = getattr(self._origin, "doubles", None)
        return [f"doubled: {doubles.duplicates:,} slots came twice"] if doubles and doubles.duplicates else []

    def _finished(self, plan: JobPlan, end: dict[str, Any]) -> JobReport:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(end["finished_at"]))
        tallies = [RangeTally.from_wire(wire) for wire in end["queues"]]
        note = f"finished before, at {when}: nothing was done now ({self._ledger.where})"
        return self._report(plan, tallies, [*plan.notes, note])

    def _report(self, plan: JobPlan, tallies: list[RangeTally], notes: list[str]) -> JobReport:
        seconds = time.monotonic() - self._began
        return outcome(self.options, tallies, short=shortfalls(self.options, plan), seconds=seconds, notes=notes)

    @cached_property
    def _origin(self) -> Origin:
        return self.options.source.origin(self.options.selection, consistent=self.options.consistent)

    @cached_property
    def _join(self) -> Join | None:
        if not self.options.until_position:
            return None
        source = self.options.source
        return Join(source.access, source.control_table, self.options.consumer)

    @cached_property
    def _spark(self) -> SparkSession:
        # pyspark takes a second to load, which bad input need not wait for.
        from stream_sort.replay.engine.session import spark_session  # noqa: PLC0415

        return self.session or spark_session("stream-sort backfill")


def _ends(origin: Origin) -> dict[str, int]:
    """Return the last seq of each queue in files; of an export once its ranges are known."""
    if isinstance(origin, ArchiveOrigin):
        return {manifest.queue: manifest.through for manifest in origin.manifests()}
    return cast("ExportOrigin", origin).ends


def _tallies(part: Part, record: PartRecord | None) -> list[RangeTally]:
    """Return what is known of each range of a part."""
    known = {} if record is None else {(one.queue, one.through): one for one in record.tallies}
    return [known.get((one.queue, one.through)) or replace(RangeTally.of(one), failed=NOT_DONE) for one in part.ranges]
