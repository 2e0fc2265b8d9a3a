"""put_many beside queues whose cursor rows do not answer: each call for them takes its whole read timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import StoreUnavailable, StreamSorter, Sweeper
from tests.unit.queues import message
from tests.unit.test_put_many_in_time import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

READ_TIMEOUT = 5.0


class Rows:
    """Cursor rows of which some hang; all queues are known in this process."""

    def __init__(self, hanging: int) -> None:
        self.watch = Stopwatch()
        self.hanging = {f"bad{number}" for number in range(hanging)}
        self.sorter = StreamSorter.in_memory(in_flight=1)
        self.sorter.put_many(message(0, queue) for queue in [*sorted(self.hanging), "good"])
        self.healthy = {name: getattr(self.sorter.stores.cursors, name) for name in ("get", "move", "set_waiting")}
        for name, call in self.healthy.items():
            self._set(name, self._timing_out(call))

    def recover(self, *names: str) -> None:
        for name in names or self.healthy:
            self._set(name, self.healthy[name])

    def put(self, seq: int) -> Any:
        self.watch.now = 0.0
        given = [message(seq, queue) for queue in [*sorted(self.hanging), "good"]]
        return self.sorter.put_many(given, time_left=self.watch.left)

    def _set(self, name: str, call: Callable[..., Any]) -> None:
        setattr(self.sorter.stores.cursors, name, call)

    def _timing_out(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def answer(first: Any, *rest: Any) -> Any:
            if (first if isinstance(first, str) else first.queue) in self.hanging:
                self.watch.sleep(READ_TIMEOUT)
                raise StoreUnavailable("no answer")
            return call(first, *rest)

        return answer


@pytest.mark.parametrize("hanging", [1, 2, 3, 8, 40])
def test_i7_rows_that_hang_do_not_keep_put_many_past_the_time_of_its_caller(hanging: int) -> None:
    rows = Rows(hanging)
    result = rows.put(1)
    assert rows.watch.left() > 0
    assert result.accepted == hanging + 1
    assert rows.hanging <= dict(result.stalled).keys() | set(result.unreleased)
    rows.recover()
    again = rows.put(1)
    assert (len(again.duplicates), again.stalled, again.unreleased) == (hanging + 1, [], [])
    assert {rows.sorter.position(queue) for queue in [*rows.hanging, "good"]} == {1}


def test_a_healthy_queue_comes_before_rows_that_hung_at_earlier_calls() -> None:
    rows = Rows(8)
    assert "good" in dict(rows.put(1).stalled), "three of eight hung, and there was no time for a fourth"
    assert "good" in dict(rows.put(1).stalled)
    assert "good" not in dict(rows.put(1).stalled)
    assert rows.sorter.position("good") == 1


def test_a_queue_that_hung_is_released_by_the_sweep_where_its_row_could_be_marked() -> None:
    rows = Rows(1)
    rows.recover("get", "set_waiting")
    assert rows.put(1).unreleased == ["bad0"]
    rows.recover()
    Sweeper(rows.sorter).sweep()
    assert rows.sorter.position("bad0") == 1
