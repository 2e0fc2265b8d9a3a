from __future__ import annotations

import pytest

from stream_sort.errors import InvalidInput
from stream_sort.model.records import Cursor
from stream_sort.replay.backfill.bounds import (
    MOST_NOTES,
    ended_before,
    shortfalls,
    trimmed_meanwhile,
    trimmed_notes,
)
from stream_sort.replay.backfill.options import BackfillOptions, SinkOptions
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.engine.source import Source
from stream_sort.replay.origins.export.order import EXAMPLES, Doubles, SlotsOnce
from stream_sort.replay.ranges import Part, Range, Selection

TRIMMED = Cursor("a", position=49, first_seq=5, floor=19)


@pytest.mark.parametrize(
    ("first", "last"), [(None, None), (20, None), (20, 30), (None, 20), (49, 60), (0, 4), (None, 4)]
)
def test_what_is_above_the_trimmed_or_below_the_first_seq_may_be_asked_for(first: int | None, last: int | None) -> None:
    notes = trimmed_notes(Selection(from_seq=first, to_seq=last), [TRIMMED])
    assert notes == (("queue 'a' begins at 20: what is below was trimmed",) if first is None else ())


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        (0, None, "seqs 5 to 19 of queue 'a' were trimmed from the table; what is left begins at 20"),
        (19, 30, "seqs 19 to 19 of queue 'a'"),
        (None, 19, "seqs 5 to 19 of queue 'a' were trimmed from the table; all of it was trimmed"),
        (7, 12, "seqs 7 to 12 of queue 'a' were trimmed from the table; all of it was trimmed"),
    ],
)
def test_what_was_trimmed_is_named(first: int | None, last: int | None, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        trimmed_notes(Selection(from_seq=first, to_seq=last), [TRIMMED])


def test_queues_that_were_never_trimmed_are_not_mentioned_and_many_are_counted() -> None:
    assert trimmed_notes(Selection(), [Cursor("a", 9, 0), Cursor("b", 9, 5)]) == ()
    gone = Cursor("a", 19, 0, floor=19)
    assert trimmed_notes(Selection(), [gone]) == ("queue 'a' has nothing left: all of it, up to 19, was trimmed",)
    notes = trimmed_notes(Selection(), [TRIMMED] * (MOST_NOTES + 2))
    assert (len(notes), notes[-1]) == (MOST_NOTES + 1, "and 2 more queues were trimmed")


@pytest.mark.parametrize(("by_time", "short"), [(False, {"a": "begins at 5, behind --from-seq 0"}), (True, {})])
def test_times_narrow_an_export_so_that_its_bounds_say_nothing(*, by_time: bool, short: dict[str, str]) -> None:
    selection = Selection(from_seq=0, since=5.0 if by_time else None)
    options = BackfillOptions(Source(export="e"), SinkOptions("jsonl", out="o"), selection)
    assert shortfalls(options, JobPlan({}, (Part(0, (Range("a", 4, 9),)),), 1.0)) == short


def test_whoever_resumes_counts_a_conflict_once_though_it_was_read_ahead() -> None:
    slots = SlotsOnce([])
    slots.doubles.conflict("a", 3)
    slots.doubles.conflict("a", 7)
    start = RangeTally("a", -1, 9, -1)
    first = RangeTally("a", -1, 9, 5).with_conflicts(start, slots)
    again = SlotsOnce([])
    again.doubles.conflict("a", 7)
    last = RangeTally("a", -1, 9, 9).with_conflicts(first, again)
    assert (first.conflicts, last.conflicts, last.conflicting) == (1, 2, (3, 7))


def test_more_conflicts_than_are_named_are_all_counted() -> None:
    slots = SlotsOnce([])
    slots.doubles = Doubles()
    for seq in range(EXAMPLES + 5):
        slots.doubles.conflict("a", seq)
    tally = RangeTally("a", -1, 99, 99).with_conflicts(RangeTally("a", -1, 99, -1), slots)
    assert (tally.conflicts, len(tally.conflicting)) == (EXAMPLES + 5, EXAMPLES)


@pytest.mark.parametrize(
    ("first", "last", "ended"), [(10, 20, {"b": 4}), (None, 20, {"b": 4}), (10, None, {}), (None, 3, {})]
)
def test_queues_without_a_range_ended_before_it_or_have_all_of_it(
    first: int | None, last: int | None, ended: dict[str, int]
) -> None:
    selection = Selection(from_seq=first, to_seq=last)
    assert ended_before(selection, [Range("a", 9, 20)], {"a": 49, "b": 4}) == ended


def test_holes_that_a_trim_made_are_told_from_others_and_many_are_counted() -> None:
    holed = [
        RangeTally(f"q{n}", -1, 19, 4, missing=(Range(f"q{n}", 4, 9),), failed="hole") for n in range(MOST_NOTES + 2)
    ]
    cursors: dict[str, Cursor | None] = {one.queue: Cursor(one.queue, 19, 0, floor=9) for one in holed}
    told, notes = trimmed_meanwhile(holed, cursors)
    assert all("is trimmed up to seq 9" in one.failed for one in told)
    assert (len(notes), notes[-1]) == (MOST_NOTES + 1, "and 2 more queues were trimmed")
    low: dict[str, Cursor | None] = {one.queue: Cursor(one.queue, 19, 0, floor=4) for one in holed}
    assert trimmed_meanwhile(holed, low) == (holed, [])
    assert trimmed_meanwhile(holed, {}) == (holed, [])


def test_a_hole_that_may_be_skipped_is_none_where_a_trim_made_it_and_a_consumer_is_to_be_joined() -> None:
    skipped = RangeTally("a", -1, 9, 9, rows=5, missing=(Range("a", 1, 6),))
    cursors = {"a": Cursor("a", 20, 0, floor=4)}
    assert trimmed_meanwhile([skipped], cursors)[0] == [skipped]
    (told,), _ = trimmed_meanwhile([skipped], cursors, is_failure=True)
    assert "is trimmed up to seq 4" in told.failed
    assert trimmed_meanwhile([skipped], {"a": Cursor("a", 20, 0, floor=1)}, is_failure=True) == ([skipped], [])
