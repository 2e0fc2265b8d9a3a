"""However the same seqs are spread over slots, runs, gaps and ranges are the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stream_sort.model.gaps import joined, runs_of
from stream_sort.model.ordering import gaps_between, run_end, run_through
from stream_sort.model.slots import Entry, Slot, expand

LENGTHS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=12)


def slots_of(lengths: list[tuple[int, int]]) -> list[Slot]:
    """Slots that each begin so many seqs behind the one before, and fill so many."""
    slots, first = [], 0
    for missing, length in lengths:
        slots.append(Slot("q", [Entry(seq) for seq in range(first + missing, first + missing + length)]))
        first = slots[-1].last + 1
    return slots


@given(LENGTHS, st.integers(-1, 40), st.integers(-1, 40))
def test_slots_and_single_seqs_say_the_same(lengths: list[tuple[int, int]], after: int, through: int) -> None:
    slots = slots_of(lengths)
    seqs = [entry.seq for entry in expand(slots)]
    filled, single = [slot.seqs for slot in slots], [range(seq, seq + 1) for seq in seqs]
    assert [entry.seq for entry in expand(slots, after, through)] == [seq for seq in seqs if after < seq <= through]
    assert run_through(after, filled) == run_end(after, set(seqs), 99)
    assert list(gaps_between(after, filled)) == list(gaps_between(after, [one for one in single if one.start > after]))
    assert joined(filled) == runs_of(seqs)
    assert [one.stop < other.start for one, other in pairwise(joined(filled))] == [True] * (len(joined(filled)) - 1)


@given(LENGTHS, st.integers(1, 10))
def test_a_capped_run_is_the_shortest_whole_number_of_slots_that_reaches_the_cap(
    lengths: list[tuple[int, int]], limit: int
) -> None:
    filled = [slot.seqs for slot in slots_of(lengths)]
    end, whole = run_through(-1, filled, limit), run_through(-1, filled)
    ends = [-1, *(seqs.stop - 1 for seqs in filled if seqs.stop - 1 <= whole)]
    assert end == next((one for one in ends if one + 1 >= limit), whole)
