"""Seqs that were skipped beyond all that is stored: nobody waits for what is missing before them."""

from __future__ import annotations

import pytest

from stream_sort import StreamSorter
from stream_sort.insight.history import History, ReportGap, TimedSeq
from tests.unit.queues import message


@pytest.fixture
def sorter() -> StreamSorter:
    sorter = StreamSorter.in_memory(gap_policy="skip after 30s")
    sorter.put_many(message(seq) for seq in range(4))
    sorter.skip("q", 10)
    return sorter


def test_nothing_waits_before_a_skip_in_advance(sorter: StreamSorter) -> None:
    state = sorter.explain("q")
    assert (state.waiting, state.gaps, state.stored_beyond, state.waiting_since) == (False, [], 0, None)
    assert (state.skipped, state.skipped_ahead, state.highest_stored) == ([10], [10], 10)
    assert state.remedy == "nothing waits"
    assert sorter.gaps("q") == [range(4, 10)]


def test_only_what_a_message_waits_for_is_a_gap(sorter: StreamSorter) -> None:
    sorter.put(message(6))
    state = sorter.explain("q")
    assert (state.waiting, state.gaps, state.stored_beyond, state.skipped_ahead) == (True, [range(4, 6)], 1, [10])
    sorter.put(message(12))
    state = sorter.explain("q")
    assert (state.gaps, state.stored_beyond) == ([range(4, 6), range(7, 10), range(11, 12)], 3)
    assert state.skipped_ahead == []


def test_a_skip_in_advance_is_no_gap_where_more_is_stored_than_is_looked_at(sorter: StreamSorter) -> None:
    sorter.skip("q", range(10, 40, 2))
    state = sorter.explain("q", limit=3)
    assert (state.waiting, state.stored_beyond, state.skipped_ahead) == (False, 0, [10, 12, 14])
    assert not state.complete


def test_no_gap_is_open_in_a_chart_before_a_skip_in_advance() -> None:
    stored = (TimedSeq(0, 1.0), TimedSeq(10, 2.0, skipped=True))
    assert [gap for gap in History("q", 0, stored).gaps if gap.end is None] == []
    seen = History("q", 0, (stored[0], TimedSeq(5, 3.0), stored[1])).gaps
    assert [gap for gap in seen if gap.end is None] == [ReportGap(1, 4, 4, 3.0, None)]
