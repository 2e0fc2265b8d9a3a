from __future__ import annotations

import pytest

from stream_sort import GapPolicy, InvalidInput
from stream_sort.model.ordering import gaps_between, run_end, run_through
from stream_sort.model.outcomes import Advance, PutResult


def runs(*seqs: int) -> list[range]:
    """Slots of one seq each."""
    return [range(seq, seq + 1) for seq in seqs]


def test_a_run_ends_before_the_first_missing_seq() -> None:
    assert run_end(4, {5, 6, 8}, 100) == 6
    assert run_through(4, runs(5, 6, 8)) == 6


def test_a_run_that_does_not_start_at_the_position_is_empty() -> None:
    assert run_end(4, {6, 7}, 100) == 4
    assert run_through(4, runs(6, 7)) == 4


def test_a_run_is_capped() -> None:
    assert run_end(-1, set(range(50)), 10) == 9


def test_gaps_lie_between_the_position_and_the_highest_seq() -> None:
    assert list(gaps_between(2, runs(5, 6, 9))) == [range(3, 5), range(7, 9)]
    assert list(gaps_between(2, runs(3, 4))) == []
    assert list(gaps_between(2, [])) == []


@pytest.mark.parametrize("seconds", [None, 0, 30, 1.5, 30 * 86400, 123456789.125, 1e-05, 1e10])
def test_a_policy_reads_back_from_its_text(seconds: float | None) -> None:
    policy = GapPolicy(seconds)
    assert "e" not in str(policy).removeprefix("skip after").removesuffix("seconds")
    assert GapPolicy.parse(str(policy)) == policy


@pytest.mark.parametrize("text", ["", "skip", "skip after", "skip after -1", "skip after nan seconds", "hold"])
def test_a_policy_in_other_words_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="must be 'wait' or 'skip after N seconds'"):
        GapPolicy.parse(text)


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), True, "3", pytest.param(10**400, id="huge")])
def test_a_policy_with_no_real_number_of_seconds_is_refused(after: float) -> None:
    with pytest.raises(InvalidInput):
        GapPolicy(after)


def test_advances_of_a_queue_join_without_counting_others_releases() -> None:
    result = PutResult()
    for advance in (Advance("q", 3, 3), Advance("q", 3, 5, 2), Advance("q", 8, 9, 1), Advance("r", 0, 1, 1)):
        result.join(advance)
    assert result.advances == [Advance("q", 3, 9, 3), Advance("r", 0, 1, 1)]
    assert result.released == 4
