"""What of each queue may be archived: released, consumed by everybody, and not archived yet. Knows no Spark."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.model.consumption import first_checkpoint
from stream_sort.model.message import MIN_SEQ
from stream_sort.model.records import Cursor
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.folder_state import FolderState, settled, with_data, without_plan
from stream_sort.replay.origins.archive.folders import FolderReader, with_true_end
from stream_sort.replay.origins.archive.manifest import deletable, first_seq, folder_of, is_manifest
from stream_sort.replay.origins.archive.plan import is_written
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stream_sort.errors import StreamSortError
    from stream_sort.model.consumption import Checkpoint, Subscription
    from stream_sort.ports import ControlStores, CursorStore
    from stream_sort.ports.archive import Archived, ArchiveMarks
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.archive.folder_state import Damage

TOGETHER = 100
EMPTY = FolderState((), (), ())


@dataclass(frozen=True, slots=True)
class Due:
    """How a queue stands: archived up to `after`, consumed by all up to `consumed`.

    `mark` is None where the control table has none; `held_by` is the consumer that is furthest behind. Where the
    archive has lost something, `after` is before that, and `lost` how far it went; what it was may be known.
    `unplanned` is whether segments may lie beyond `after` whose plan was lost, and `beyond` what is wrong with a plan
    or a mark that goes further than the queue is released. `elsewhere` is the archive that holds what was trimmed of a
    queue, where this one has nothing of it. `unread` says which row nobody can read: its cursor's, or a checkpoint's.
    """

    cursor: Cursor
    after: int
    consumed: int
    mark: Archived | None = None
    held_by: str = ""
    lost: int | None = None
    damage: Damage | None = None
    state: FolderState = EMPTY
    unplanned: bool = False
    beyond: str = ""
    elsewhere: str = ""
    unread: str = ""

    @classmethod
    def without_row(cls, queue: str, error: StreamSortError) -> Due:
        """Return how a queue stands whose cursor row cannot be read: nothing is known of it."""
        nowhere = MIN_SEQ - 1
        return cls(Cursor(queue, nowhere, MIN_SEQ), nowhere, nowhere, unread=str(error))

    @property
    def position(self) -> int | None:
        """How far the queue is released; None where nobody can tell."""
        return self.cursor.position if self.cursor.position >= MIN_SEQ else None

    @property
    def queue(self) -> str:
        """The queue."""
        return self.cursor.queue

    @property
    def began(self) -> int:
        """After which seq the archive begins: what is stored up to there is none of its."""
        known = [self.after, *(first - 1 for first in self.state.begins[:1])]
        return min([*known, *([] if self.mark is None or self.mark.began is None else [self.mark.began])])

    @property
    def lacks_watermark(self) -> bool:
        """Whether it is archived, and no watermark says so.

        A run died before it was set, the archive was moved, or the control table was restored to an earlier time.
        """
        if self.mark is None:
            return self.after > self.began and not self.problem
        return self.after > self.mark.watermark and self.lost is None and not self.problem

    @property
    def unmarked_segments(self) -> int:
        """The segments of plans that only lack their marks; those beyond `after` are yet to be counted."""
        return sum(len(plan.ends) for plan in self.state.unmarked if plan.through <= self.after)

    def step(self, wanted: Range) -> Range:
        """Return what one plan may hold of a range: none goes over another plan, or the mark of one."""
        room = self.state.room(wanted.after)
        return wanted if room is None else Range(wanted.queue, wanted.after, min(wanted.through, room))

    @property
    def range(self) -> Range:
        """What is to be archived; it may be empty. What was lost was consumed by all when it was archived."""
        ends = [self.after, self.consumed, *([] if self.lost is None else [self.lost])]
        return Range(self.queue, self.after, max(ends))

    @property
    def problem(self) -> str:
        """What keeps the archive from going on; empty if nothing does."""
        if self.unread:
            return self.unread
        if self.elsewhere:
            return (
                f"it is archived in {self.elsewhere} and trimmed up to seq {self.cursor.start}, and nothing of it is "
                "in this archive. Give the address of that one; to begin another all the same, run once without --trim"
            )
        if self.damage is not None and (self.after < self.cursor.start or not self.damage.planned):
            return f"the archive is damaged: {self.damage.problem}"
        if self.beyond or self.after >= self.cursor.start:
            return self.beyond
        if self.state.unfinished is not None:
            return (
                f"it is trimmed up to seq {self.cursor.start}, and the plan from seq {self.state.unfinished} on is not "
                "marked as finished, nor are all its segments there. Put them back from a backup"
            )
        return (
            f"it is archived up to seq {self.after} and trimmed up to {self.cursor.start}: what is between is in "
            "neither, or its plan is lost. Put back what is missing from a backup, or begin another archive"
        )


@dataclass(frozen=True, slots=True)
class DueReader:
    """Where it stands how far queues are consumed and archived."""

    control: ControlStores
    marks: ArchiveMarks
    storage: Storage
    cursors: CursorStore

    def due(self, cursors: Iterable[Cursor]) -> list[Due]:
        """Return how each queue stands, sorted by name."""
        # Whoever registers later starts where the archive or the table can still serve it.
        consumers = self.control.subscriptions.consumers()
        rows = list(cursors)
        starts = range(0, len(rows), TOGETHER)
        found = (one for start in starts for one in self._some(rows[start : start + TOGETHER], consumers))
        return sorted(found, key=lambda one: one.queue)

    def known_elsewhere(self, dues: Iterable[Due]) -> list[Due]:
        """Return the same; what would begin here after a trim names the archive that has the rest, if one has."""
        return AT_ONCE.map(self._elsewhere, list(dues))

    def _elsewhere(self, due: Due) -> Due:
        would_begin = due.mark is None and due.after == due.began and len(due.range) > 0
        if due.cursor.floor is None or not would_begin or due.problem:
            return due
        others = self.marks.elsewhere(due.queue)
        # One that began behind what was trimmed has nothing of that.
        holding = (address for address, mark in others.items() if mark.began is None or mark.began < due.cursor.start)
        furthest = max(holding, key=lambda address: (others[address].watermark, address), default="")
        return replace(due, elsewhere=furthest)

    def _some(self, cursors: Sequence[Cursor], consumers: Sequence[Subscription]) -> Iterator[Due]:
        queues = [cursor.queue for cursor in cursors]
        marks = self.marks.archived(queues)
        states = AT_ONCE.map(lambda cursor: self._state(cursor, marks.get(cursor.queue)), cursors)
        found = {consumer.name: self.control.checkpoints.of_queues(consumer.name, queues) for consumer in consumers}
        unread = {queue: str(error) for one in found.values() for queue, error in one.damaged.items()}
        for cursor, state in zip(cursors, states, strict=True):
            queue = cursor.queue
            behind = {one.name: _checkpoint(one, found[one.name].rows.get(queue), cursor) for one in consumers}
            slowest = min(behind, key=behind.__getitem__, default="")
            consumed = min([cursor.position, *behind.values()])
            held_by = slowest if consumed < cursor.position else ""
            due = Due(cursor, cursor.start, consumed, marks.get(queue), held_by, unread=unread.get(queue, ""))
            yield self._due(due, state)

    def _due(self, due: Due, state: FolderState) -> Due:
        """Return how a queue stands, once the archive was looked at."""
        damage = state.damage(due.mark.began if due.mark else state.before)
        after, lost = _archived(due, state, damage)
        self._check_end(due, state)
        # Without any plan, the last one may begin before there, and go on.
        unplanned = lost is not None or any(first > after or not state.begins for first in state.held[-1:])
        found = replace(due, after=after, lost=lost, damage=damage, state=state.ahead(after), unplanned=unplanned)
        return replace(found, beyond=self._beyond(due.cursor, state))

    def _state(self, cursor: Cursor, mark: Archived | None) -> FolderState:
        folder = folder_of(cursor.queue)
        # What is trimmed was archived, though the watermark may be older than that.
        reached = max([cursor.start, *([] if mark is None else [mark.watermark])])
        written = partial(is_written, self.storage)

        def look() -> FolderState:
            names = self.storage.list(folder)
            held = tuple(first_seq(name) for name in names if is_manifest(name))
            reader = FolderReader(self.storage.read, written, cursor.position, _began(cursor, mark, held), reached)
            found = with_true_end(reader.look(folder, with_data(names)), folder, self.storage.read)
            return replace(found, held=held)

        return settled(look(), look)

    def _check_end(self, due: Due, state: FolderState) -> None:
        """Raise if the archive goes beyond the position: what lies there may be other messages than those to come."""
        ends = {mark.through for mark in state.finished}.difference(mark.through for mark in state.strays)
        end = max([*ends, *([] if due.mark is None else [due.mark.watermark])], default=due.cursor.position)
        if self._is_beyond(due.cursor, end):
            raise SettingsError(f"{self._describe(due.cursor, 'archived', end)}; else begin another archive")

    def _beyond(self, cursor: Cursor, state: FolderState) -> str:
        """Return what is wrong with an unfinished plan, or a mark alone, that goes beyond the position."""
        for mark in state.strays:
            if self._is_beyond(cursor, mark.through):
                return f"a mark goes beyond what is released, to seq {mark.through}; {without_plan(mark)}"
        first = state.unfinished
        end = cursor.position if first is None else state.through.get(first, cursor.position)
        if first is None or not self._is_beyond(cursor, end):
            return ""
        return f"{self._describe(cursor, 'planned', end)}. {deletable(first)}"

    def _is_beyond(self, cursor: Cursor, end: int) -> bool:
        if end <= cursor.position:
            return False
        # What was released and archived since the row was read is no other table's.
        row = self.cursors.get(cursor.queue)
        return row is None or end > row.position

    def _describe(self, cursor: Cursor, what: str, end: int) -> str:
        # A table takes nothing back that was trimmed.
        command = (
            f"backfill --archive {shlex.quote(self.storage.uri)} --queue={shlex.quote(cursor.queue)} --from-seq "
            f"{cursor.start + 1} --sink table --to-items-table ... --to-cursor-table ... --checkpoint ..."
        )
        return (
            f"queue {cursor.queue!r} is {what} in {self.storage.uri} up to seq {end}, and released up to "
            f"{cursor.position} only; is it the archive of other tables? If these were restored to an earlier time, "
            f"and no other messages have come since, put back what is archived ({command})"
        )


def _archived(due: Due, state: FolderState, damage: Damage | None) -> tuple[int, int | None]:
    """Up to where the archive is whole, and how far it went where that is further."""
    mark, end = due.mark, state.end
    known = [*([] if end is None else [end]), *([] if mark is None else [mark.watermark])]
    if damage is not None:
        return damage.after, max(known, default=damage.after)
    if mark is None:
        # A new archive, or one that was moved: its watermark is under its old address.
        unplanned = [due.cursor.start, *([] if state.before is None else [state.before])]
        return (min(unplanned) if end is None else end), None
    if end is None:
        return (due.cursor.first_seq - 1 if mark.began is None else mark.began), mark.watermark
    # A watermark may be older than what is finished, and fall into a plan: a new one must not begin there.
    return end, (mark.watermark if end < mark.watermark else None)


def _began(cursor: Cursor, mark: Archived | None, held: Sequence[int]) -> int | None:
    """After which seq the archive began. Where no watermark tells, it began where its segments do, planned or not."""
    if mark is None:
        return held[0] - 1 if held else None
    return cursor.first_seq - 1 if mark.began is None else mark.began


def _checkpoint(consumer: Subscription, row: Checkpoint | None, cursor: Cursor) -> int:
    if row is None:
        return first_checkpoint(consumer.start, cursor)
    return row.seq if row.parked is None else min(row.seq, row.parked.seq - 1)
