"""Service: makes a consumer known, and decides where it starts in each queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.core.consumption import LATEST, Checkpoint, Subscription

if TYPE_CHECKING:
    from stream_sort.inflight import InFlight
    from stream_sort.ports import Clock, ControlStore, CursorStore


class Registrar:
    """Registers a consumer once a process.

    A "latest" consumer gets its checkpoints at the positions of the moment, all queues in one pass. A queue without
    a checkpoint is thereafter a new one, and is delivered from its first message: nothing is missed.
    """

    def __init__(self, control: ControlStore, cursors: CursorStore, clock: Clock, in_flight: InFlight) -> None:
        self._control = control
        self._cursors = cursors
        self._clock = clock
        self._in_flight = in_flight
        self._known: dict[str, str] = {}

    def register(self, name: str, start: str) -> str:
        """See to it that a consumer is registered and has its first checkpoints.

        Returns the start that counts: the one it was first registered with, whatever is asked for now.
        """
        if name not in self._known:
            wanted = Subscription(name, start, self._clock(), ready=start != LATEST)
            there = self._control.register(wanted)
            if not there.ready:
                self._set_checkpoints(there)
            self._known[name] = there.start
        return self._known[name]

    def start_of(self, name: str) -> str | None:
        """The start that counts for a consumer; None if it is not registered."""
        if name in self._known:
            return self._known[name]
        return next((there.start for there in self._control.consumers() if there.name == name), None)

    def retire(self, name: str) -> None:
        """Take a consumer off the list."""
        self._control.retire(name)
        self._known.pop(name, None)

    def _set_checkpoints(self, there: Subscription) -> None:
        page = self._cursors.queues()
        while True:
            self._in_flight.map(lambda queue: self._set_checkpoint(there, queue), list(page.queues))
            if page.next is None:
                break
            page = self._cursors.queues(page.next)
            if self._control.register(there).ready:
                # Somebody else is through: a queue without a checkpoint may be a new one by now.
                return
        self._control.make_ready(there)

    def _set_checkpoint(self, there: Subscription, queue: str) -> None:
        """A queue that has not begun is a new one, and may yet be opened elsewhere.

        So is one without a checkpoint once the consumer is ready, which somebody else may make it at any moment.
        """
        cursor = self._cursors.get(queue)
        if cursor is not None and cursor.position >= cursor.first_seq:
            self._control.create(Checkpoint(there.name, queue, cursor.position), there)
