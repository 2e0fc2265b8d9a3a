"""Service: makes a consumer known, and decides where it starts in each queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import ConsumerNotFound, raise_unavailable
from stream_sort.model.consumption import LATEST, Checkpoint, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.ports import Checkpoints, Clock, CursorStore, Subscriptions
    from stream_sort.ports.in_flight import InFlight


# For how long a process trusts that a consumer still is registered as it read it, in seconds.
TRUSTED = 60.0


@dataclass(frozen=True, slots=True)
class Known:
    """A registration as it was read: where the consumer starts, and when it was read."""

    start: str
    read_at: float

    def is_fresh(self, now: float) -> bool:
        """Return True if it may be trusted."""
        return 0 <= now - self.read_at < TRUSTED


class Registration:
    """Registers a consumer, and reads its registration again once a minute: it may have been retired meanwhile.

    A "latest" consumer gets its checkpoints at the positions of the moment, all queues in one pass. A queue without
    a checkpoint is thereafter a new one, and is delivered from its first message: nothing is missed.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        checkpoints: Checkpoints,
        cursors: CursorStore,
        clock: Clock,
        in_flight: InFlight,
    ) -> None:
        self._subscriptions = subscriptions
        self._checkpoints = checkpoints
        self._cursors = cursors
        self._clock = clock
        self._in_flight = in_flight
        self._known: dict[str, Known] = {}
        self._introduced: set[str] = set()

    def register(self, name: str, start: str) -> str:
        """See to it that a consumer that is about to deliver is registered, not retired, and has its first checkpoints.

        Returns the start that counts: the one it was first registered with, whatever is asked for now.
        """
        now, known = self._clock(), self._known.get(name)
        if known is None or not known.is_fresh(now):
            known = self._known[name] = Known(self._add(name, start, now, self._subscriptions.register), now)
        return known.start

    def introduce(self, name: str, start: str) -> None:
        """Make a consumer known that is yet to deliver, once a process; one that was retired stays so."""
        if name not in self._introduced:
            self._add(name, start, self._clock(), self._subscriptions.introduce)
            self._introduced.add(name)

    def start_of(self, name: str) -> str | None:
        """Return the start that counts for a consumer, or will when it comes back; None if it never was registered."""
        if name in self._known:
            return self._known[name].start
        found = self._subscriptions.readable_consumers()
        there = found.named(name) or found.rows.get(name)
        return None if there is None else there.start

    def subscription(self, name: str) -> Subscription:
        """Return the registration of a consumer as it stands; ConsumerNotFound if there is none, or it was retired."""
        known = self._subscriptions.readable_consumers()
        there = known.named(name)
        if there is None:
            raise ConsumerNotFound(name, [one.name for one in known.active()], retired=name in known.rows)
        return there

    def retire(self, name: str) -> None:
        """Mark a consumer as retired: only a run under its name takes that mark away."""
        self._subscriptions.retire(name, self._clock())
        self._known.pop(name, None)

    def _add(self, name: str, start: str, now: float, add: Callable[[Subscription], Subscription]) -> str:
        there = add(Subscription(name, start, now, ready=start != LATEST))
        if not there.ready and not there.is_retired:
            self._set_checkpoints(there, add)
        return there.start

    def _set_checkpoints(self, there: Subscription, add: Callable[[Subscription], Subscription]) -> None:
        page = self._cursors.queues()
        while True:
            self._in_flight.map(lambda queue: self._set_checkpoint(there, queue), self._without(there, page.queues))
            if page.next is None:
                break
            page = self._cursors.queues(page.next)
            stands = add(there)
            if stands.ready or stands.is_retired:
                # Somebody else is through: a queue without a checkpoint may be a new one by now.
                return
        self._subscriptions.make_ready(there)

    def _without(self, there: Subscription, queues: Sequence[str]) -> list[str]:
        """Name the queues in which a consumer has no checkpoint, not even one that cannot be read.

        Many are asked for at once: so a pass that was killed when its time was over gets further the next time.
        """
        found = self._checkpoints.of_queues(there.name, list(queues))
        raise_unavailable(found.damaged)
        return [queue for queue in queues if queue not in found.rows and queue not in found.damaged]

    def _set_checkpoint(self, there: Subscription, queue: str) -> None:
        """Set the first checkpoint of a queue that has begun: one that has not is new, and may yet be opened elsewhere.

        So is one without a checkpoint once the consumer is ready, which somebody else may make it at any moment.
        """
        cursor = self._cursors.get(queue)
        if cursor is not None and cursor.position >= cursor.first_seq:
            self._checkpoints.create(Checkpoint(there.name, queue, cursor.position), there)
