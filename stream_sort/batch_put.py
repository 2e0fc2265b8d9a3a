"""Service: put the messages of a window, queue by queue: begin, store, release, within the time there is.

What fails is tried once, and again only after all others had their turn: so a failing queue delays no other one.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.advancer import Reach
from stream_sort.core.outcomes import Status
from stream_sort.errors import StoreUnavailable, StreamSortError
from stream_sort.hints import Hint
from stream_sort.intake import out_of_time, tried
from stream_sort.ports.time_limit import time_limit
from stream_sort.time_budget import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stream_sort.advancer import Advancer, Walk
    from stream_sort.core.outcomes import PutResult
    from stream_sort.inflight import InFlight
    from stream_sort.intake import Intake
    from stream_sort.time_budget import TimeBudget
    from stream_sort.window import Window

    Begun = dict[str, Hint | StreamSortError]
    # None: it was stopped, and goes on later.
    Reached = dict[str, Reach | StreamSortError | None]

# Of the time left, what may go into first tries: a store that hangs must leave some for what was begun.
FIRST_TRIES = 0.5
# How many moves of a cursor a queue may make before all others had their turn: few at first, as most need one.
FIRST_MOVES, MOVES_A_TURN = 3, 10


@dataclass(frozen=True, slots=True)
class BatchPut:
    """Puts windows. `deadline` is how many seconds all the queues that fail in one step may be retried together."""

    intake: Intake
    advancer: Advancer
    in_flight: InFlight
    deadline: float
    monotonic: Callable[[], float] = time.monotonic

    def put(self, window: Window, budget: TimeBudget, result: PutResult) -> None:
        """Put the messages of a window, and note in the result what became of each."""
        waiting = self.intake.hints.failing_last(window.seqs())
        turns = Turns()
        begun = self._begin(window, waiting, _once, (turns, budget.part(FIRST_TRIES)))
        failing = [queue for queue, hint in begun.items() if isinstance(hint, StoreUnavailable)]
        ready = {queue: hint for queue, hint in begun.items() if not isinstance(hint, StoreUnavailable)}
        self._serve(window, ready, budget, result)
        if failing:
            # All of them together have one deadline, and leave half of the time for what can be begun.
            again, part = self.intake.hints.failing_last(failing), budget.part(FIRST_TRIES)
            self._serve(window, self._begin(window, again, self._shared(part), (turns, part)), budget, result)
        for document, outcome in window.told():
            result.count(outcome, document)

    def _begin(
        self, window: Window, queues: list[str], seconds: Callable[[], float], timing: tuple[Turns, TimeBudget]
    ) -> Begun:
        """Begin queues, each once; a queue whose turn does not come in time is not tried."""
        seqs, intake = window.seqs(), self.intake
        turns, budget = timing

        def begin(queue: str) -> Hint | StreamSortError:
            call = partial(tried, lambda: intake.begin(queue, seqs[queue], intake.learn(queue)))
            hint = turns.take(budget, call)
            if isinstance(hint, StoreUnavailable):
                intake.hints.note_failing(queue)
            return hint or out_of_time(queue)

        with time_limit(seconds):
            return dict(zip(queues, self.in_flight.map(begin, queues), strict=True))

    def _serve(self, window: Window, begun: Begun, budget: TimeBudget, result: PutResult) -> None:
        """Store and release the messages of queues that were begun."""
        window.hints.update(begun)
        with time_limit(self._shared(budget)):
            self.intake.store_window(window, begun, lambda: budget.is_over)
        taken = window.taken(begun)
        size = max((message.size for message in window.messages_of(taken).values()), default=0)
        walks = {queue: self.advancer.walk(queue, own, size) for queue, own in taken.items()}
        reached = self._release(walks, window.hints, budget)
        rows = {queue: reach.cursor for queue, reach in reached.items() if isinstance(reach, Reach)}
        with time_limit(budget.left_at_the_end):
            self.intake.confirm_window(window, rows)
        for queue, reach in reached.items():
            if isinstance(reach, Reach):
                result.join(reach.advance)
                result.unreleased += [] if reach.complete else [queue]
            elif reach is not None:
                result.stalled.append((queue, reach))
        self._count_disorder(window, taken, reached, result)

    def _release(
        self, walks: Mapping[str, Walk], hints: Mapping[str, Hint | StreamSortError], budget: TimeBudget
    ) -> Reached:
        """Advance queues side by side; those that the time does not suffice for are marked for the sweep."""
        known = {queue: hint for queue in walks if isinstance(hint := hints[queue], Hint)}
        reached = self._turn(walks, walks, known, _once, budget)
        pending = [queue for queue, reach in reached.items() if reach is None or isinstance(reach, StoreUnavailable)]
        seconds = self._shared(budget)
        while pending and not budget.is_over:
            reached |= self._turn(walks, pending, {}, seconds, budget)
            pending = [queue for queue in pending if reached[queue] is None]
        left = [queue for queue, reach in reached.items() if reach is None or _failed_for_now(reach, budget)]
        with time_limit(budget.left_at_the_end):
            marked = self.in_flight.map(lambda queue: tried(partial(self.advancer.leave, walks[queue])), left)
        return reached | dict(zip(left, marked, strict=True))

    def _turn(
        self,
        walks: Mapping[str, Walk],
        queues: Iterable[str],
        hints: Mapping[str, Hint],
        seconds: Callable[[], float],
        budget: TimeBudget,
    ) -> Reached:
        """Let each queue make some moves."""

        def go_on(queue: str) -> Reach | StreamSortError | None:
            walk = walks[queue]
            end = walk.moves + (MOVES_A_TURN if walk.moves else FIRST_MOVES)
            is_over = lambda: walk.moves >= end or budget.is_over  # noqa: E731  # for this turn only
            return tried(lambda: self.advancer.go_on(walk, hints.get(queue), is_over))

        jobs = list(queues)
        with time_limit(seconds):
            return dict(zip(jobs, self.in_flight.map(go_on, jobs), strict=True))

    def _count_disorder(
        self, window: Window, taken: Mapping[str, set[int]], reached: Reached, result: PutResult
    ) -> None:
        """Count the accepted messages that came after one with a higher seq, as far as this call saw that."""
        highest = {queue: _highest_of_others(reached[queue], own) for queue, own in taken.items()}
        for index, message in window.messages_of(taken).items():
            if window.outcomes[index] is Status.ACCEPTED:
                queue = message.queue
                if message.seq < highest[queue]:
                    result.out_of_order[queue] = result.out_of_order.get(queue, 0) + 1
                highest[queue] = max(highest[queue], message.seq)

    def _shared(self, budget: TimeBudget) -> Callable[[], float]:
        """What is left of one deadline that begins now, or of the budget."""
        end = self.monotonic() + self.deadline
        return lambda: min(end - self.monotonic(), budget.left())


def _once() -> float:
    """The time limit of a first try: no retry."""
    return 0.0


def _highest_of_others(reach: Reach | StreamSortError | None, own: set[int]) -> float:
    """Return the highest seq that an advance saw and that others stored, -inf if it saw none."""
    seen = (reach.cursor.position, reach.beyond) if isinstance(reach, Reach) else ()
    return max((seq for seq in seen if seq is not None and seq not in own), default=-math.inf)


def _failed_for_now(reach: Reach | StreamSortError | None, budget: TimeBudget) -> bool:
    """Return True for a queue that only needs a mark: its messages are stored, and whoever calls has little time."""
    return isinstance(reach, StoreUnavailable) and budget.is_limited
