"""Service: nudge the queues of consumers that sleep, in the time that a sweep has left."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from stream_sort.errors import StoreMisconfigured, StoreUnavailable, StreamSortError, named_error
from stream_sort.upkeep.visits import FOR_TELLING, Allowance, batches

if TYPE_CHECKING:
    from stream_sort.ports import Lagging
    from stream_sort.release.queues import Queues
    from stream_sort.upkeep.sweep import Sweep

# The share that is left for nudges and for telling when all time for finding out who sleeps is used up.
FOR_NUDGES = 0.3


class Nudges:
    """The nudges of one sweep; `lagging` names the queues, and what comes of it is noted in `done`."""

    def __init__(self, queues: Queues, lagging: Lagging, time: Allowance, done: Sweep) -> None:
        self._queues = queues
        self._lagging = lagging
        self._time = time
        self._calls = time.calls(FOR_TELLING, queues.deadline)
        self._done = done

    def send(self, now: float) -> None:
        """Nudge the queues of sleeping consumers; after the gaps, whose policies need no control table."""
        done, time = self._done, self._time
        try:
            with time.keeping(FOR_NUDGES):
                queues = list(self._lagging.lagging(now))
        except Exception as error:  # noqa: BLE001  # I7: what the sweep did so far is not lost for it
            done.watch_error = named_error("(all)", error)
            return
        failed: dict[str, StreamSortError] = {}
        with self._calls.once():
            self._nudge_all(turned(queues, now), failed, is_first=True)
        unavailable = [queue for queue, error in failed.items() if isinstance(error, StoreUnavailable)]
        with self._calls.patiently():
            self._nudge_all(unavailable, failed, is_first=False)
        done.add_failed(failed.items())
        with time.keeping(FOR_TELLING):
            self._settle([*done.nudged, *(queue for queue, error in failed.items() if _is_its_own(error))])

    def _nudge_all(self, queues: list[str], failed: dict[str, StreamSortError], *, is_first: bool) -> None:
        """Nudge queues while there is time, and note those that failed."""
        nudge = partial(self._nudge, is_first=is_first)
        for batch in batches(queues):
            answers = self._queues.in_flight.map(nudge, batch)
            for queue, answer in zip(batch, answers, strict=True):
                if isinstance(answer, StreamSortError):
                    failed[queue] = answer
                elif answer:
                    failed.pop(queue, None)
                    self._done.nudged.append(queue)
            if False in answers:
                self._done.complete = False
                break

    def _nudge(self, queue: str, *, is_first: bool) -> bool | StreamSortError:
        """Nudge a queue; return False if there is no time for it. What hung at its first try may do so again."""
        left = self._calls.budget.left()
        if left < 0 or not self._calls.hang.fits(left):
            return False
        try:
            self._queues.nudge(queue)
        except Exception as error:  # noqa: BLE001  # I7, as above
            if is_first:
                self._calls.note_hang(left)
            return named_error(queue, error)
        return True

    def _settle(self, queues: list[str]) -> None:
        """Name the queues that are done with to whoever asked for them, and note what that could not look at.

        Not if that may hang for longer than there is time: the next look begins where this one did.
        """
        try:
            were_nudged = getattr(self._lagging, "were_nudged", None)
            if callable(were_nudged) and self._calls.suffices_at_the_end():
                were_nudged(tuple(queues))
        except Exception as error:  # noqa: BLE001  # I7, as above
            self._done.watch_error = named_error("(all)", error)
        self._done.watch_error = self._done.watch_error or getattr(self._lagging, "problem", None)
        self._done.add_failed(getattr(self._lagging, "damaged", ()))


def _is_its_own(error: StreamSortError) -> bool:
    """Return True if a queue's own trouble keeps it from being nudged, such as a lost row: no later sweep can."""
    return not isinstance(error, StoreUnavailable | StoreMisconfigured)


def turned(queues: list[str], now: float) -> list[str]:
    """Return the same queues from another one on.

    From which one is a hash of the time: sweeps come at regular times, and what goes by the time itself comes round to
    the same few queues.
    """
    hashed = int.from_bytes(blake2b(repr(now).encode(), digest_size=8).digest())
    start = hashed % len(queues) if queues else 0
    return queues[start:] + queues[:start]
