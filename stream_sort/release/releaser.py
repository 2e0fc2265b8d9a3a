"""Service: advance many queues side by side, within the time there is. Stores nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.errors import InternalError, StoreUnavailable, StreamSortError
from stream_sort.release.queue_errors import HOPELESS, WRONG_TABLE, tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.ports.in_flight import InFlight
    from stream_sort.release.advancer import Advancer, Reach, Walk
    from stream_sort.release.position_cache import Hint
    from stream_sort.release.time_budget import CallTime

    # None for a queue that has more to release.
    Reached = Mapping[str, Reach | StreamSortError | None]

# How many moves of a cursor a queue may make before all others had their turn: few at first, as most need one.
FIRST_MOVES, MOVES_A_TURN = 3, 10


def out_of_time(queue: str) -> StoreUnavailable:
    """Return the error of a queue that was neither released nor marked, because others hung until time was short."""
    return StoreUnavailable(
        f"queue {queue!r}: not released, because other queues left no time for its turn; what is stored stays stored"
    )


@dataclass(frozen=True, slots=True)
class Releaser:
    """Advances queues. Neither one that fails nor one with a long backlog delays another."""

    advancer: Advancer
    in_flight: InFlight
    time: CallTime

    def release(self, walks: Mapping[str, Walk], hints: Mapping[str, Hint]) -> dict[str, Reach | StreamSortError]:
        """Advance queues as far as they go, or as the time does: those with more to release are marked for the sweep.

        What fails is tried once, and again after all others. Where time is limited, a queue that still fails is marked
        as well; its error is the answer only if that fails, too. Errors that no queue escapes are answers as well:
        raise them once all had their turn.
        """
        return self.finish(walks, self.begin(walks, hints))

    def begin(self, walks: Mapping[str, Walk], hints: Mapping[str, Hint]) -> Reached:
        """Give each queue a first turn, tried once; return what `finish` goes on from."""
        with self.time.once():
            return self._turn(walks, self.advancer.hints.failing_last(walks), hints, is_first=True)

    def finish(self, walks: Mapping[str, Walk], begun: Reached) -> dict[str, Reach | StreamSortError]:
        """Go on with queues that had their first turn, as `release` says."""
        reached = dict(begun)
        pending = [queue for queue, reach in reached.items() if reach is None or isinstance(reach, StoreUnavailable)]
        while pending and not self.time.is_over() and self.time.suffices():
            # What fails now is not tried again; what moves on has the deadline anew.
            with self.time.patiently():
                reached |= self._turn(walks, pending, {}, is_first=False)
            pending = [queue for queue in pending if reached[queue] is None]
        return self._settled(walks, reached)

    def _turn(
        self, walks: Mapping[str, Walk], queues: Iterable[str], hints: Mapping[str, Hint], *, is_first: bool
    ) -> Reached:
        """Let each queue make some moves; None for one that has more to release.

        None is tried after one that met a table that is not there: all queues share their tables. Nor is one tried that
        would fail too late if it hung as others did at their first turn, where what fails is tried once.
        """
        wrong: list[StreamSortError] = []

        def go_on(queue: str) -> Reach | StreamSortError | None:
            if wrong:
                return wrong[0]
            walk, before = walks[queue], self.time.budget.left()
            if not (self.time.suffices_at_the_end() if is_first else self.time.suffices()):
                return None if walk.exists else out_of_time(queue)
            end = walk.moves + (MOVES_A_TURN if walk.moves else FIRST_MOVES)
            is_over = lambda: walk.moves >= end or self.time.is_over()  # noqa: E731  # for this turn only
            reach = tried(queue, lambda: self.advancer.go_on(walk, hints.get(queue), is_over))
            if isinstance(reach, WRONG_TABLE):
                wrong.append(reach)
            if isinstance(reach, StoreUnavailable) and is_first:
                self.time.note_hang(before)
                self.advancer.hints.note_failing(queue)
            return reach

        jobs = list(queues)
        return dict(zip(jobs, self.in_flight.map(go_on, jobs), strict=True))

    def _settled(self, walks: Mapping[str, Walk], reached: Reached) -> dict[str, Reach | StreamSortError]:
        """Mark what is not finished; a queue of which no row was seen has nothing to be marked."""
        done = {queue: reach for queue, reach in reached.items() if reach is not None}
        left = [queue for queue in reached if queue not in done]
        left += self._standing(walks, done, (StoreUnavailable,)) if self.time.budget.is_limited else []
        # Who comes too late for marks loses nothing by trying: what is not marked comes again.
        leave = partial(self._leave, walks, is_late=self.time.is_over_at_the_end())
        with self.time.at_the_end():
            marked = self.in_flight.map(leave, left)
            # These stay errors, so that somebody hears of them.
            failed = self._standing(walks, done, (*HOPELESS, InternalError))
            lost = [queue for queue in failed if not isinstance(done[queue], WRONG_TABLE)]
            self.in_flight.map(leave, lost)
        return done | dict(zip(left, marked, strict=True))

    def _leave(self, walks: Mapping[str, Walk], queue: str, *, is_late: bool) -> Reach | StreamSortError:
        if not self.time.suffices_at_the_end() or (self.time.is_over_at_the_end() and not is_late):
            return out_of_time(queue)
        return tried(queue, partial(self.advancer.leave, walks[queue]))

    def _standing(
        self, walks: Mapping[str, Walk], done: Mapping[str, object], kinds: tuple[type[Exception], ...]
    ) -> list[str]:
        """Return the queues that failed with one of these errors after their row was seen."""
        return [queue for queue, reach in done.items() if isinstance(reach, kinds) and walks[queue].exists]
