"""What a backfill sets out to do, and what of it is left: on the driver, before anything is read."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, SettingsError
from stream_sort.replay.backfill.bounds import ended_before
from stream_sort.replay.backfill.options import QUEUES_TOGETHER
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.backfill.targets.files import file_name
from stream_sort.replay.engine.plan import JobPlan, whole_queues
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.ranges import Part, Range, cut_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_sort.replay.backfill.ledger import Ledger, PartRecord
    from stream_sort.replay.backfill.options import BackfillOptions


def new_plan(
    options: BackfillOptions, ranges: Sequence[Range], ends: Mapping[str, int], notes: tuple[str, ...] = ()
) -> JobPlan:
    """Return the ranges as parts: for files any cut will do, what delivers keeps each queue together.

    `ends` are the last seqs of all queues that are wanted, also of those that have no range.
    """
    if not ranges:
        raise InvalidInput(
            f"nothing to replay: no message in the range asked for was released in {options.source}; "
            + ("; ".join(notes) or "check the range, the names and the keys")
        )
    if options.sink.is_files:
        parts = cut_parts(ranges, options.rows_per_part)
    else:
        parts = whole_queues(ranges, min(options.rows_per_part, QUEUES_TOGETHER))
    ended = ended_before(options.selection, ranges, ends)
    return JobPlan(options.identity(), tuple(parts), time.time(), notes, ended)


def check_new(options: BackfillOptions, plan: JobPlan) -> None:
    """Raise if a job that begins would write among somebody else's files, or to a target that is not there."""
    if options.sink.is_files and options.out.list():
        raise SettingsError(
            f"--out {options.sink.out} is not empty, and no plan of this job is at {options.ledger.uri}; "
            "take an empty one"
        )
    check_sink_takes(options, plan)


def check_sink_takes(options: BackfillOptions, plan: JobPlan) -> None:
    """Raise if it is known that the target takes nothing."""
    if not options.sink.is_files:
        options.sender().check(min(plan.ends()))


def left_over(
    options: BackfillOptions, plan: JobPlan, ledger: Ledger, *, holes_stay: bool
) -> tuple[list[Part], dict[int, PartRecord]]:
    """Return the parts that are not done, as far as they are not; and the records of all that is.

    What went on behind a hole is done again, as the hole may have been mended, unless `holes_stay`.
    """
    records = ledger.records()
    holed = set() if holes_stay else {number for number, one in records.items() if _is_holed(options, one)}
    if options.sink.is_files:
        again = holed | _spoiled(options, records)
    else:
        again = holed | {number for number, record in records.items() if not record.ended}
    left: list[Part] = []
    for part in plan.parts:
        record = records.get(part.number)
        if record is None:
            left.append(part)
        elif part.number in again and options.sink.is_files:
            left.append(part)
            del records[part.number]
        elif part.number in again:
            if part.number in holed:
                records[part.number] = record = _afresh(record, ledger)
            if (rest := _rest(part, record)).ranges:
                left.append(rest)
    return left, records


def _spoiled(options: BackfillOptions, records: dict[int, PartRecord]) -> set[int]:
    """Return the parts that are not done, or whose file is not there as it was written."""
    ended = [record for record in records.values() if record.ended]
    there = set(options.out.list("part-"))

    def is_there(record: PartRecord) -> bool:
        name = file_name(record.number, options.sink.form)
        return name in there and options.out.size(name) == record.size

    found = AT_ONCE.map(is_there, ended)
    return set(records) - {record.number for record, there in zip(ended, found, strict=True) if there}


def _is_holed(options: BackfillOptions, record: PartRecord) -> bool:
    """Return True if it went on behind a hole, and not because it was to be skipped."""
    return record.has_holes and not (record.skips and options.on_gap == "skip")


def _afresh(record: PartRecord, ledger: Ledger) -> PartRecord:
    """Return the record without the queues that went on behind a hole: those are delivered again from the start."""
    # What is in order at the target cannot be had by sending what was missing alone.
    tallies = (_begun_anew(one) if _has_hole(one) else one for one in record.tallies)
    again = replace(record, tallies=tuple(tallies), ended=False)
    ledger.commit(again)
    return again


def _begun_anew(tally: RangeTally) -> RangeTally:
    return replace(RangeTally.of(Range(tally.queue, tally.after, tally.through)), again=tally.again + 1)


def _has_hole(tally: RangeTally) -> bool:
    return any(hole.through <= tally.done for hole in tally.missing)


def _rest(part: Part, record: PartRecord) -> Part:
    """Return what of a part is not delivered yet."""
    done = {(one.queue, one.through): one.done for one in record.tallies}
    ranges = (Range(one.queue, done.get((one.queue, one.through), one.after), one.through) for one in part.ranges)
    return Part(part.number, tuple(one for one in ranges if len(one)))
