"""Consumers in memory, and what to do to them: a clerk for a handler, a waker that notes, a store that interrupts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort import OrderedConsumer, Pace, StoreUnavailable, StreamSorter
from stream_sort.model.consumption import Wake
from stream_sort.testing.clock import MovableClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort import Batch
    from stream_sort.model.consumption import Checkpoint, Served


@dataclass
class Clerk:
    """A handler that notes what it is given, and fails where a seq is poison."""

    poison: set[int] = field(default_factory=set)
    batches: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    done: list[tuple[str, int]] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)

    def __call__(self, batch: Batch) -> None:
        self.batches.append((batch.queue, batch.seqs))
        self.attempts.append(batch.attempt)
        bad = self.poison.intersection(batch.seqs)
        if bad:
            raise ValueError(f"poison {min(bad)}")
        self.done += [(batch.queue, seq) for seq in batch.seqs]

    def seqs(self, queue: str = "q") -> list[int]:
        """What was done in a queue, in the order it was done."""
        return [seq for name, seq in self.done if name == queue]


@dataclass
class NotedWaker:
    """A Waker that notes what it is asked for."""

    sent: list[tuple[str, float]] = field(default_factory=list)
    fails: bool = False

    def wake(self, queue: str, delay: float) -> None:
        if self.fails:
            raise StoreUnavailable("no wake could be sent")
        self.sent.append((queue, delay))


@dataclass
class Interrupted:
    """A store whose calls are counted, and before or after which something else may happen, once each."""

    store: Any
    calls: list[str] = field(default_factory=list)
    before: dict[str, list[Callable[[], object]]] = field(default_factory=dict)
    after: dict[str, list[Callable[[], object]]] = field(default_factory=dict)

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append(method)
            for happening in self.before.pop(method, []):
                happening()
            answer = getattr(self.store, method)(*arguments, **named)
            for happening in self.after.pop(method, []):
                happening()
            return answer

        return call


class OnePort:
    """Several ports of one table as one: no two of them have a method of the same name."""

    def __init__(self, *ports: Any) -> None:
        self._ports = ports

    def __getattr__(self, name: str) -> Any:
        return next(getattr(port, name) for port in self._ports if hasattr(port, name))


def control_of(consumer: OrderedConsumer) -> Any:
    """What a consumer knows of its control table, as one port."""
    return OnePort(consumer._context.checkpoints, consumer._context.dead_letters)


def give_control(consumer: OrderedConsumer, store: Any) -> None:
    """Put another store in the place of both."""
    consumer._context = replace(consumer._context, checkpoints=store, dead_letters=store)


def interrupt_registration(consumer: OrderedConsumer) -> Interrupted:
    """Put an interruptible store between the registration of a consumer and the control table."""
    known = consumer._registration
    store = Interrupted(OnePort(known._subscriptions, known._checkpoints))
    known._subscriptions = known._checkpoints = store  # type: ignore[assignment]
    return store


def fail() -> None:
    """What happens when a table is out of reach."""
    raise StoreUnavailable("out of reach")


def fail_twice(store: Interrupted, method: str = "commit") -> list[Callable[[], object]]:
    """What happens when it is so for longer: what is tried once more fails again."""
    return [lambda: store.before.update({method: [fail]}), fail]


class Office:
    """One sorter in memory, one clock, and any number of consumers with what they work with."""

    def __init__(self, **options: Any) -> None:
        self.clock = MovableClock()
        self.sorter = StreamSorter.in_memory(clock=self.clock, **options)
        self.waker = NotedWaker()
        self.pauses: list[float] = []
        self.ticks = [0.0]

    def put(self, *seqs: int, queue: str = "q") -> None:
        self.sorter.put_many([{"queue": queue, "seq": seq} for seq in seqs])

    def hire(self, handler: Callable[[Batch], Any], name: str = "billing", **options: Any) -> OrderedConsumer:
        pace = Pace(self.pauses.append, lambda: self.ticks[0])
        return OrderedConsumer(name, handler, sorter=self.sorter, waker=self.waker, pace=pace, **options)

    def interrupt(self, consumer: OrderedConsumer) -> Interrupted:
        """Put an interruptible store between a consumer and its control table."""
        store = Interrupted(control_of(consumer))
        give_control(consumer, store)
        return store

    def row(self, queue: str = "q", name: str = "billing") -> Checkpoint | None:
        return self.sorter.stores.control("Control").checkpoints.standing(name, queue).checkpoint

    def lose_cursor(self, queue: str = "q") -> Any:
        """Take a cursor row away; returns it."""
        return self.sorter.stores.cursors._tables.cursors.pop(queue)  # type: ignore[attr-defined]

    def lose_item(self, seq: int, queue: str = "q") -> Any:
        """Take an item away; returns what puts it back."""
        held = self.sorter.stores.items._tables.queues[queue]  # type: ignore[attr-defined]
        slot = held.slots[seq]
        held.empty(seq)
        return lambda: held.fill(slot)


def wake(consumer: OrderedConsumer, *queues: str, position: int | None = None) -> list[Served]:
    """One event that names these queues."""
    return consumer.process([Wake(queue, position) for queue in queues or ("q",)])


def ends(served: Iterable[Served]) -> list[str]:
    return [one.ended for one in served]


def is_given_up(consumer: OrderedConsumer) -> bool:
    return bool(consumer.dead_letters()) or any(one.next_try is None for one in consumer.parked())
