"""How all queues stand: cursor rows and checkpoints, each read once, and the two slots at each position."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream_sort.cli.checkup.slots import taken_slots
from stream_sort.cli.overview import consumers_of, cursor_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stream_sort.cli.checkup.slots import Slot
    from stream_sort.cli.connection import Connection
    from stream_sort.core.consumption import Checkpoint, DeadLetterPage, Parked, Subscription
    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore
    from stream_sort.sorter import Sorter

# A writer stores before it advances: only a queue that stays like that is stuck.
PAUSE = 1.0
# So many suspects are looked at again; who has more has one cause, not many.
LOOKED_AT_AGAIN = 200


@dataclass(frozen=True, slots=True)
class Standings:
    """All queues at one moment. What is in trouble is certain: it was looked at twice.

    `stuck`: the next seq is stored; `hollow`: the item at the position is not; `ahead`: checkpoints beyond positions;
    `lost`: parked queues without a cursor row; `dead`: the first page of dead letters.
    """

    now: float
    rows: Mapping[str, Cursor]
    checkpoints: Mapping[Subscription, Mapping[str, Checkpoint]] = field(default_factory=dict)
    stuck: tuple[Cursor, ...] = ()
    hollow: tuple[Cursor, ...] = ()
    ahead: tuple[Checkpoint, ...] = ()
    waiting: tuple[Cursor, ...] = ()
    lost: tuple[Parked, ...] = ()
    dead: Mapping[Subscription, DeadLetterPage] = field(default_factory=dict)


def read_standings(
    connection: Connection, pattern: str, old_gap: float, sleep: Callable[[float], None] = time.sleep
) -> Standings:
    """Look at all queues that match, and again at those that seem to be in trouble."""
    sorter = connection.sorter
    rows = {row.queue: row for row in cursor_rows(sorter) if fnmatchcase(row.queue, pattern)}
    taken = taken_slots(connection, (slot for row in rows.values() for slot in _asked(row)))
    control = None if connection.control is None else sorter.stores.control(connection.control)
    known = {} if control is None else {one: control.checkpoints(one.name, list(rows)) for one in consumers_of(control)}
    stuck = [row for row in rows.values() if (row.queue, row.position + 1) in taken]
    if stuck:
        sleep(PAUSE)
    now = sorter.clock()
    return Standings(
        now,
        rows,
        known,
        tuple(row for row in stuck[:LOOKED_AT_AGAIN] if _is_stuck(sorter, row)),
        tuple(row for row in _hollow(rows.values(), taken)[:LOOKED_AT_AGAIN] if _is_hollow(sorter, row)),
        tuple(one for one in _ahead(rows, known)[:LOOKED_AT_AGAIN] if _is_ahead(sorter, one)),
        tuple(row for row in _waiting(rows.values(), now - old_gap)[:LOOKED_AT_AGAIN] if _waits(sorter, row)),
        tuple(_lost(sorter, control, known, pattern)) if control is not None else (),
        {} if control is None else {one: control.dead_letters(one.name) for one in known},
    )


def _asked(row: Cursor) -> list[Slot]:
    """The slot at the position, unless it is trimmed or before the start, and the one after it."""
    return [(row.queue, seq) for seq in (row.position, row.position + 1) if seq > row.start]


def _hollow(rows: Iterable[Cursor], taken: set[Slot]) -> list[Cursor]:
    return [row for row in rows if row.position > row.start and (row.queue, row.position) not in taken]


def _ahead(rows: Mapping[str, Cursor], known: Mapping[Subscription, Mapping[str, Checkpoint]]) -> list[Checkpoint]:
    return [one for found in known.values() for one in found.values() if one.seq > rows[one.queue].position]


def _waiting(rows: Iterable[Cursor], since: float) -> list[Cursor]:
    waits = [row for row in rows if row.gap_since is not None and row.gap_since <= since]
    return sorted(waits, key=lambda row: row.gap_since or 0.0)


def _lost(sorter: Sorter, control: ControlStore, consumers: Iterable[Subscription], pattern: str) -> Iterator[Parked]:
    """Only who was about to read a queue knows that it has lost its row: it is listed as parked."""
    for consumer in consumers:
        for one in control.parked(consumer.name).parked:
            if one.damaged and fnmatchcase(one.queue, pattern) and sorter.stores.cursors.get(one.queue) is None:
                yield one


def _is_stuck(sorter: Sorter, row: Cursor) -> bool:
    head = sorter.stores.heads.peek(row.queue, row.position + 1)
    return head.taken and head.cursor is not None and head.cursor.position == row.position


def _is_hollow(sorter: Sorter, row: Cursor) -> bool:
    """Whether the slot at the position is empty, and not because of a trim: the row is read after the slot."""
    if row.position in sorter.stores.items.look(row.queue, row.position - 1, 1).seqs:
        return False
    there = sorter.stores.cursors.get(row.queue)
    return there is not None and there.start < row.position


def _is_ahead(sorter: Sorter, checkpoint: Checkpoint) -> bool:
    """Whether a position that is read after the checkpoint is still behind it."""
    there = sorter.stores.cursors.get(checkpoint.queue)
    return there is not None and there.position < checkpoint.seq


def _waits(sorter: Sorter, row: Cursor) -> bool:
    """Whether something is stored beyond the gap: the waiting mark may be one that the next sweep takes away."""
    highest = sorter.stores.items.highest(row.queue)
    there = sorter.stores.cursors.get(row.queue)
    return highest is not None and there is not None and there.position == row.position < highest
