"""A checkpoint found by time leaves out no message that arrived at or after it, whatever order messages came in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stream_sort import StreamSorter
from stream_sort.consume.resetter import Arrivals
from stream_sort.model.records import CLOCKS_DIFFER
from stream_sort.testing.clock import MovableClock


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[float, list[int]]]:
    """Puts of some seqs each, in any order, and how long after the one before each came."""
    seqs = draw(st.permutations(range(draw(st.integers(1, 30)))))
    puts: list[tuple[float, list[int]]] = []
    for seq in seqs:
        if puts and draw(st.booleans()):
            puts[-1][1].append(seq)
        else:
            puts.append((draw(st.sampled_from([0.0, 1.0, 30.0, 100.0, 1_000.0])), [seq]))
    return puts


@given(histories(), st.sampled_from([-1.0, 0.0, 0.5, CLOCKS_DIFFER]), st.integers(0, 40), st.data())
def test_every_message_that_arrived_at_or_after_a_time_lies_behind_the_checkpoint(
    puts: list[tuple[float, list[int]]], aside: float, skipped: int, data: st.DataObject
) -> None:
    clock = MovableClock()
    sorter = StreamSorter.in_memory(clock=clock)
    arrived: dict[int, float] = {}
    for pause, seqs in puts:
        clock.move(pause)
        arrived |= dict.fromkeys(seqs, clock())
        sorter.put_many([{"queue": "q", "seq": seq} for seq in seqs])
    sorter.skip("q", [skipped])
    time = data.draw(st.sampled_from(sorted(arrived.values()))) + aside
    cursor = sorter.stores.cursors.get("q")
    assert cursor is not None
    checkpoint = Arrivals(sorter.stores.items).checkpoint(cursor, time)
    assert cursor.start <= checkpoint <= cursor.position
    due = [seq for seq, at in arrived.items() if at >= time and seq <= cursor.position]
    assert all(seq > checkpoint for seq in due)
    # With so few messages it is exact: what comes next is the first that arrived in time.
    if checkpoint < cursor.position:
        following = arrived.get(checkpoint + 1)
        assert following is None or following >= time
