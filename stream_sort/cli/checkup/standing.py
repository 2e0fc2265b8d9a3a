"""How all queues stand: cursor rows and checkpoints, each read once, and the two slots at each position."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stream_sort.cli.doubts import settle
from stream_sort.cli.overview import consumers_of, cursor_rows
from stream_sort.errors import RowDamaged, StoreMisconfigured, named_error
from stream_sort.model.consumption import Checkpoint
from stream_sort.model.records import Cursor
from stream_sort.release.gap_age import head_gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stream_sort.cli.connection import Connection
    from stream_sort.cli.doubts import Settled
    from stream_sort.errors import StreamSortError
    from stream_sort.model.consumption import DeadLetterPage, Parked, Subscription
    from stream_sort.model.gaps import Gap
    from stream_sort.ports import ControlStore
    from stream_sort.sorter import Sorter

Suspect = TypeVar("Suspect", Cursor, Checkpoint)
Slot = tuple[str, int]
Answer = TypeVar("Answer")
# A writer stores before it advances: only a queue that stays like that is stuck.
PAUSE = 1.0
# So many suspects are looked at again; who has more has one cause, not many.
LOOKED_AT_AGAIN = 200


@dataclass(frozen=True, slots=True)
class Standings:
    """All queues at one moment. What is in trouble is certain: it was looked at twice.

    `stuck`: the next seq is stored; `hollow`: the item at the position is not; `ahead`: checkpoints beyond positions;
    `lost`: parked queues without a cursor row; `dead`: the first page of dead letters; `failed`: queues that could not
    be looked at, or not again, each with the error; `settled`: queues whose rows left a doubt, and what a read showed;
    `unreadable`: consumers whose registrations cannot be read.
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
    failed: tuple[tuple[str, StreamSortError], ...] = ()
    settled: Mapping[str, Settled] = field(default_factory=dict)
    unreadable: Mapping[str, StreamSortError] = field(default_factory=dict)


def read_standings(
    connection: Connection, pattern: str, old_gap: float, sleep: Callable[[float], None] = time.sleep
) -> Standings:
    """Look at all queues that match, and again at those that seem to be in trouble."""
    sorter = connection.sorter
    damaged: dict[str, StreamSortError] = {}
    rows = {row.queue: row for row in cursor_rows(sorter, damaged) if fnmatchcase(row.queue, pattern)}
    taken = sorter.stores.items.taken([slot for row in rows.values() for slot in _asked(row)])
    control = None if connection.control is None else sorter.stores.control(connection.control)
    unreadable: dict[str, StreamSortError] = {}
    known = {} if control is None else _checkpoints(control, rows, damaged, unreadable)
    stuck = [row for row in rows.values() if (row.queue, row.position + 1) in taken]
    if stuck:
        sleep(PAUSE)
    now = sorter.clock()
    again = _SecondLook(sorter)
    return Standings(
        now,
        rows,
        known,
        tuple(again.certain(stuck, _is_stuck)),
        tuple(again.certain(_hollow(rows.values(), taken), _is_hollow)),
        tuple(again.certain(_ahead(rows, known), _is_ahead)),
        tuple(again.measured(_waiting(rows.values(), now - old_gap), now, old_gap)),
        tuple(_lost(sorter, control, known, pattern)) if control is not None else (),
        {} if control is None else {one: control.dead_letters(one.name) for one in known},
        (*((queue, error) for queue, error in damaged.items() if fnmatchcase(queue, pattern)), *again.failed),
        settle(sorter, rows.values(), now),
        unreadable,
    )


class _SecondLook:
    """Looks again at suspects, one by one; an error in one, a bug of ours included, is noted and stops no other."""

    def __init__(self, sorter: Sorter) -> None:
        self._sorter = sorter
        self.failed: list[tuple[str, StreamSortError]] = []

    def certain(self, suspects: list[Suspect], is_so: Callable[[Sorter, Suspect], bool]) -> Iterator[Suspect]:
        """Those of which it is still so."""
        for one in suspects[:LOOKED_AT_AGAIN]:
            if self._tried(one, partial(is_so, self._sorter, one)):
                yield one

    def measured(self, suspects: list[Cursor], now: float, old_gap: float) -> Iterator[Cursor]:
        """Those that still wait at a gap so old, with the gap as it is by what is stored beyond it."""
        for row in suspects[:LOOKED_AT_AGAIN]:
            gap = self._tried(row, partial(_gap_of, self._sorter, row, now))
            if gap is not None and now - gap.since >= old_gap:
                yield replace(row, gap=gap)

    def _tried(self, one: Suspect, ask: Callable[[], Answer]) -> Answer | None:
        try:
            return ask()
        except StoreMisconfigured:
            # No queue can escape it.
            raise
        except Exception as error:  # noqa: BLE001  # I7
            self.failed.append((one.queue, named_error(one.queue, error)))
            return None


def _checkpoints(
    control: ControlStore,
    rows: dict[str, Cursor],
    damaged: dict[str, StreamSortError],
    unreadable: dict[str, StreamSortError],
) -> dict[Subscription, dict[str, Checkpoint]]:
    """Read the checkpoints of all consumers; a queue of which one cannot be read is noted, and left out of all."""
    read = {one: control.readable_checkpoints(one.name, list(rows)) for one in consumers_of(control, unreadable)}
    for found in read.values():
        damaged |= found.damaged
        for queue in found.damaged:
            rows.pop(queue, None)
    return {one: {queue: row for queue, row in found.rows.items() if queue in rows} for one, found in read.items()}


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
            if one.damaged and fnmatchcase(one.queue, pattern) and _has_no_row(sorter, one.queue):
                yield one


def _has_no_row(sorter: Sorter, queue: str) -> bool:
    try:
        return sorter.stores.cursors.get(queue) is None
    except RowDamaged:
        # It is there, and named as one that cannot be read.
        return False


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


def _gap_of(sorter: Sorter, row: Cursor, now: float) -> Gap | None:
    """The gap at which a queue still waits; the waiting mark may be one that the next sweep takes away."""
    there = sorter.stores.cursors.get(row.queue)
    if there is None or there.position != row.position:
        return None
    return head_gap(sorter.stores.items, there, now)
