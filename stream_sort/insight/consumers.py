"""Consumers as they stand: each over all queues, and all of one queue, with whether it works, is parked or is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import RowDamaged
from stream_sort.insight.overview import consumers_of, dead_letters_by_queue, lag_of
from stream_sort.model.records import Cursor
from stream_sort.model.retries import is_in_hand, is_trouble
from stream_sort.upkeep.lag_finder import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.insight.sources import Sources
    from stream_sort.model.consumption import Checkpoint, DeadLetter, Parked, Subscription
    from stream_sort.model.outcomes import QueueState
    from stream_sort.ports import ControlStores, ItemStore

UP_TO_DATE, WORKING, WOKEN, STUCK, PARKED = "up to date", "working", "woken", "stuck", "parked"
NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class QueueReader:
    """One consumer in one queue. Times are seconds since the epoch.

    `state` is "up to date", "working", "woken" (what is due was released a moment ago), "stuck", "parked", or "not
    begun" (it is the stack's own, and has not run yet). `due` is the first seq that it has not done, and `due_since` is
    since when that waits for it; None if nothing is due.
    `began_at` is when it began here, of one that has not committed yet.
    """

    name: str
    checkpoint: int | None
    lag: int
    parked: Parked | None
    dead_letters: list[DeadLetter]
    discarded: list[DeadLetter]
    state: str
    committed_at: float | None
    due: int | None
    due_since: float | None
    began_at: float | None = None


@dataclass(frozen=True, slots=True)
class ConsumerSummary:
    """One consumer over all queues. `behind` is in how many it lags; times are seconds since the epoch.

    `retired_at` is when it was retired, None if it is not.
    """

    consumer: str
    start: str
    since: float
    queues: int
    behind: int
    lag: int
    parked: int
    dead: int
    committed_at: float | None
    retired_at: float | None = None


def summary_of(
    control: ControlStores,
    one: Subscription,
    rows: Sequence[Cursor],
    left_out: dict[str, StreamSortError],
    *,
    now: float,
) -> ConsumerSummary:
    """Sum up one consumer; queues whose checkpoints cannot be read are noted in `left_out`, with the error."""
    found = control.checkpoints.of_queues(one.name, [row.queue for row in rows])
    left_out |= {f"queue {queue} of consumer {one.name}": error for queue, error in found.damaged.items()}
    there = found.rows
    lags = [lag_of(row, one, there.get(row.queue)) for row in rows if row.queue not in found.damaged]
    return ConsumerSummary(
        consumer=one.name,
        start=one.start,
        since=one.since,
        queues=len(rows),
        behind=sum(lag > 0 for lag in lags),
        lag=sum(lags),
        parked=sum(row.parked is not None and is_trouble(row.parked, now) for row in there.values()),
        dead=dead_letters_by_queue(control, one.name).total(),
        committed_at=max((row.committed_at or 0.0 for row in there.values()), default=0.0) or None,
        retired_at=one.retired_at,
    )


def readers_of(sources: Sources, state: QueueState, unreadable: dict[str, StreamSortError]) -> Iterator[QueueReader]:
    """Look at each consumer of a queue, by name; one more read for each that is behind.

    Those whose rows cannot be read are noted in `unreadable`.
    """
    control = sources.control
    if control is None:
        return
    for consumer in consumers_of(control, unreadable, sources.own):
        try:
            yield _reader(sources, control, consumer, state)
        except RowDamaged as error:
            unreadable[consumer.name] = error


def _reader(sources: Sources, control: ControlStores, consumer: Subscription, state: QueueState) -> QueueReader:
    standing = control.checkpoints.standing(consumer.name, state.queue)
    row = standing.cursor or Cursor(state.queue, state.position, state.first_seq)
    there = standing.checkpoint
    lag = lag_of(row, consumer, there)
    due = row.position - lag + 1 if lag else None
    since = None if due is None else _came_at(sources.items, row, due)
    at = None if there is None else there.committed_at
    # The row of a consumer that begins has the time at which it was made.
    began_at, committed_at = (at, None) if there is not None and there.version == 0 else (None, at)
    return QueueReader(
        consumer.name,
        None if there is None else there.seq,
        lag,
        None if there is None else there.parked,
        control.dead_letters.of_queue(consumer.name, state.queue),
        control.dead_letters.of_queue(consumer.name, state.queue, discarded=True),
        NOT_BEGUN
        if sources.own is not None and consumer == sources.own.unbegun
        else _state(there, since, sources.clock()),
        committed_at,
        due,
        since,
        began_at,
    )


def _state(there: Checkpoint | None, due_since: float | None, now: float) -> str:
    parked = None if there is None else there.parked
    if parked is not None:
        # Parked in case the process dies of it: until the time of that is over, the message is being handled.
        return WORKING if is_in_hand(parked, now) else PARKED
    if due_since is None:
        return UP_TO_DATE
    if there is not None and there.committed_at is not None and now - there.committed_at < PATIENCE:
        return WORKING
    return WOKEN if now - due_since < PATIENCE else STUCK


def _came_at(items: ItemStore, row: Cursor, seq: int) -> float:
    """Return when the first seq that is due was stored: for a consumer that was up to date, its queue waited for it.

    The cursor tells when it moved, where the item does not: others wrote it, or it is gone.
    """
    found = items.holding(row.queue, seq)
    arrived = None if found is None else found.at(seq).arrived_at
    return arrived if arrived is not None else row.moved_at or 0.0
