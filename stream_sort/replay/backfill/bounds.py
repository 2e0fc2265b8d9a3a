"""Whether what was asked for by seq is there at all: before a plan is made, and of the plan. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.errors import MissingItems
from stream_sort.replay.origins.table import check_not_trimmed, trimmed_since

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stream_sort.errors import Trimmed
    from stream_sort.model.records import Cursor
    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.backfill.tally import RangeTally
    from stream_sort.replay.engine.plan import JobPlan
    from stream_sort.replay.ranges import Range, Selection

MOST_NOTES = 5


def trimmed_notes(selection: Selection, cursors: Iterable[Cursor]) -> tuple[str, ...]:
    """Return where queues begin that were trimmed; InvalidInput if a seq that was asked for is among what was."""
    notes: list[str] = []
    more = 0
    for cursor in cursors:
        if cursor.start < cursor.first_seq:
            continue
        check_not_trimmed(selection, cursor)
        if selection.from_seq is not None:
            continue
        if len(notes) < MOST_NOTES:
            notes.append(_note(cursor))
        else:
            more += 1
    return (*notes, f"and {more:,} more queues were trimmed") if more else tuple(notes)


def ended_before(selection: Selection, ranges: Iterable[Range], ends: Mapping[str, int]) -> dict[str, int]:
    """Return the queues without a range that end before the last seq that was asked for, and where each ends."""
    if selection.to_seq is None:
        return {}
    there = {one.queue for one in ranges}
    return {queue: end for queue, end in ends.items() if queue not in there and end < selection.to_seq}


def shortfalls(options: BackfillOptions, plan: JobPlan) -> dict[str, str]:
    """Return what of the seqs that were asked for the plan does not reach, by queue.

    Tables know where a queue begins; of an export or an archive nobody can tell whether there was more.
    """
    wanted, of_table = options.selection, options.source.kind == "table"
    # A consumer that is joined gets what comes to a queue in which nothing was to be replayed.
    if options.until_position or (wanted.by_time and not of_table):
        return {}
    starts, ends = plan.starts(), plan.ends()
    short: dict[str, str] = {}
    for queue in sorted({*ends, *plan.ended, *(wanted.queues or ())}):
        if queue not in ends:
            where = f": it ends at {plan.ended[queue]}" if queue in plan.ended else ""
            short[queue] = f"has nothing from {_shown(wanted.from_seq)} to {_shown(wanted.to_seq)}{where}"
        elif not of_table and wanted.from_seq is not None and starts[queue] >= wanted.from_seq:
            short[queue] = f"begins at {starts[queue] + 1}, behind --from-seq {wanted.from_seq}"
        elif wanted.to_seq is not None and ends[queue] < wanted.to_seq:
            short[queue] = f"ends at {ends[queue]}, before --to-seq {wanted.to_seq}"
    return short


def trimmed_meanwhile(
    tallies: Sequence[RangeTally], cursors: Mapping[str, Cursor | None], *, is_failure: bool = False
) -> tuple[list[RangeTally], list[str]]:
    """Return the tallies, with what a trim did under the job told as such; and what is to be said of it.

    Where holes may be skipped such a hole is one of them, unless it `is_failure`.
    """
    told: dict[str, str] = {}
    explained = []
    for tally in tallies:
        hole = trimmed_hole(tally, cursors.get(tally.queue))
        if hole is not None:
            told.setdefault(tally.queue, str(hole))
        explained.append(
            replace(tally, failed=str(hole)) if hole is not None and (is_failure or tally.failed) else tally
        )
    notes = [f"trimmed while the job ran: {text}" for text in list(told.values())[:MOST_NOTES]]
    more = len(told) - MOST_NOTES
    return explained, [*notes, f"and {more:,} more queues were trimmed"] if more > 0 else notes


def trimmed_hole(tally: RangeTally, cursor: Cursor | None) -> Trimmed | None:
    """Return what the first hole of a queue is, if a trim made it."""
    if not tally.missing:
        return None
    first = tally.missing[0]
    return trimmed_since(MissingItems(tally.queue, [range(first.after + 1, first.through + 1)]), cursor)


def _note(cursor: Cursor) -> str:
    if cursor.position <= cursor.start:
        return f"queue {cursor.queue!r} has nothing left: all of it, up to {cursor.start}, was trimmed"
    return f"queue {cursor.queue!r} begins at {cursor.start + 1}: what is below was trimmed"


def _shown(seq: int | None) -> str:
    return "…" if seq is None else str(seq)
