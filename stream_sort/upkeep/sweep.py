"""What one sweep did, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort.model.gaps import GapEvent, GapEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.errors import StreamSortError
    from stream_sort.model.outcomes import Advance
    from stream_sort.upkeep.queue_visit import Visited


@dataclass(slots=True)
class Sweep:
    """What a sweep did.

    `waiting` are the queues that something holds up, and `gap_ages` tells for how many seconds, 0 where that is not
    known: those that wait at a gap, too long to be skipped or not, and marked ones that could not be looked at, or
    for which there was no time: their ages are those that earlier sweeps noted.
    `skipped` are gaps that were given up, `found` those at which a queue is seen waiting for the first time, `closed`
    those found before that are there no more, `too_long` those that are due but longer than a sweep skips by itself.
    `failed` are queues with the error that stopped the work on them: any error, a bug of ours included, stops no other
    queue. `watch_error` kept it from finding all consumers that sleep; `callback_errors` is what `on_gap` raised.
    Not `complete` is a sweep whose time was over; each begins at another queue, so all have their turn. Not `listed` is
    one that could not list the queues: how many wait, and for how long, is not known then.
    """

    looked_at: int = 0
    advanced: list[Advance] = field(default_factory=list)
    skipped: list[GapEvent] = field(default_factory=list)
    nudged: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    too_long: list[GapEvent] = field(default_factory=list)
    failed: list[tuple[str, StreamSortError]] = field(default_factory=list)
    gap_ages: dict[str, float] = field(default_factory=dict)
    complete: bool = True
    listed: bool = True
    found: list[GapEvent] = field(default_factory=list)
    closed: list[GapEvent] = field(default_factory=list)
    watch_error: StreamSortError | None = None
    callback_errors: list[tuple[GapEvent, Exception]] = field(default_factory=list)

    @property
    def oldest_gap(self) -> float:
        """Return the age in seconds of the gap that holds a queue up longest; 0 if none does."""
        return max(self.gap_ages.values(), default=0.0)

    def take(self, queue: str, visited: Visited) -> None:
        """Add what a visit to a queue did and saw."""
        self.advanced += visited.advanced
        kinds = {
            GapEventKind.FOUND: self.found,
            GapEventKind.CLOSED: self.closed,
            GapEventKind.GIVEN_UP: self.skipped,
            GapEventKind.TOO_LONG: self.too_long,
        }
        for event in visited.events:
            kinds[event.kind].append(event)
        if visited.age is not None:
            self.waiting.append(queue)
            self.gap_ages[queue] = visited.age
        if visited.error is not None:
            self.failed.append((queue, visited.error))
        self.complete = self.complete and visited.complete
        self.looked_at += 1

    def add_failed(self, failed: Iterable[tuple[str, StreamSortError]]) -> None:
        """Note queues that failed, each once."""
        known = {queue for queue, _ in self.failed}
        self.failed += [(queue, error) for queue, error in failed if queue not in known]
