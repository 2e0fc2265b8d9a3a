from __future__ import annotations

import pytest

from stream_sort.insight.history import History, ReportGap, TimedSeq, merged


def history(*arrivals: tuple[int, float], position: int, skipped: tuple[int, ...] = ()) -> History:
    slots = [TimedSeq(seq, at, seq in skipped) for seq, at in arrivals]
    return History("q", position, tuple(sorted(slots)))


def test_a_message_is_released_when_it_and_all_before_it_have_arrived() -> None:
    seen = history((0, 1.0), (1, 5.0), (2, 2.0), (3, 6.0), position=3)
    assert [(slot.seq, slot.at) for slot in seen.released] == [(0, 1.0), (1, 5.0), (2, 5.0), (3, 6.0)]
    assert not seen.waiting


def test_what_lies_beyond_the_position_is_not_released() -> None:
    seen = history((0, 1.0), (2, 2.0), position=0)
    assert [slot.seq for slot in seen.released] == [0]
    assert [slot.seq for slot in seen.waiting] == [2]


def test_messages_in_order_leave_no_gap() -> None:
    assert not history((0, 1.0), (1, 1.0), (2, 3.0), position=2).gaps


def test_a_gap_lasts_from_the_first_later_message_to_its_own_last_one() -> None:
    seen = history((0, 1.0), (1, 7.0), (2, 9.0), (3, 4.0), (4, 5.0), position=4)
    assert seen.gaps == [ReportGap(1, 2, 2, 4.0, 9.0)]


def test_a_gap_that_still_is_there_has_no_end() -> None:
    seen = history((0, 1.0), (3, 6.0), (4, 5.0), (6, 8.0), position=0)
    assert seen.gaps == [ReportGap(1, 2, 2, 5.0, None), ReportGap(3, 3, 1, 5.0, 6.0), ReportGap(5, 5, 1, 8.0, None)]


def test_a_skipped_gap_is_told_apart_from_one_that_was_filled() -> None:
    seen = history((0, 1.0), (1, 6.0), (2, 6.0), (3, 2.0), position=3, skipped=(1,))
    assert seen.gaps == [ReportGap(1, 1, 1, 2.0, 6.0, skipped=True), ReportGap(2, 2, 1, 2.0, 6.0)]


def test_a_queue_that_has_released_nothing_waits_for_its_first_seqs() -> None:
    assert history((2, 3.0), position=-1).gaps == [ReportGap(0, 1, 2, 3.0, None)]


@pytest.mark.parametrize(("apart", "count"), [(0.0, 2), (1.0, 1)])
def test_gaps_close_together_are_told_as_one(apart: float, count: int) -> None:
    assert len(merged([ReportGap(1, 1, 1, 2.0, 4.0), ReportGap(5, 6, 2, 5.0, 6.0)], apart)) == count


def test_merged_gaps_keep_all_seqs_and_the_whole_time() -> None:
    assert merged([ReportGap(5, 6, 2, 3.0, 4.0), ReportGap(1, 1, 1, 2.0, 9.0)], 0.0) == [ReportGap(1, 6, 3, 2.0, 9.0)]
    assert merged([ReportGap(1, 1, 1, 2.0, None), ReportGap(3, 3, 1, 5.0, None)], 0.0) == [
        ReportGap(1, 3, 2, 2.0, None)
    ]


def test_gaps_of_different_kinds_stay_apart() -> None:
    kinds = [ReportGap(1, 1, 1, 2.0, 4.0), ReportGap(2, 2, 1, 2.0, 4.0, skipped=True), ReportGap(3, 3, 1, 2.0, None)]
    assert merged(kinds, 9.0) == kinds
