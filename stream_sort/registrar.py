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
        self._known: set[str] = set()

    def register(self, name: str, start: str) -> None:
        """See to it that a consumer is registered and has its first checkpoints."""
        if name in self._known:
            return
        wanted = Subscription(name, start, self._clock(), ready=start != LATEST)
        there = self._control.register(wanted)
        if not there.ready:
            self._set_checkpoints(name)
            self._control.make_ready(there)
        self._known.add(name)

    def _set_checkpoints(self, name: str) -> None:
        page = self._cursors.queues()
        while True:
            self._in_flight.map(lambda queue: self._set_checkpoint(name, queue), list(page.queues))
            if page.next is None:
                return
            page = self._cursors.queues(page.next)

    def _set_checkpoint(self, name: str, queue: str) -> None:
        cursor = self._cursors.get(queue)
        if cursor is not None:
            self._control.create(Checkpoint(name, queue, cursor.position))
