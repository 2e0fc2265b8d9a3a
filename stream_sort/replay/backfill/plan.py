"""What a backfill sets out to do, and what of it is left: on the driver, before anything is read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, SettingsError
from stream_sort.replay.backfill.options import QUEUES_TOGETHER
from stream_sort.replay.backfill.targets.files import file_name
from stream_sort.replay.jobs.plan import Plan, whole_queues
from stream_sort.replay.ranges import Part, Range, cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.replay.backfill.ledger import Ledger, Record
    from stream_sort.replay.backfill.options import BackfillOptions


def new_plan(options: BackfillOptions, ranges: Sequence[Range]) -> Plan:
    """The ranges as parts: for files any cut will do, what delivers keeps each queue together."""
    if not ranges:
        raise InvalidInput(
            f"nothing to replay: no message in the range asked for was released in {options.source}; "
            "check the range, the names and the keys"
        )
    if options.sink.is_files:
        parts = cut(ranges, options.rows_per_part)
    else:
        parts = whole_queues(ranges, min(options.rows_per_part, QUEUES_TOGETHER))
    return Plan(options.identity(), tuple(parts), time.time())


def check_new(options: BackfillOptions, plan: Plan) -> None:
    """Raise if a job that begins would write among somebody else's files, or to a target that is not there."""
    if options.sink.is_files:
        if options.out.list():
            raise SettingsError(
                f"--out {options.sink.out} is not empty, and no plan of this job is at {options.ledger.uri}; "
                "take an empty one"
            )
    else:
        options.sender().check(min(plan.ends()))


def left_over(options: BackfillOptions, plan: Plan, ledger: Ledger) -> tuple[list[Part], dict[int, Record]]:
    """The parts that are not done, as far as they are not; and the records of all that is."""
    records = ledger.records()
    there = set(options.out.list("part-")) if options.sink.is_files else set()
    left: list[Part] = []
    for part in plan.parts:
        record = records.get(part.number)
        if record is None:
            left.append(part)
        elif options.sink.is_files:
            if not record.ended or file_name(part.number, options.sink.form) not in there:
                left.append(part)
                del records[part.number]
        elif not record.ended and (rest := _rest(part, record)).ranges:
            left.append(rest)
    return left, records


def _rest(part: Part, record: Record) -> Part:
    """What of a part is not delivered yet."""
    done = {(one.queue, one.through): one.done for one in record.tallies}
    ranges = (Range(one.queue, done.get((one.queue, one.through), one.after), one.through) for one in part.ranges)
    return Part(part.number, tuple(one for one in ranges if len(one)))
