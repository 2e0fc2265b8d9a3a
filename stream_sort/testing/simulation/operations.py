"""What a simulated process is asked to do: one call of a service, with all its arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.testing.simulation.reader import CONTROL, consume, deliver
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.errors import StreamSortError
    from stream_sort.sorter import Sorter
    from stream_sort.testing.simulation.calls import Recorder


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a service; `messages` is what it carries into the tables."""

    name: str
    queue: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    argument: Any = None

    def __str__(self) -> str:
        told = [repr(self.queue)] if self.queue else []
        told += [str(list(self.messages))] if self.messages else []
        told += [repr(self.argument)] if self.argument is not None else []
        return f"{self.name}({', '.join(told)})"

    @property
    def queues(self) -> set[str]:
        """The queues that the operation names; empty for a sweep."""
        return {message["queue"] for message in self.messages} | ({self.queue} if self.queue else set())

    def run(self, sorter: Sorter, recorder: Recorder) -> Any:
        """Do it."""
        services: dict[str, Callable[[], Any]] = {
            "put": lambda: sorter.put(self.messages[0]),
            "put_many": lambda: sorter.put_many(self.messages, time_left=self._time_left(recorder)),
            "skip": lambda: sorter.skip(self.queue, self.argument, reason="by hand"),
            "open": lambda: sorter.open(self.queue, first_seq=self.argument),
            "set_policy": lambda: sorter.set_policy(self.queue, self.argument),
            "withdraw": lambda: sorter.withdraw(self.queue, self.argument, reason="by hand"),
            "advance": lambda: sorter.advance(self.queue),
            "trim": lambda: _trim(sorter, self.queue, self.argument),
            "consume": lambda: consume(sorter, self.queue, self.argument),
            "deliver": lambda: deliver(sorter, recorder.clock, self.queue, self.argument),
            "sweep": lambda: _sweeper(sorter, self.argument).sweep(),
            "sweep_all": lambda: _sweeper(sorter, self.argument).sweep_all(),
            "broken_sweep": lambda: _sweeper(_with_a_bug(sorter, self.queue), None).sweep_all(),
        }
        return services[self.name]()

    def _time_left(self, recorder: Recorder) -> Callable[[], float] | None:
        """How long a put_many has by the recorded clock, if its argument says so."""
        if self.argument is None:
            return None
        end = recorder.clock() + self.argument
        return lambda: end - recorder.clock()


def _trim(sorter: Sorter, queue: str, through: int | None) -> int:
    """Trim a queue up to a seq, or all that is released."""
    return sorter.trim(queue, sorter.position(queue) if through is None else through, control_table=CONTROL)


class SimulatedBug(Exception):
    """An error that no code of ours foresees."""


class _BrokenItems:
    """An items table whose every call for one queue meets a bug."""

    def __init__(self, items: Any, queue: str) -> None:
        self._items = items
        self._queue = queue

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(subject: Any, *args: Any) -> Any:
            if getattr(subject, "queue", subject) == self._queue:
                raise SimulatedBug(method)
            return getattr(self._items, method)(subject, *args)

        return call


def _with_a_bug(sorter: Sorter, queue: str) -> Sorter:
    stores = sorter.stores
    return type(sorter)(replace(stores, items=_BrokenItems(stores.items, queue)), sorter.options, sorter.clock)


def _sweeper(sorter: Sorter, watched: str | None) -> Sweeper:
    """A sweeper; one that watches over consumers if a control table is named: by the index, as if queues were many."""
    if watched is None:
        return Sweeper(sorter)
    return Sweeper(sorter, lagging=LagWatch(sorter.stores.control(watched), sorter.stores.cursors, rows_a_look=1))


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation that raised."""

    error: StreamSortError

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


@dataclass(slots=True)
class Attempt:
    """One try at an operation: what it wrote and met, for judging what it says about itself.

    `moved` counts the seqs its own successful cursor moves released. `lost` are the queues whose cursor
    row was gone when it began, `starts` counts how often each queue had been given a start by then.
    """

    number: int
    operation: Operation
    lost: frozenset[str] = frozenset()
    starts: dict[str, int] = field(default_factory=dict)
    unavailable: int = 0
    repeated: int = 0
    moved: Counter[str] = field(default_factory=Counter)
