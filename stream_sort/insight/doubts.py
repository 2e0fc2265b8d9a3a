"""Queues that moved after they were seen to wait, or that no sweep has measured: their rows do not tell for how long.

One small read of each settles it: bounded, those that may have waited longest first, several reads at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import OtherKeys, StoreMisconfigured, StreamSortError
from stream_sort.model.ordering import run_through
from stream_sort.model.slots import expand
from stream_sort.release.gap_age import UNDER_WAY
from stream_sort.release.queue_errors import tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stream_sort.insight.sources import Sources
    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import ItemStore

Job = TypeVar("Job")
Answer = TypeVar("Answer")

# So many queues are read at most: each costs a request, and a sweep looks at all of them within a minute or so.
DOUBTS = 100
# So many slots beyond a position are read: the first shows whether the queue waits, a few more for how long.
SLOTS = 25
# No queue escapes these.
HOPELESS = (StoreMisconfigured, OtherKeys)


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of one read: `since` is None if the queue does not wait; `error` if it could not be read."""

    since: float | None = None
    error: StreamSortError | None = None


def settle_doubts(sources: Sources, rows: Iterable[Cursor], now: float) -> dict[str, Settled]:
    """Return what a read shows of the queues that no sweep has measured, as far as the bound goes.

    A queue with a long backlog that is about to be released stays in doubt.
    """
    unmeasured = (row for row in rows if row.is_marked and not row.is_measured)
    # A mark may be of a tombstone, for which nobody waits: so it is read even if the queue did not move.
    doubted = sorted(unmeasured, key=lambda row: (not row.in_doubt, row.gap_since or now))[:DOUBTS]
    answers = ask_each(sources, partial(_settled, sources.items, now), doubted)
    return {row.queue: answer for row, answer in zip(doubted, answers, strict=True) if answer is not None}


def ask_each(sources: Sources, ask: Callable[[Job], Answer], jobs: Sequence[Job]) -> list[Answer]:
    """Return the answers, in order; the first is asked alone, so that a table that is not there is met once."""
    return [*map(ask, jobs[:1]), *sources.in_flight.map(ask, jobs[1:])]


def _settled(items: ItemStore, now: float, row: Cursor) -> Settled | None:
    answer = tried(row.queue, partial(_look, items, now, row))
    if isinstance(answer, HOPELESS):
        raise answer
    return Settled(error=answer) if isinstance(answer, StreamSortError) else answer


def _look(items: ItemStore, now: float, row: Cursor) -> Settled | None:
    page = items.arrivals(row.queue, row.position, SLOTS)
    # What follows the position without a gap was released since the row was read, or is about to be.
    end = run_through(row.position, (slot.seqs for slot in page.slots))
    times = [_arrived(entry, now) for entry in expand(page.slots, end) if not entry.is_tombstone]
    if times:
        return Settled(min(times))
    return None if page.more else Settled()


def _arrived(entry: Entry, now: float) -> float:
    """Return when a message arrived; one without a time, or far ahead of now, arrived now, as for a sweep."""
    return now if entry.arrived_at is None or entry.arrived_at > now + UNDER_WAY else entry.arrived_at
