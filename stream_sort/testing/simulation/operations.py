"""The operations of simulated processes: each is one call of a service, with all its arguments."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.ports import Homes
from stream_sort.testing.simulation.consumers import CONTROL, read_some, run_consumer
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.errors import StreamSortError
    from stream_sort.sorter import Sorter
    from stream_sort.testing.simulation.calls import Recorder
from stream_sort.testing.simulation.consumers import ConsumerPlan


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of a service, or of a `consumer`; `messages` is what it carries into the tables.

    A consumer's are `process` with an event, `catch_up`, `redrive`, `discard` and `retire`; `introduce` is the cold
    start of a sweep whose stack's own consumer this is.
    """

    name: str
    queue: str = ""
    messages: tuple[dict[str, Any], ...] = ()
    argument: Any = None
    consumer: ConsumerPlan | None = None

    def __str__(self) -> str:
        if self.consumer is not None:
            return f"{self.consumer.terms.name}.{self.name}({self.queue!r}, {self._event_or_argument()})"
        shown = [repr(self.queue)] if self.queue else []
        shown += [str(list(self.messages))] if self.messages else []
        shown += [repr(self.argument)] if self.argument is not None else []
        return f"{self.name}({', '.join(shown)})"

    @property
    def queues(self) -> set[str]:
        """Return the queues that it names; empty for a sweep, and for an event, whose records name them."""
        return {message["queue"] for message in self.messages} | ({self.queue} if self.queue else set())

    def run(self, sorter: Sorter, recorder: Recorder) -> Any:
        """Do it."""
        if self.consumer is not None:
            return run_consumer(self.consumer, self, sorter, recorder)
        services: dict[str, Callable[[], Any]] = {
            "put": lambda: sorter.put(self.messages[0]),
            "put_many": lambda: sorter.put_many(self.messages, time_left=self._time_left(recorder)),
            "skip": lambda: sorter.skip(self.queue, self.argument, reason="by hand"),
            "open": lambda: sorter.open(self.queue, first_seq=self.argument),
            "set_policy": lambda: sorter.set_policy(self.queue, self.argument),
            "withdraw": lambda: sorter.withdraw(self.queue, self.argument, reason="by hand"),
            "advance": lambda: sorter.advance(self.queue),
            "trim": lambda: _trim(sorter, self.queue, self.argument),
            "consume": lambda: read_some(sorter, self.queue, self.argument),
            "sweep": lambda: _sweeper(sorter, self.argument).sweep(),
            "sweep_all": lambda: _sweeper(sorter, self.argument).sweep_all(),
            "broken_sweep": lambda: _sweeper(_with_a_bug(sorter, self.queue), None).sweep_all(),
        }
        return services[self.name]()

    def _time_left(self, recorder: Recorder) -> Callable[[], float] | None:
        """Return how long a put_many has by the recorded clock, if its argument says so."""
        if self.argument is None:
            return None
        end = recorder.clock() + self.argument
        return lambda: end - recorder.clock()

    def _event_or_argument(self) -> Any:
        """Show an event by the queues of its records."""
        if self.name != "process":
            return self.argument
        return " ".join(
            record["dynamodb"]["Keys"]["queue"]["S"] if "dynamodb" in record else json.loads(record["body"])["queue"]
            for record in self.argument["Records"]
        )


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
    home = sorter.homes.of(queue)
    broken = Homes(replace(home, items=_BrokenItems(home.items, queue)))
    return type(sorter)(broken, sorter.options, sorter.clock)


def _sweeper(sorter: Sorter, watched: str | None) -> Sweeper:
    """Return a sweeper; it watches over consumers if a control table is named: by the index, as if queues were many."""
    if watched is None:
        return Sweeper(sorter)
    return Sweeper(
        sorter,
        lagging=LagWatch(
            sorter.homes.only.control(watched).subscriptions,
            sorter.homes.only.control(watched).checkpoints,
            sorter.homes.only.cursors,
            rows_a_look=1,
        ),
    )


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation that raised."""

    error: StreamSortError

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


@dataclass(slots=True)
class Attempt:
    """One try at an operation: what it wrote and met, for judging what it says about itself.

    `moved` counts the seqs its own successful cursor moves released. When it began, `lost` were the queues without
    their cursor row, `starts` says how often each queue had been given a start, and `checkpoints` how many each
    (consumer, queue) had had.
    """

    number: int
    operation: Operation
    lost: frozenset[str] = frozenset()
    starts: dict[str, int] = field(default_factory=dict)
    checkpoints: dict[tuple[str, str], int] = field(default_factory=dict)
    began: float = 0.0
    unavailable: int = 0
    moved: Counter[str] = field(default_factory=Counter)
