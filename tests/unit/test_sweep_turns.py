"""Sweeps whose time does not suffice for all queues: each has its turn, whatever the others need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort import StreamSorter, Sweeper
from stream_sort.testing.clock import MovableClock
from tests.unit.queues import message

if TYPE_CHECKING:
    from collections.abc import Callable


def in_time_for(queues: int) -> Callable[[], float]:
    """Time for so many queues, and none for more."""
    asked = iter(range(1, 10_000))
    return lambda: 100.0 if next(asked) <= queues + 1 else 40.0


@pytest.mark.parametrize("number", [5, 12, 20, 30, 60])
@pytest.mark.parametrize("seconds", [60, 300])
def test_sweeps_at_the_same_second_of_each_minute_begin_at_every_queue_in_time(number: int, seconds: int) -> None:
    clock = MovableClock(1_700_000_017.4)
    sorter = StreamSorter.in_memory(clock=clock, in_flight=1)
    sorter.put_many(message(1, f"q{one:02}") for one in range(number))
    visited: set[str] = set()
    visit = Sweeper.visit.run

    class Noting(Sweeper):
        class visit(Sweeper.visit):  # noqa: N801  # the attribute's name
            def run(self, is_short: Callable[[], bool]) -> None:
                visited.add(self.queue)
                visit(self, is_short)

    for _ in range(20 * number):
        clock.move(seconds)
        Noting(sorter).sweep(time_left=in_time_for(1))
    assert len(visited) == number
