"""How ranges are cut into parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_sort.errors import SettingsError
from stream_sort.replay.ranges import ROWS_A_RANGE, Range, cut_parts, joined

RANGES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-50, 50), st.integers(0, 300)),
    max_size=12,
    unique_by=lambda one: one[0],
).map(lambda found: sorted(Range(queue, after, after + length) for queue, after, length in found))


@given(RANGES, st.integers(1, 120))
def test_parts_hold_every_seq_once_in_order_and_none_is_too_large(ranges: list[Range], most: int) -> None:
    parts = cut_parts(ranges, most)
    pieces = [piece for part in parts for piece in part.ranges]
    wanted = [(one.queue, seq) for one in ranges for seq in range(one.after + 1, one.through + 1)]
    assert [(one.queue, seq) for one in pieces for seq in range(one.after + 1, one.through + 1)] == wanted
    assert all(0 < part.rows <= most for part in parts)
    assert [part.number for part in parts] == list(range(len(parts)))


def test_one_queue_with_nearly_all_rows_makes_no_part_larger_than_the_others() -> None:
    ranges = [Range("big", -1, 899_999), *(Range(f"small-{n:04}", -1, 99) for n in range(1_000))]
    parts = cut_parts(sorted(ranges), 50_000)
    work = [part.rows + ROWS_A_RANGE * len(part.ranges) for part in parts]
    assert max(work) <= 50_000 + ROWS_A_RANGE
    assert [part.rows for part in parts[:18]] == [50_000] * 18
    assert len(parts) == 18 + 5


def test_short_queues_share_a_part() -> None:
    parts = cut_parts([Range(f"q{n}", 0, 10) for n in range(10)], 49)
    assert [part.rows for part in parts] == [40, 40, 20]


def test_many_short_queues_make_smaller_parts_because_each_takes_a_request() -> None:
    parts = cut_parts([Range(f"q{n:04}", 0, 1) for n in range(1_000)], 50_000)
    assert [part.rows for part in parts] == [332, 332, 332, 4]


def test_no_rows_make_no_parts() -> None:
    assert cut_parts([], 10) == []
    assert cut_parts([Range("a", 5, 5)], 10) == []


def test_parts_of_less_than_a_row_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least 1"):
        cut_parts([Range("a", 0, 5)], 0)


@given(RANGES, RANGES)
def test_joined_ranges_hold_the_same_seqs_and_touch_nowhere(one: list[Range], other: list[Range]) -> None:
    def seqs(ranges: list[Range]) -> set[tuple[str, int]]:
        return {(held.queue, seq) for held in ranges for seq in range(held.after + 1, held.through + 1)}

    whole = joined([*one, *other])
    assert seqs(whole) == seqs(one) | seqs(other)
    assert whole == sorted(whole)
    for before, after in pairwise(whole):
        assert before.queue != after.queue or before.through < after.after
