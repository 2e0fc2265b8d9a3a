"""ControlStore in a dict. Effects of handlers are applied to tables in memory, with their checkpoint or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.consumption import (
    Checkpoint,
    Checkpoints,
    Commit,
    Consumers,
    DeadLetter,
    DeadLetterPage,
    Parked,
    ParkedPage,
    Standing,
    Subscription,
)
from stream_sort.model.effects import actions_of
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


class MemoryControlStore:
    """ControlStore in a dict."""

    def __init__(self, tables: MemoryTables, control: MemoryControl) -> None:
        self._tables = tables
        self._control = control

    def create_table(self) -> None:
        """See ControlStore."""

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """See ControlStore."""
        with self._tables.lock:
            return Standing(
                self._control.checkpoints.get((consumer, queue)),
                self._tables.cursors.get(queue),
                None if slot is None else slot in self._tables.queue(queue).slots,
            )

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """See ControlStore."""
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
        """See ControlStore."""
        actions_of(new.queue, effects)
        with self._tables.lock:
            place = (old.consumer, old.queue)
            there = self._control.checkpoints.get(place)
            if there is None or there.version != old.version:
                return Commit(won=False, checkpoint=there)
            self._apply(new.queue, effects)
            self._control.checkpoints[place] = new
            if dead is not None:
                self._control.dead[(new.consumer, dead.queue, dead.seq)] = dead
            return Commit(won=True, checkpoint=new)

    def checkpoints(self, consumer: str, queues: Sequence[str]) -> dict[str, Checkpoint]:
        """See ControlStore."""
        with self._tables.lock:
            found = ((queue, self._control.checkpoints.get((consumer, queue))) for queue in queues)
            return {queue: row for queue, row in found if row is not None}

    def readable_checkpoints(self, consumer: str, queues: Sequence[str]) -> Checkpoints:
        """See ControlStore."""
        return Checkpoints(self.checkpoints(consumer, queues))

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:  # noqa: ARG002  # one page holds all
        """See ControlStore."""
        with self._tables.lock:
            rows = [row.parked for row in self._control.checkpoints.values() if row.consumer == consumer]
        due = [parked for parked in rows if parked is not None and _is_due(parked, before)]
        return ParkedPage(tuple(sorted(due, key=_next_try)))

    def dead_letters(self, consumer: str, start: Any = None) -> DeadLetterPage:  # noqa: ARG002  # one page holds all
        """See ControlStore."""
        kept = (letter for letter in self._letters(consumer) if letter.discarded is None)
        return DeadLetterPage(tuple(sorted(kept, key=lambda letter: letter.since)))

    def dead_letters_of(self, consumer: str, queue: str, *, discarded: bool = False) -> list[DeadLetter]:
        """See ControlStore."""
        letters = (letter for letter in self._letters(consumer) if letter.queue == queue)
        found = (letter for letter in letters if (letter.discarded is not None) is discarded)
        return sorted(found, key=lambda letter: letter.seq)

    def settle(self, consumer: str, letter: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """See ControlStore."""
        actions_of(letter.queue, effects)
        with self._tables.lock:
            place = (consumer, letter.queue, letter.seq)
            there = self._control.dead.get(place)
            if there is None or there.discarded is not None:
                return False
            if (there.attempts, there.run) != (letter.attempts, letter.run):
                return False
            self._apply(letter.queue, effects)
            if new is None:
                del self._control.dead[place]
            else:
                self._control.dead[place] = new
            return True

    def register(self, subscription: Subscription) -> Subscription:
        """See ControlStore."""
        with self._tables.lock:
            there = self._control.consumers.get(subscription.name, subscription)
            there = self._control.consumers[subscription.name] = replace(there, retired_at=None)
            return there

    def introduce(self, subscription: Subscription) -> Subscription:
        """See ControlStore."""
        with self._tables.lock:
            return self._control.consumers.setdefault(subscription.name, subscription)

    def make_ready(self, subscription: Subscription) -> None:
        """See ControlStore."""
        with self._tables.lock:
            there = self._control.consumers.get(subscription.name)
            if there is not None:
                self._control.consumers[subscription.name] = replace(there, ready=True)

    def consumers(self, *, retired: bool = False) -> list[Subscription]:
        """See ControlStore."""
        with self._tables.lock:
            return [one for one in self._control.consumers.values() if one.is_retired is retired]

    def readable_consumers(self) -> Consumers:
        """See ControlStore."""
        with self._tables.lock:
            return Consumers(dict(self._control.consumers))

    def bookmark(self) -> Any:
        """See ControlStore."""
        return self._control.bookmark

    def set_bookmark(self, place: Any) -> None:
        """See ControlStore."""
        self._control.bookmark = place

    def retire(self, consumer: str, now: float) -> None:
        """See ControlStore."""
        with self._tables.lock:
            there = self._control.consumers.get(consumer)
            if there is not None and not there.is_retired:
                self._control.consumers[consumer] = replace(there, retired_at=now)

    def _letters(self, consumer: str) -> list[DeadLetter]:
        with self._tables.lock:
            return [letter for (name, _, _), letter in self._control.dead.items() if name == consumer]

    def _apply(self, queue: str, effects: Sequence[Effect]) -> None:
        if effects:
            written = self._control.written
            written.apply(written.changes(queue, effects))
            self._control.effects += effects

    def _is_starting(self, consumer: str) -> bool:
        there = self._control.consumers.get(consumer)
        return there is not None and not there.ready


def _is_due(parked: Parked, before: float | None) -> bool:
    return before is None or (parked.next_try is not None and parked.next_try <= before)


def _next_try(parked: Parked) -> float:
    return float("inf") if parked.next_try is None else parked.next_try
