"""What a backfill has done, or would do and cost, as a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.replay.backfill.bounds import shortfalls
from stream_sort.replay.backfill.tally import NOT_DONE, RangeTally, added_up
from stream_sort.replay.engine.report import SOME, JobReport, some_notes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.engine.plan import JobPlan, ReadEstimate

NOTHING_DONE = "dry run: nothing was read or written"
COLUMNS = ("queue", "rows", "tombstones", "missing", "gaps", "first", "last", "problem")


def is_complete(options: BackfillOptions, tallies: Sequence[RangeTally]) -> bool:
    """Return True if every seq came, and one message only; where gaps may be skipped, every one that is there."""
    return is_settled(options, tallies) and not any(one.conflicts for one in tallies)


def is_settled(options: BackfillOptions, tallies: Sequence[RangeTally]) -> bool:
    """Return True if another run could do no better."""
    if options.on_gap == "skip":
        return all(one.is_done for one in tallies)
    return all(one.is_whole for one in tallies)


def outcome(
    options: BackfillOptions,
    tallies: Sequence[RangeTally],
    *,
    short: Mapping[str, str] | None = None,
    seconds: float = 0.0,
    notes: Sequence[str] = (),
) -> JobReport:
    """Return the report on a backfill: queues that miss most first, then those that failed.

    `short` says of queues why they are not all that was asked for.
    """
    short = short or {}
    found = added_up(tallies)
    notes = [*notes, *short_notes(short), *_conflict_notes(found)]
    if options.selection.by_time and not any(one.rows for one in found):
        notes.append("nothing was replayed: no message arrived in the time that was asked for")
    absent = sorted(short.keys() - {one.queue for one in found})
    queues = [
        replace(one, failed=_problem(one, short)) for one in found + [RangeTally(queue, -1, -1, -1) for queue in absent]
    ]
    queues.sort(key=lambda one: (-one.lost, one.failed in {"", NOT_DONE}, not one.failed))
    lost = sum(one.lost for one in queues)
    word = "skipped" if options.on_gap == "skip" else "found"
    seqs = "missing seq was" if lost == 1 else "missing seqs were"
    told = (*notes, f"gaps: {lost:,} {seqs} {word}") if lost else tuple(notes)
    return JobReport(
        job="backfill",
        complete=is_complete(options, tallies) and not short,
        columns=COLUMNS
        if lost or any(one.failed for one in queues)
        else ("queue", "rows", "tombstones", *COLUMNS[5:7]),
        queues=[_row(one) for one in queues],
        totals={
            "queues": len(queues),
            "rows": sum(one.rows for one in queues),
            "tombstones": sum(one.tombstones for one in queues),
            "missing": lost,
        },
        seconds=seconds,
        notes=told,
        facts={"source": str(options.source), "sink": str(options.sink), "on_gap": options.on_gap},
    )


def forecast(options: BackfillOptions, plan: JobPlan, cost: ReadEstimate | None = None) -> JobReport:
    """Return the report on a backfill that was not run: its plan and, unless nothing is paid for reading, its cost."""
    starts, ends = plan.starts(), plan.ends()
    rows = dict.fromkeys(sorted(ends), 0)
    for one in plan.ranges():
        rows[one.queue] += len(one)
    longest = sorted(rows, key=lambda queue: -rows[queue])
    queues = [{"queue": one, "rows": rows[one], "first": starts[one] + 1, "last": ends[one]} for one in longest]
    notes = [*plan.notes, *short_notes(shortfalls(options, plan)), NOTHING_DONE]
    totals = {"queues": len(queues), "rows": plan.rows, "parts": len(plan.parts)}
    units = None if cost is None or cost.read_units is None else round(cost.read_units, 1)
    source, sink = str(options.source), str(options.sink)
    return JobReport(
        job="backfill",
        complete=None,
        columns=("queue", "rows", "first", "last"),
        queues=queues,
        totals={**totals, "rows": f"{plan.rows:,} (tombstones included)"},
        notes=(*([] if cost is None else [_cost_text(cost, consistent=options.consistent)]), *notes),
        head=(f"from {source}", f"as {sink}"),
        wire={
            "dry_run": True,
            "totals": {**totals, "read_units": units},
            "source": source,
            "sink": sink,
            "notes": notes,
            "queues": queues,
        },
    )


def hole_text(options: BackfillOptions, tallies: Sequence[RangeTally], *, is_trimmed: bool) -> str:
    """Return what a hole asks for before the job can go on; nothing where there is none."""
    if not any(one.missing for one in tallies):
        return ""
    may_come = options.source.kind == "table" and not is_trimmed
    mended = "put what is missing again, or " if may_come else ""
    reported = "--on-gap report to do all the rest, or " if options.on_gap == "fail" else ""
    return f"{mended}add {reported}--on-gap skip to do without it; then "


def _problem(tally: RangeTally, short: Mapping[str, str]) -> str:
    if not tally.failed and tally.conflicts:
        return f"conflicts: {tally.conflicts:,}, at seq {', '.join(map(str, tally.conflicting[:SOME]))}"
    return tally.failed or short.get(tally.queue, "")


def _conflict_notes(tallies: Sequence[RangeTally]) -> list[str]:
    count = sum(one.conflicts for one in tallies)
    if not count:
        return []
    places = [f"queue {one.queue!r}, seq {seq}" for one in tallies for seq in one.conflicting]
    told = "; ".join(places[:SOME])
    return [f"conflicts: {count:,} slots differed from one in their place; what arrived first was taken: {told}"]


def short_notes(short: Mapping[str, str]) -> list[str]:
    """Return what is said of queues that are not all that was asked for."""
    told = [f"short: queue {queue!r} {why}" for queue, why in sorted(short.items())]
    stays = "the plan is made and stays as it is: for what comes later, take another --out or --checkpoint"
    return [*some_notes(told, "{} more queues are short of the range"), *([stays] if short else [])]


def _row(tally: RangeTally) -> dict[str, Any]:
    return {
        "queue": tally.queue,
        "rows": tally.rows,
        "tombstones": tally.tombstones,
        "outside": tally.outside,
        "missing": tally.lost,
        "conflicts": tally.conflicts,
        "gaps": [[hole.after + 1, hole.through] for hole in tally.missing],
        "first": tally.after + 1,
        "last": tally.through,
        "problem": tally.failed or None,
    }


def _cost_text(cost: ReadEstimate, *, consistent: bool) -> str:
    if cost.read_units is None or cost.item_bytes is None:
        return "cost: not known; DynamoDB has not counted the table yet (it does every six hours)"
    how = "strongly" if consistent else "eventually"
    return f"cost: about {cost.read_units:,.0f} read units ({how} consistent, {cost.item_bytes:,.0f} bytes an item)"
