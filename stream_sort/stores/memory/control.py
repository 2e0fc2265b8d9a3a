"""A control table in dicts; effects of handlers are applied to tables in memory, with their checkpoint or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.consumption import (
    Checkpoint,
    Commit,
    Consumers,
    DeadLetter,
    DeadLetterPage,
    FoundCheckpoints,
    Parked,
    ParkedPage,
    Standing,
    Subscription,
)
from stream_sort.ports.control import ControlStores
from stream_sort.stores.effects import actions_of
from stream_sort.stores.memory.effects import MemoryEffects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.stores.memory.tables import MemoryTables

Place = tuple[str, str]


@dataclass(slots=True)
class MemoryControl:
    """The rows of one control table, and every effect that was applied."""

    checkpoints: dict[Place, Checkpoint] = field(default_factory=dict)
    dead: dict[tuple[str, str, int], DeadLetter] = field(default_factory=dict)
    consumers: dict[str, Subscription] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    written: MemoryEffects = field(default_factory=MemoryEffects)
    bookmark: Any = None

    def ports(self, tables: MemoryTables) -> ControlStores:
        """Return the ports onto these rows, which stand beside the given tables."""
        return ControlStores(
            MemoryCheckpoints(tables, self),
            MemoryDeadLetters(tables, self),
            MemorySubscriptions(tables, self),
            lambda: None,
        )

    def apply(self, queue: str, effects: Sequence[Effect]) -> None:
        """Apply the effects of a handler: all of them, or an error and none."""
        if effects:
            self.written.apply(self.written.changes(queue, effects))
            self.effects += effects


class MemoryCheckpoints:
    """Checkpoints in a dict."""

    def __init__(self, tables: MemoryTables, control: MemoryControl) -> None:
        self._tables = tables
        self._control = control

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """See Checkpoints."""
        with self._tables.lock:
            return Standing(
                self._control.checkpoints.get((consumer, queue)),
                self._tables.cursors.get(queue),
                None if slot is None else slot in self._tables.queue(queue).slots,
            )

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """See Checkpoints."""
        with self._tables.lock:
            place = (checkpoint.consumer, checkpoint.queue)
            there = self._control.checkpoints.get(place)
            if there is not None or (starting is not None and not self._is_starting(starting.name)):
                return Commit(won=False, checkpoint=there)
            self._control.checkpoints[place] = checkpoint
            return Commit(won=True, checkpoint=checkpoint)

    def commit(
        self,
        old: Checkpoint,
        new: Checkpoint,
        effects: Sequence[Effect] = (),
        dead: DeadLetter | None = None,
    ) -> Commit:
        """See Checkpoints."""
        actions_of(new.queue, effects)
        with self._tables.lock:
            place = (old.consumer, old.queue)
            there = self._control.checkpoints.get(place)
            if there is None or there.version != old.version:
                return Commit(won=False, checkpoint=there)
            self._control.apply(new.queue, effects)
            self._control.checkpoints[place] = new
            if dead is not None:
                self._control.dead[(new.consumer, dead.queue, dead.seq)] = dead
            return Commit(won=True, checkpoint=new)

    def of_queues(self, consumer: str, queues: Sequence[str]) -> FoundCheckpoints:
        """See Checkpoints."""
        with self._tables.lock:
            found = ((queue, self._control.checkpoints.get((consumer, queue))) for queue in queues)
            return FoundCheckpoints({queue: row for queue, row in found if row is not None})

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:  # noqa: ARG002  # one page holds all
        """See Checkpoints."""
        with self._tables.lock:
            rows = [row.parked for row in self._control.checkpoints.values() if row.consumer == consumer]
        due = [parked for parked in rows if parked is not None and _is_due(parked, before)]
        return ParkedPage(tuple(sorted(due, key=_next_try)))

    def _is_starting(self, consumer: str) -> bool:
        there = self._control.consumers.get(consumer)
        return there is not None and not there.ready


class MemoryDeadLetters:
    """DeadLetters in a dict."""

    def __init__(self, tables: MemoryTables, control: MemoryControl) -> None:
        self._tables = tables
        self._control = control

    def listed(self, consumer: str, start: Any = None) -> DeadLetterPage:  # noqa: ARG002  # one page holds all
        """See DeadLetters."""
        kept = (one for one in self._of(consumer) if one.discarded is None)
        return DeadLetterPage(tuple(sorted(kept, key=lambda one: one.since)))

    def of_queue(self, consumer: str, queue: str, *, discarded: bool = False) -> list[DeadLetter]:
        """See DeadLetters."""
        dead = (one for one in self._of(consumer) if one.queue == queue)
        return sorted((one for one in dead if (one.discarded is not None) is discarded), key=lambda one: one.seq)

    def settle(self, consumer: str, old: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """See DeadLetters."""
        actions_of(old.queue, effects)
        with self._tables.lock:
            place = (consumer, old.queue, old.seq)
            there = self._control.dead.get(place)
            if there is None or there.discarded is not None:
                return False
            if (there.attempts, there.run) != (old.attempts, old.run):
                return False
            self._control.apply(old.queue, effects)
            if new is None:
                del self._control.dead[place]
            else:
                self._control.dead[place] = new
            return True

    def _of(self, consumer: str) -> list[DeadLetter]:
        with self._tables.lock:
            return [one for (name, _, _), one in self._control.dead.items() if name == consumer]


class MemorySubscriptions:
    """Subscriptions in a dict."""

    def __init__(self, tables: MemoryTables, control: MemoryControl) -> None:
        self._lock = tables.lock
        self._control = control

    def register(self, subscription: Subscription) -> Subscription:
        """See Subscriptions."""
        with self._lock:
            there = self._control.consumers.get(subscription.name, subscription)
            there = self._control.consumers[subscription.name] = replace(there, retired_at=None)
            return there

    def introduce(self, subscription: Subscription) -> Subscription:
        """See Subscriptions."""
        with self._lock:
            return self._control.consumers.setdefault(subscription.name, subscription)

    def make_ready(self, subscription: Subscription) -> None:
        """See Subscriptions."""
        with self._lock:
            there = self._control.consumers.get(subscription.name)
            if there is not None:
                self._control.consumers[subscription.name] = replace(there, ready=True)

    def consumers(self, *, retired: bool = False) -> list[Subscription]:
        """See Subscriptions."""
        with self._lock:
            return [one for one in self._control.consumers.values() if one.is_retired is retired]

    def readable_consumers(self) -> Consumers:
        """See Subscriptions."""
        with self._lock:
            return Consumers(dict(self._control.consumers))

    def retire(self, consumer: str, now: float) -> None:
        """See Subscriptions."""
        with self._lock:
            there = self._control.consumers.get(consumer)
            if there is not None and not there.is_retired:
                self._control.consumers[consumer] = replace(there, retired_at=now)

    def bookmark(self) -> Any:
        """See Subscriptions."""
        return self._control.bookmark

    def set_bookmark(self, place: Any) -> None:
        """See Subscriptions."""
        self._control.bookmark = place


def _is_due(parked: Parked, before: float | None) -> bool:
    return before is None or (parked.next_try is not None and parked.next_try <= before)


def _next_try(parked: Parked) -> float:
    return float("inf") if parked.next_try is None else parked.next_try
