"""Service: put the messages of windows, queue by queue: begin, store, release, within the time there is.

What fails is tried once, and again only after all others had their turn: so a failing queue delays no other one. What
is long, the release of a backlog, comes last: so it delays the store of no message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.errors import StoreUnavailable, StreamSortError
from stream_sort.intake.storing import WINDOW_BYTES, WINDOW_SECONDS, out_of_time
from stream_sort.intake.window import Window
from stream_sort.model.outcomes import Status
from stream_sort.release.advancer import Reach
from stream_sort.release.position_cache import Hint
from stream_sort.release.queue_errors import HOPELESS, hopeless_of, raise_hopeless, tried
from stream_sort.release.releaser import Releaser
from stream_sort.release.time_budget import Turns

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from stream_sort.intake.storing import Intake
    from stream_sort.model.outcomes import PutResult
    from stream_sort.ports.in_flight import InFlight
    from stream_sort.release.advancer import Advancer, Walk
    from stream_sort.release.time_budget import CallTime

    Begun = dict[str, Hint | StreamSortError]
    Reached = Mapping[str, Reach | StreamSortError]

# Of the time left, what may go into beginning queues: a store that hangs must leave some for what was begun.
FOR_BEGINNING = 0.5
# Of the time left, what the windows of a call may use up together that are not its last.
FOR_EARLIER = 0.5
# Of how many queues messages are held at most: each may have to be marked when the time is over.
MOST_QUEUES = 1_000


@dataclass(slots=True)
class WindowRelease:
    """The release of a window's queues: each has a first turn, those that are stored later, too; all go on together."""

    releaser: Releaser
    walks: dict[str, Walk] = field(default_factory=dict)
    reached: dict[str, Reach | StreamSortError | None] = field(default_factory=dict)

    def begin(self, window: Window, queues: Container[str]) -> None:
        """Give queues of which messages are stored their first turn."""
        taken = window.taken(queues)
        size = max((message.size for message in window.messages_of(taken).values()), default=0)
        walks = {queue: self.releaser.advancer.walk(queue, own, size) for queue, own in taken.items()}
        known = {queue: hint for queue, hint in window.walked_from.items() if queue in walks}
        self.walks |= walks
        self.reached |= self.releaser.begin(walks, known)

    def finish(self) -> dict[str, Reach | StreamSortError]:
        """Go on with all of them until they are released, or the time is over."""
        return self.releaser.finish(self.walks, self.reached)


@dataclass(slots=True)
class Held:
    """Windows of which each queue was tried once, as one window: what is left to do for them waits for the others.

    Queues are `begun`, or the store is `failing` for them; of those that are `stuck` not all could be stored.
    """

    window: Window = field(default_factory=Window)
    begun: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    failing: dict[str, None] = field(default_factory=dict)
    longest: float = 0.0


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
        held = Held()
        try:
            for window in windows:
                self._try_once(window, held)
                if hopeless_of(held.window.outcomes.values()) is not None:
                    break
                if not self._waits(window, held):
                    done, held = held, Held(longest=held.longest)
                    self._complete(done, result, self.time.part(FOR_EARLIER))
        except Exception:
            # What the windows before it stored is released, or marked, all the same.
            self._complete(held, result, self.time)
            raise
        self._complete(held, result, self.time)

    def _waits(self, last: Window, held: Held) -> bool:
        """Return True if more windows are to be stored first; none waits for a slow source, nor does memory fill."""
        if not self.time.budget.is_limited or last.waited >= WINDOW_SECONDS:
            return False
        return held.window.size < WINDOW_BYTES and len(held.begun) + len(held.failing) < MOST_QUEUES

    def _try_once(self, window: Window, held: Held) -> None:
        """Begin and store the queues of a window, each once; those that failed before wait for their next turn."""
        hints, turns = self.intake.hints, Turns()
        waiting = {queue for queue in held.failing if hints.is_failing(queue)}
        queues = [queue for queue in hints.failing_last(window.seqs()) if queue not in waiting]
        first = held.window.absorb(window)
        if held.stuck:
            held.window.await_twins(first)
        with self.time.once():
            begun = self._begin(held.window, queues, turns)
        held.longest = max(held.longest, turns.longest)
        if (error := hopeless_of(begun.values())) is not None:
            # Nothing of it is stored yet, and nothing will be.
            held.window.outcomes |= dict.fromkeys(range(first, len(held.window.given)), error)
            return
        ready = {queue: hint for queue, hint in begun.items() if not isinstance(hint, StoreUnavailable)}
        held.failing |= dict.fromkeys(queue for queue in begun if queue not in ready)
        for queue in ready:
            held.failing.pop(queue, None)
        held.stuck |= self._store(held.window, ready)
        held.begun |= ready.keys()

    def _complete(self, held: Held, result: PutResult, time: CallTime) -> None:
        """Begin to release, try again what failed, release the rest, and note what became of all."""
        window, release = held.window, WindowRelease(Releaser(self.advancer, self.in_flight, time))
        release.begin(window, held.begun - held.stuck - held.failing.keys())
        self._store_again(window, held.stuck - held.failing.keys(), release)
        if held.failing and hopeless_of([*window.outcomes.values(), *release.reached.values()]) is None:
            with time.part(FOR_BEGINNING).patiently():
                begun = self._begin(window, self.intake.hints.failing_last(held.failing), Turns(held.longest))
            stuck = self._store(window, begun)
            release.begin(window, begun.keys() - stuck)
            self._store_again(window, stuck, release)
        self._finish(window, release, result)
        for document, outcome in window.answers():
            result.count(outcome, document)

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
        ready = {queue: hint for queue, hint in begun.items() if isinstance(hint, Hint)}
        window.hints |= ready
        for queue, hint in ready.items():
            if (first := window.walked_from.get(queue)) is None or first.cursor is None:
                window.walked_from[queue] = hint
        for queue, error in begun.items():
            if isinstance(error, StreamSortError):
                window.outcomes |= dict.fromkeys(window.untold_of({queue}), error)
        self.intake.store_window(window, ready, self.time)
        is_over = hopeless_of(window.outcomes.values()) is not None
        return set() if is_over else window.stuck(ready)

    def _store_again(self, window: Window, stuck: set[str], release: WindowRelease) -> None:
        if stuck:
            self.intake.store_again(window, stuck, self.time)
            release.begin(window, stuck)

    def _finish(self, window: Window, release: WindowRelease, result: PutResult) -> None:
        """Release the rest and note it in the result; only then raise what no message escapes."""
        taken = window.taken(release.walks)
        reached = release.finish()
        rows = {queue: reach.cursor for queue, reach in reached.items() if isinstance(reach, Reach)}
        with release.releaser.time.at_the_end():
            self.intake.confirm_window(window, rows)
        for queue, reach in reached.items():
            if isinstance(reach, Reach):
                result.join(reach.advance, complete=reach.complete)
            else:
                result.stalled.append((queue, reach))
        self._count_disorder(window, taken, reached, result)
        raise_hopeless([*window.outcomes.values(), *reached.values()])

    def _count_disorder(
        self, window: Window, taken: Mapping[str, set[int]], reached: Reached, result: PutResult
    ) -> None:
        """Count the accepted messages that came after one with a higher seq, as far as this call saw that."""
        highest = {queue: _highest_of_others(reached[queue], own) for queue, own in taken.items()}
        for index, message in window.messages_of(taken).items():
            queue, outcome = message.queue, window.outcomes[index]
            if outcome is Status.ACCEPTED and message.seq < highest[queue]:
                result.out_of_order[queue] = result.out_of_order.get(queue, 0) + 1
            if outcome in {Status.ACCEPTED, Status.DUPLICATE}:
                highest[queue] = max(highest[queue], message.seq)


def _highest_of_others(reach: Reach | StreamSortError, own: set[int]) -> float:
    """Return the highest seq that an advance saw and that others stored, -inf if it saw none."""
    seen = (reach.cursor.position, reach.beyond) if isinstance(reach, Reach) else ()
    return max((seq for seq in seen if seq is not None and seq not in own), default=-math.inf)
