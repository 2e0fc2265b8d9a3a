"""Ports: the control table. Its guarantees are numbered over all three ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import (
        Checkpoint,
        Commit,
        Consumers,
        DeadLetter,
        DeadLetterPage,
        FoundCheckpoints,
        ParkedPage,
        Standing,
        Subscription,
    )


class Checkpoints(Protocol):
    """How far each consumer is in each queue, and where it is parked."""

    def standing(self, consumer: str, queue: str, slot: int | None = None) -> Standing:
        """Read a checkpoint, the queue's cursor row and whether a slot of the queue is taken, in one request.

        1. Each is as it stands after every write that was answered before the call; `taken` is None without a slot.
        """

    def create(self, checkpoint: Checkpoint, starting: Subscription | None = None) -> Commit:
        """Insert a checkpoint; with `starting`, as one of that consumer's first ones.

        2. Only if there is none, and `starting` is not ready yet; otherwise the row that stands, unchanged.
        """

    def commit(
        self,
        old: Checkpoint,
        new: Checkpoint,
        effects: Sequence[Effect] = (),
        dead: DeadLetter | None = None,
    ) -> Commit:
        """Put `new` in the place of `old`.

        3. Only if the version is that of `old`; otherwise the row that stands, unchanged.
        4. Effects and dead letter are written with it, all or none.
        5. EffectRefused if a condition among the effects does not hold, TransactionTooLarge if they do not fit,
           TryLater if a table of theirs, or the right to write to it, is missing: nothing is written.
        """

    def of_queues(self, consumer: str, queues: Sequence[str]) -> FoundCheckpoints:
        """Read the checkpoints of many queues.

        6. Those that exist, each as it stood after the call began.
        18. A row that cannot be read, or got no answer, is named by its queue, and hides no other one.
        """

    def parked(self, consumer: str, before: float | None = None, start: Any = None) -> ParkedPage:
        """List parked queues, those whose next try is at or before a time, or all; the next to be tried first.

        7. A hint: it may lag behind the checkpoints, but shows every parked queue in the end, by name at least.
        """


class DeadLetters(Protocol):
    """The messages that consumers gave up on."""

    def listed(self, consumer: str, start: Any = None) -> DeadLetterPage:
        """List dead letters that are not discarded, oldest first.

        8. A hint: it may lag behind the rows, but shows every dead letter that can be read in the end.
        """

    def of_queue(self, consumer: str, queue: str, *, discarded: bool = False) -> list[DeadLetter]:
        """Read the dead letters of one queue that are not discarded; with `discarded`, those that are.

        9. In the order of their seqs, as they stand after every write that was answered before the call.
        """

    def settle(self, consumer: str, old: DeadLetter, new: DeadLetter | None, effects: Sequence[Effect] = ()) -> bool:
        """Change a dead letter, or remove it when `new` is None.

        10. Only if its attempts and its run are those of `old` and it is not discarded; False otherwise.
        11. Effects are written with it, all or none, with the errors of `Checkpoints.commit`.
        """


class Subscriptions(Protocol):
    """The consumers that are known, and what the watch over them keeps."""

    def register(self, subscription: Subscription) -> Subscription:
        """Add a consumer that is about to deliver.

        12. Only if there is none of that name; returns the one that stands. If that is retired, it no longer is, and
            nothing else of it changes.
        """

    def introduce(self, subscription: Subscription) -> Subscription:
        """Add a consumer that is yet to deliver.

        17. Only if there is none of that name, retired or not; returns the one that stands.
        """

    def make_ready(self, subscription: Subscription) -> None:
        """Note that a consumer's first checkpoints are set.

        13. Changes nothing else: one that was retired stays so.
        """

    def consumers(self, *, retired: bool = False) -> list[Subscription]:
        """Name all consumers that are not retired; with `retired`, those that are.

        14. Every one that was registered, or retired, before the call.
        """

    def readable_consumers(self) -> Consumers:
        """Read all consumers, for somebody who asks for one, or decides nothing by them.

        19. As `consumers`, which raises where this names a row that cannot be read.
        """

    def retire(self, consumer: str, now: float) -> None:
        """Mark a consumer as retired, if it is there and is not retired yet.

        16. Its checkpoints and dead letters stay as they are; only `register` takes the mark away.
        """

    def bookmark(self) -> Any:
        """Return what the watch over consumers kept at its last look; None at the beginning."""

    def set_bookmark(self, place: Any) -> None:
        """Keep what the next look has to know, as JSON values.

        15. `bookmark` returns what was set last.
        """


@dataclass(frozen=True, slots=True)
class ControlStores:
    """One control table, behind its three ports; `create_table` makes it, for local use and tests."""

    checkpoints: Checkpoints
    dead_letters: DeadLetters
    subscriptions: Subscriptions
    create_table: Callable[[], None]
