"""Whether what was asked for by seq is there at all: before a plan is made, and of the plan. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.core.records import Cursor
    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.jobs.plan import Plan
    from stream_sort.replay.selection import Selection

MOST_NOTES = 5


def trimmed_notes(selection: Selection, cursors: Iterable[Cursor]) -> tuple[str, ...]:
    """Where queues begin that were trimmed; InvalidInput if a seq that was asked for is among what was."""
    notes: list[str] = []
    more = 0
    for cursor in cursors:
        if cursor.start < cursor.first_seq:
            continue
        _check_asked(selection, cursor)
        if selection.from_seq is not None:
            continue
        if len(notes) < MOST_NOTES:
            notes.append(_note(cursor))
        else:
            more += 1
    return (*notes, f"and {more:,} more queues were trimmed") if more else tuple(notes)


def shortfalls(options: BackfillOptions, plan: Plan) -> dict[str, str]:
    """What of the seqs that were asked for the plan does not reach, by queue.

    Tables know where a queue begins; of an export or an archive nobody can tell whether there was more.
    """
    wanted, of_table = options.selection, options.source.kind == "table"
    if wanted.by_time and not of_table:
        return {}
    starts, ends = plan.starts(), plan.ends()
    short: dict[str, str] = {}
    for queue in sorted({*ends, *(wanted.queues or ())}):
        if queue not in ends:
            short[queue] = f"has nothing from {_shown(wanted.from_seq)} to {_shown(wanted.to_seq)}"
        elif not of_table and wanted.from_seq is not None and starts[queue] >= wanted.from_seq:
            short[queue] = f"begins at {starts[queue] + 1}, behind --from-seq {wanted.from_seq}"
        elif wanted.to_seq is not None and ends[queue] < wanted.to_seq:
            short[queue] = f"ends at {ends[queue]}, before --to-seq {wanted.to_seq}"
    return short


def _check_asked(selection: Selection, cursor: Cursor) -> None:
    first, last = selection.from_seq, selection.to_seq
    ends_below = last is not None and last <= cursor.start
    if not ends_below and (first is None or first > cursor.start):
        return
    lowest = cursor.first_seq if first is None else max(first, cursor.first_seq)
    if last is not None and last < lowest:
        return
    highest = min(cursor.start, cursor.start if last is None else last)
    whole = "; all of it was trimmed" if ends_below else f"; what is left begins at {cursor.start + 1}"
    raise InvalidInput(
        f"seqs {lowest} to {highest} of queue {cursor.queue!r} were trimmed from the table{whole}. "
        "Read what was trimmed from the archive (--archive), if there is one, or ask for less"
    )


def _note(cursor: Cursor) -> str:
    if cursor.position <= cursor.start:
        return f"queue {cursor.queue!r} has nothing left: all of it, up to {cursor.start}, was trimmed"
    return f"queue {cursor.queue!r} begins at {cursor.start + 1}: what is below was trimmed"


def _shown(seq: int | None) -> str:
    return "…" if seq is None else str(seq)
