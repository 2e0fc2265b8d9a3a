"""Every consumer of a queue as it stands: how far it is, and whether it works, is parked or is stuck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.cli.overview import consumers_of, lag_of
from stream_sort.errors import RowDamaged
from stream_sort.model.precaution import is_in_hand
from stream_sort.model.records import Cursor
from stream_sort.upkeep.lag_finder import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.cli.connection import Connection
    from stream_sort.errors import StreamSortError
    from stream_sort.model.consumption import Checkpoint, DeadLetter, Parked, Subscription
    from stream_sort.model.outcomes import QueueState
    from stream_sort.ports import ControlStore
    from stream_sort.sorter import Sorter

UP_TO_DATE, WORKING, WOKEN, STUCK, PARKED = "up to date", "working", "woken", "stuck", "parked"


@dataclass(frozen=True, slots=True)
class QueueReader:
    """One consumer in one queue. Times are seconds since the epoch.

    `state` is "up to date", "working", "woken" (what is due was released a moment ago), "stuck" or "parked". `due` is
    the first seq that it has not done, and `due_since` is since when that waits for it; None if nothing is due.
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


def readers_of(
    connection: Connection, state: QueueState, unreadable: dict[str, StreamSortError]
) -> Iterator[QueueReader]:
    """Look at each consumer of a queue, by name; one more read for each that is behind.

    Those whose rows cannot be read are noted in `unreadable`.
    """
    if connection.control is None:
        return
    sorter = connection.sorter
    control = sorter.stores.control(connection.control)
    for consumer in consumers_of(control, unreadable):
        try:
            yield _reader(sorter, control, consumer, state)
        except RowDamaged as error:
            unreadable[consumer.name] = error


def _reader(sorter: Sorter, control: ControlStore, consumer: Subscription, state: QueueState) -> QueueReader:
    standing = control.standing(consumer.name, state.queue)
    row = standing.cursor or Cursor(state.queue, state.position, state.first_seq)
    there = standing.checkpoint
    lag = lag_of(row, consumer, there)
    due = row.position - lag + 1 if lag else None
    since = None if due is None else _came_at(sorter, row, due)
    at = None if there is None else there.committed_at
    # The row of a consumer that begins has the time at which it was made.
    began_at, committed_at = (at, None) if there is not None and there.version == 0 else (None, at)
    return QueueReader(
        consumer.name,
        None if there is None else there.seq,
        lag,
        None if there is None else there.parked,
        control.dead_letters_of(consumer.name, state.queue),
        control.dead_letters_of(consumer.name, state.queue, discarded=True),
        _state(there, since, sorter.clock()),
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


def _came_at(sorter: Sorter, row: Cursor, seq: int) -> float:
    """Return when the first seq that is due was stored: for a consumer that was up to date, its queue waited for it.

    The cursor tells when it moved, where the item does not: others wrote it, or it is gone.
    """
    items = sorter.stores.items.page(row.queue, seq - 1, seq, 1).items
    arrived = items[0].arrived_at if items else None
    return arrived if arrived is not None else row.moved_at or 0.0
