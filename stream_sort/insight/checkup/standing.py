"""How all queues stand: cursor rows and checkpoints, each read once, and the two slots at each position."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stream_sort.errors import RowDamaged, StoreMisconfigured, named_error
from stream_sort.insight.doubts import settle_doubts
from stream_sort.insight.overview import consumers_of
from stream_sort.insight.rows import cursor_rows
from stream_sort.model.consumption import Checkpoint
from stream_sort.model.records import Cursor
from stream_sort.release.gap_age import head_gap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stream_sort.errors import StreamSortError
    from stream_sort.insight.doubts import Settled
    from stream_sort.insight.sources import Sources
    from stream_sort.model.consumption import DeadLetterPage, Parked, Subscription
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap
    from stream_sort.ports import ControlStores

Suspect = TypeVar("Suspect", Cursor, Checkpoint)
Place = tuple[str, int]
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
    `unreadable`: consumers whose registrations cannot be read; `gap_policy` is that of queues without one of their own.
    """

    now: float
    gap_policy: GapPolicy
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
    sources: Sources, pattern: str, old_gap: float, sleep: Callable[[float], None] = time.sleep
) -> Standings:
    """Look at all queues that match, and again at those that seem to be in trouble."""
    damaged: dict[str, StreamSortError] = {}
    rows = {row.queue: row for row in cursor_rows(sources, damaged) if fnmatchcase(row.queue, pattern)}
    taken = sources.items.taken([slot for row in rows.values() for slot in _asked(row)])
    _leave_out(rows, taken.damaged, damaged)
    control = sources.control
    unreadable: dict[str, StreamSortError] = {}
    known = {} if control is None else _checkpoints(control, rows, damaged, unreadable)
    stuck = [row for row in rows.values() if (row.queue, row.position + 1) in taken.slots]
    if stuck:
        sleep(PAUSE)
    now = sources.clock()
    again = _SecondLook(sources)
    return Standings(
        now,
        sources.gap_policy,
        rows,
        known,
        tuple(again.certain(stuck, _is_stuck)),
        tuple(again.certain(_hollow(rows.values(), taken.slots), _is_hollow)),
        tuple(again.certain(_ahead(rows, known), _is_ahead)),
        tuple(again.measured(_waiting(rows.values(), now - old_gap), now, old_gap)),
        tuple(_lost(sources, control, known, pattern)) if control is not None else (),
        {} if control is None else {one: control.dead_letters.listed(one.name) for one in known},
        (*((queue, error) for queue, error in damaged.items() if fnmatchcase(queue, pattern)), *again.failed),
        settle_doubts(sources, rows.values(), now),
        unreadable,
    )


class _SecondLook:
    """Looks again at suspects, one by one; an error in one, a bug of ours included, is noted and stops no other."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.failed: list[tuple[str, StreamSortError]] = []

    def certain(self, suspects: list[Suspect], is_so: Callable[[Sources, Suspect], bool]) -> Iterator[Suspect]:
        """Yield those of which it is still so."""
        for one in suspects[:LOOKED_AT_AGAIN]:
            if self._tried(one, partial(is_so, self._sources, one)):
                yield one

    def measured(self, suspects: list[Cursor], now: float, old_gap: float) -> Iterator[Cursor]:
        """Yield those that still wait at a gap so old, with the gap as it is by what is stored beyond it."""
        for row in suspects[:LOOKED_AT_AGAIN]:
            gap = self._tried(row, partial(_gap_of, self._sources, row, now))
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
    control: ControlStores,
    rows: dict[str, Cursor],
    damaged: dict[str, StreamSortError],
    unreadable: dict[str, StreamSortError],
) -> dict[Subscription, dict[str, Checkpoint]]:
    """Read the checkpoints of all consumers; a queue of which one cannot be read is noted, and left out of all."""
    read = {one: control.checkpoints.of_queues(one.name, list(rows)) for one in consumers_of(control, unreadable)}
    for found in read.values():
        _leave_out(rows, found.damaged, damaged)
    return {one: {queue: row for queue, row in found.rows.items() if queue in rows} for one, found in read.items()}


def _leave_out(
    rows: dict[str, Cursor], failed: Mapping[str, StreamSortError], damaged: dict[str, StreamSortError]
) -> None:
    damaged |= failed
    for queue in failed:
        rows.pop(queue, None)


def _asked(row: Cursor) -> list[Place]:
    """Return the slot at the position, unless it is trimmed or before the start, and the one after it."""
    return [(row.queue, seq) for seq in (row.position, row.position + 1) if seq > row.start]


def _hollow(rows: Iterable[Cursor], taken: set[Place]) -> list[Cursor]:
    return [row for row in rows if row.position > row.start and (row.queue, row.position) not in taken]


def _ahead(rows: Mapping[str, Cursor], known: Mapping[Subscription, Mapping[str, Checkpoint]]) -> list[Checkpoint]:
    return [one for found in known.values() for one in found.values() if one.seq > rows[one.queue].position]


def _waiting(rows: Iterable[Cursor], since: float) -> list[Cursor]:
    waits = [row for row in rows if row.gap_since is not None and row.gap_since <= since]
    return sorted(waits, key=lambda row: row.gap_since or 0.0)


def _lost(
    sources: Sources, control: ControlStores, consumers: Iterable[Subscription], pattern: str
) -> Iterator[Parked]:
    """Find queues that have lost their rows; only who was about to read one knows: it is listed as parked."""
    for consumer in consumers:
        for one in control.checkpoints.parked(consumer.name).parked:
            if one.damaged and fnmatchcase(one.queue, pattern) and _has_no_row(sources, one.queue):
                yield one


def _has_no_row(sources: Sources, queue: str) -> bool:
    try:
        return sources.cursors.get(queue) is None
    except RowDamaged:
        # It is there, and named as one that cannot be read.
        return False


def _is_stuck(sources: Sources, row: Cursor) -> bool:
    head = sources.heads.peek(row.queue, row.position + 1)
    return head.taken and head.cursor is not None and head.cursor.position == row.position


def _is_hollow(sources: Sources, row: Cursor) -> bool:
    """Return True if the slot at the position is empty, and not because of a trim: the row is read after the slot."""
    if any(row.position in slot.seqs for slot in sources.items.arrivals_below(row.queue, row.position + 1, 1).slots):
        return False
    there = sources.cursors.get(row.queue)
    return there is not None and there.start < row.position


def _is_ahead(sources: Sources, checkpoint: Checkpoint) -> bool:
    """Return True if a position that is read after the checkpoint is still behind it."""
    there = sources.cursors.get(checkpoint.queue)
    return there is not None and there.position < checkpoint.seq


def _gap_of(sources: Sources, row: Cursor, now: float) -> Gap | None:
    """Return the gap at which a queue still waits; the waiting mark may be one that the next sweep takes away."""
    there = sources.cursors.get(row.queue)
    if there is None or there.position != row.position:
        return None
    return head_gap(sources.items, there, now)
