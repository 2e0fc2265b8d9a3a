from __future__ import annotations

import pyarrow as pa
import pytest

from stream_sort.errors import StoreError
from stream_sort.replay.completeness import by_range, pieces
from stream_sort.replay.ranges import Part, Range
from tests.replayed import slots

PART = Part(3, (Range("a", -1, 4), Range("a", 9, 11), Range("b", -1, 1)))


def together(*batches: pa.RecordBatch) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def seqs(batches: list[pa.RecordBatch]) -> list[int]:
    return [seq for batch in batches for seq in batch.column("seq").to_pylist()]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_each_range_gets_its_own_slots_however_the_batches_are_cut(size: int) -> None:
    whole = together(slots("a", range(5)), slots("a", [10, 11]), slots("b", [0, 1]))
    found = [(wanted, seqs(list(own))) for wanted, own in by_range(PART, pieces(iter([whole]), size))]
    assert found == [(PART.ranges[0], [0, 1, 2, 3, 4]), (PART.ranges[1], [10, 11]), (PART.ranges[2], [0, 1])]


def test_what_is_not_taken_of_a_range_is_passed_over() -> None:
    whole = together(slots("a", range(5)), slots("b", [0, 1]))
    found = {}
    for wanted, own in by_range(PART, pieces(iter([whole]), 2)):
        found[wanted] = seqs([next(own)]) if wanted == PART.ranges[0] else seqs(list(own))
    assert found == {PART.ranges[0]: [0, 1], PART.ranges[1]: [], PART.ranges[2]: [0, 1]}


def test_a_slot_that_has_no_place_in_the_part_is_an_error() -> None:
    ranges = by_range(PART, iter([slots("a", range(5)), slots("c", [7])]))
    with pytest.raises(StoreError, match=r"queue 'c', seq 7: came in part 3"):
        list(ranges)
