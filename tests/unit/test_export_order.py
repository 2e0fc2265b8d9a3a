"""Slots of an export find their places, and of two in one place the right one counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_sort.replay.origins.export.order import PLACED, Doubles, Places, without_doubles
from stream_sort.replay.ranges import Part, Range, cut_parts
from stream_sort.replay.slots import SLOTS

if TYPE_CHECKING:
    import random

Row = tuple[str, int, str | None, int | None, str | None]
QUEUES = st.sampled_from(["a", "b", "é"])
ROWS = st.tuples(
    QUEUES, st.integers(-3, 30), st.sampled_from(["x", "y", None]), st.sampled_from([1, 2, None]), st.none()
)


def batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SLOTS.names, row, strict=False)) for row in rows], schema=SLOTS)


def arrival(row: Row) -> tuple[Any, ...]:
    return row[3] is None, row[3] or 0, row[2] or ""


@given(st.lists(ROWS, max_size=60), st.integers(1, 12), st.integers(1, 7), st.randoms())
@settings(max_examples=200, deadline=None)
def test_each_place_holds_the_slot_that_arrived_first_and_places_are_in_order(
    rows: list[Row], rows_per_part: int, rows_a_batch: int, chance: random.Random
) -> None:
    parts = cut_parts([Range("a", -2, 20), Range("b", 0, 30)], rows_per_part)
    placed = Places(parts).placed(batch(rows)).to_pylist()
    wanted = {
        (queue, seq) for queue, seq, *_ in rows if (queue == "a" and -2 < seq <= 20) or (queue == "b" and 0 < seq <= 30)
    }
    assert {(one["queue"], one["seq"]) for one in placed} == wanted
    out: list[Row] = []
    doubles = Doubles()
    for index, part in enumerate(parts):
        own = [one for one in placed if one["part"] == index]
        assert all(
            any(held.queue == one["queue"] and held.after < one["seq"] <= held.through for held in part.ranges)
            for one in own
        )
        chance.shuffle(own)
        own.sort(key=lambda one: one["place"])
        batches = [
            pa.RecordBatch.from_pylist(own[start : start + rows_a_batch], schema=PLACED)
            for start in range(0, len(own), rows_a_batch)
        ]
        out += [tuple(row.values())[:5] for found in without_doubles(batches, doubles) for row in found.to_pylist()]
    assert [row[:2] for row in out] == sorted(wanted)
    by_place = {place: [row for row in rows if row[:2] == place] for place in wanted}
    assert out == [min(by_place[place], key=arrival) for place in sorted(wanted)]
    again = {place: sum(row[2] == min(held, key=arrival)[2] for row in held) - 1 for place, held in by_place.items()}
    if all(len(held) <= 2 for held in by_place.values()):
        assert doubles.duplicates == sum(again.values())
        assert doubles.conflicts == sum(len(held) for held in by_place.values()) - len(wanted) - sum(again.values())


def test_a_slot_between_two_ranges_belongs_nowhere() -> None:
    parts = [Part(0, (Range("a", -1, 3),)), Part(1, (Range("a", 5, 9),))]
    rows: list[Row] = [("a", seq, "x", None, None) for seq in range(12)]
    placed = Places(parts).placed(batch(rows))
    assert placed["seq"].to_pylist() == [0, 1, 2, 3, 6, 7, 8, 9]
    assert placed["part"].to_pylist() == [0] * 4 + [1] * 4
    assert placed["place"].to_pylist() == [0, 1, 2, 3] * 2


def test_a_tombstone_and_a_message_in_one_place_are_a_conflict() -> None:
    rows: list[Row] = [("a", 0, "x", 2, None), ("a", 0, None, 1, "given up")]
    placed = Places([Part(0, (Range("a", -1, 0),))]).placed(batch(rows))
    doubles = Doubles()
    (kept,) = without_doubles([placed], doubles)
    assert kept["skipped"].to_pylist() == ["given up"]
    assert (doubles.duplicates, doubles.conflicts, doubles.examples) == (0, 1, [("a", 0)])
