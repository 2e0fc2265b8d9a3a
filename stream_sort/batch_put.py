"""Service: put the messages of windows, queue by queue: begin, store, release, within the time there is.

What fails is tried once, and again only after all others had their turn: so a failing queue delays no other one. What
is long, the release of a backlog, comes last: so it delays the store of no message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.advancer import Reach
from stream_sort.core.outcomes import Status
from stream_sort.errors import StoreUnavailable, StreamSortError
from stream_sort.hints import Hint
from stream_sort.intake import WINDOW_BYTES, WINDOW_SECONDS, out_of_time
from stream_sort.queue_errors import HOPELESS, hopeless_of, raise_hopeless, tried
from stream_sort.releaser import Releaser
from stream_sort.time_budget import Turns

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from stream_sort.advancer import Advancer, Walk
    from stream_sort.core.outcomes import PutResult
    from stream_sort.inflight import InFlight
    from stream_sort.intake import Intake
    from stream_sort.time_budget import CallTime
    from stream_sort.window import Window

    Begun = dict[str, Hint | StreamSortError]
    Reached = Mapping[str, Reach | StreamSortError]

# Of the time left, what may go into beginning queues: a store that hangs must leave some for what was begun.
FOR_BEGINNING = 0.5


@dataclass(slots=True)
class Release:
    """The release of a window's queues: each has a first turn as soon as it is stored, and all go on together."""

    releaser: Releaser
    walks: dict[str, Walk] = field(default_factory=dict)
    reached: dict[str, Reach | StreamSortError | None] = field(default_factory=dict)

    def begin(self, window: Window, queues: Container[str]) -> None:
        """Give queues of which messages are stored their first turn."""
        taken = window.taken(queues)
        size = max((message.size for message in window.messages_of(taken).values()), default=0)
        walks = {queue: self.releaser.advancer.walk(queue, own, size) for queue, own in taken.items()}
        known = {queue: hint for queue in walks if isinstance(hint := window.hints[queue], Hint)}
        self.walks |= walks
        self.reached |= self.releaser.begin(walks, known)

    def finish(self) -> dict[str, Reach | StreamSortError]:
        """Go on with all of them until they are released, or the time is over."""
        return self.releaser.finish(self.walks, self.reached)


@dataclass(frozen=True, slots=True)
class Part:
    """A window of which each queue was tried once: stored, or `stuck`, or not even begun, as the store is `failing`."""

    window: Window
    release: Release
    turns: Turns
    stored: set[str]
    stuck: set[str]
    failing: list[str]


@dataclass(frozen=True, slots=True)
class BatchPut:
    """Puts windows."""

    intake: Intake
    advancer: Advancer
    in_flight: InFlight
    time: CallTime

    def put(self, windows: Iterable[Window], result: PutResult) -> None:
        """Put the messages of some windows, and note in the result what became of each.

        Each window is tried before the next is pulled. Where time is limited, what may take long, retries and the
        release, comes when all were tried, unless their source is slow or they are too many; otherwise after each.
        """
        parts: list[Part] = []
        try:
            for window in windows:
                parts.append(self._try_once(window))
                if hopeless_of(window.outcomes.values()) is not None:
                    break
                if not self._waits(parts):
                    parts, tried_once = [], parts
                    self._complete(tried_once, result)
        except Exception:
            # What the windows before it stored is released, or marked, all the same.
            self._complete(parts, result)
            raise
        self._complete(parts, result)

    def _waits(self, parts: list[Part]) -> bool:
        """Return True if more windows are to be stored first; none waits for a slow source, nor does memory fill."""
        size = sum(part.window.size for part in parts)
        return self.time.budget.is_limited and size < WINDOW_BYTES and parts[-1].window.waited < WINDOW_SECONDS

    def _try_once(self, window: Window) -> Part:
        """Begin and store the queues of a window, each once."""
        hints, turns = self.intake.hints, Turns()
        with self.time.once():
            begun = self._begin(window, hints.failing_last(window.seqs()), turns)
        # Nothing of it is stored yet.
        raise_hopeless(begun.values())
        failing = [queue for queue, hint in begun.items() if isinstance(hint, StoreUnavailable)]
        ready = {queue: hint for queue, hint in begun.items() if not isinstance(hint, StoreUnavailable)}
        stuck = self._store(window, ready)
        release = Release(Releaser(self.advancer, self.in_flight, self.time))
        return Part(window, release, turns, ready.keys() - stuck, stuck, failing)

    def _complete(self, parts: list[Part], result: PutResult) -> None:
        """Begin to release, try again what failed, release the rest; only then raise what no message escapes."""
        for part in parts:
            part.release.begin(part.window, part.stored)
        for part in parts:
            self._try_again(part)
        reached = [self._release(part, result) for part in parts]
        outcomes = [outcome for part in parts for outcome in part.window.outcomes.values()]
        raise_hopeless([*outcomes, *(reach for of_part in reached for reach in of_part.values())])
        self._count_disorder(parts, reached, result)
        for part in parts:
            for document, outcome in part.window.told():
                result.count(outcome, document)

    def _try_again(self, part: Part) -> None:
        """Give the queues that failed their turn again, now that all others had theirs."""
        window, release = part.window, part.release
        self._store_again(window, part.stuck, release)
        if part.failing and hopeless_of([*window.outcomes.values(), *release.reached.values()]) is None:
            with self.time.part(FOR_BEGINNING).patiently():
                begun = self._begin(window, self.intake.hints.failing_last(part.failing), part.turns)
            stuck = self._store(window, begun)
            release.begin(window, begun.keys() - stuck)
            self._store_again(window, stuck, release)

    def _begin(self, window: Window, queues: list[str], turns: Turns) -> Begun:
        """Begin queues, each once; a queue whose turn does not come in time is not tried.

        Nor is any queue after one that met an error that none escapes.
        """
        seqs, intake = window.seqs(), self.intake
        budget = self.time.budget.part(FOR_BEGINNING)
        hopeless: list[StreamSortError] = []

        def begin(queue: str) -> Hint | StreamSortError:
            if hopeless:
                return hopeless[0]
            call = partial(tried, queue, lambda: intake.begin(queue, seqs[queue], intake.learn(queue)))
            hint = turns.take(budget, call)
            if isinstance(hint, StoreUnavailable):
                intake.hints.note_failing(queue)
            elif isinstance(hint, HOPELESS):
                hopeless.append(hint)
            return hint or out_of_time(queue)

        return dict(zip(queues, self.in_flight.map(begin, queues), strict=True))

    def _store(self, window: Window, begun: Begun) -> set[str]:
        """Store the messages of queues that were begun; return those of which something could not be stored for now."""
        window.hints.update(begun)
        self.intake.store_window(window, begun, self.time)
        is_over = hopeless_of(window.outcomes.values()) is not None
        return set() if is_over else window.stuck(begun)

    def _store_again(self, window: Window, stuck: set[str], release: Release) -> None:
        if stuck:
            self.intake.store_again(window, stuck, self.time)
            release.begin(window, stuck)

    def _release(self, part: Part, result: PutResult) -> Reached:
        """Release the rest of a window, and note in the result how far its queues came."""
        reached = part.release.finish()
        rows = {queue: reach.cursor for queue, reach in reached.items() if isinstance(reach, Reach)}
        with self.time.at_the_end():
            self.intake.confirm_window(part.window, rows)
        for queue, reach in reached.items():
            if isinstance(reach, Reach):
                result.join(reach.advance, complete=reach.complete)
            else:
                result.stalled.append((queue, reach))
        return reached

    def _count_disorder(self, parts: list[Part], reached: list[Reached], result: PutResult) -> None:
        """Count the accepted messages that came after one with a higher seq, as far as this call saw that."""
        own: dict[str, set[int]] = {}
        for part in parts:
            for queue, seqs in part.window.taken(part.release.walks).items():
                own.setdefault(queue, set()).update(seqs)
        highest = {
            queue: max(_highest_of_others(of_part[queue], seqs) for of_part in reached if queue in of_part)
            for queue, seqs in own.items()
        }
        for part in parts:
            for index, message in part.window.messages_of(highest).items():
                queue, outcome = message.queue, part.window.outcomes[index]
                if outcome is Status.ACCEPTED and message.seq < highest[queue]:
                    result.out_of_order[queue] = result.out_of_order.get(queue, 0) + 1
                if outcome in {Status.ACCEPTED, Status.DUPLICATE}:
                    highest[queue] = max(highest[queue], message.seq)


def _highest_of_others(reach: Reach | StreamSortError, own: set[int]) -> float:
    """Return the highest seq that an advance saw and that others stored, -inf if it saw none."""
    seen = (reach.cursor.position, reach.beyond) if isinstance(reach, Reach) else ()
    return max((seq for seq in seen if seq is not None and seq not in own), default=-math.inf)
