"""Whether a range came out whole."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort import StreamSorter
from stream_sort.errors import MissingItems, StoreError
from stream_sort.replay.completeness import Completeness
from stream_sort.replay.ranges import Range
from stream_sort.replay.slots import SLOTS


def slots(*seqs: int, skipped: frozenset[int] = frozenset()) -> pa.RecordBatch:
    rows = [
        {
            "queue": "a",
            "seq": seq,
            "item": None if seq in skipped else "{}",
            "skipped": "gone" if seq in skipped else None,
        }
        for seq in seqs
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SLOTS)


def test_a_whole_range_passes_and_its_tombstones_are_counted() -> None:
    watch = Completeness(Range("a", 0, 5))
    assert [batch.num_rows for batch in watch.watched(iter([slots(1, 2), slots(3, 4, 5, skipped=frozenset({4}))]))] == [
        2,
        3,
    ]
    assert (watch.rows, watch.tombstones, watch.holes) == (5, 1, [])


@pytest.mark.parametrize(
    ("batches", "missing"),
    [
        ([(2, 3, 4)], range(1, 2)),
        ([(1, 2, 4)], range(3, 4)),
        ([(1,), (3, 4)], range(2, 3)),
        ([(1, 2)], range(3, 5)),
        ([], range(1, 5)),
    ],
)
def test_a_hole_anywhere_is_named(batches: list[tuple[int, ...]], missing: range) -> None:
    with pytest.raises(MissingItems) as caught:
        list(Completeness(Range("a", 0, 4)).watched(slots(*seqs) for seqs in batches))
    assert caught.value.missing == [missing]
    noted = Completeness(Range("a", 0, 4), may_have_holes=True)
    list(noted.watched(slots(*seqs) for seqs in batches))
    assert noted.holes == [Range("a", missing.start - 1, missing.stop - 1)]


@pytest.mark.parametrize(
    "batches", [[(1, 1, 3, 4)], [(2, 1, 3, 4)], [(1, 2), (2, 3, 4)], [(1, 2, 3, 4, 5)], [(1, 3, 2, 4)]]
)
def test_what_comes_twice_out_of_order_or_from_elsewhere_is_refused(batches: list[tuple[int, ...]]) -> None:
    with pytest.raises(StoreError, match="out of order"):
        list(Completeness(Range("a", 0, 4), may_have_holes=True).watched(slots(*seqs) for seqs in batches))


@given(st.sets(st.integers(0, 30), min_size=1), st.integers(1, 7))
def test_its_holes_are_the_gaps_of_the_ordering_core(stored: set[int], size: int) -> None:
    sorter = StreamSorter.in_memory()
    sorter.put_many([{"queue": "a", "seq": seq} for seq in stored])
    seqs = sorted(stored)
    watch = Completeness(Range("a", -1, max(stored)), may_have_holes=True)
    list(watch.watched(slots(*seqs[at : at + size]) for at in range(0, len(seqs), size)))
    assert [range(hole.after + 1, hole.through + 1) for hole in watch.holes] == sorter.gaps("a")
