"""Trimming: what is archived and consumed by all is deleted from the items table. Both are read and compared first.

A late message may come when its slot is archived already: it stays, unless the archive has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from stream_sort.errors import NotConsumed, RowDamaged, StreamSortError
from stream_sort.model.message import same_value
from stream_sort.replay.archive.work import HOPELESS
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.origins.archive.difference import first_difference
from stream_sort.replay.origins.archive.origin import ArchiveOrigin
from stream_sort.replay.origins.table import TableOrigin
from stream_sort.replay.ranges import Range, joined
from stream_sort.replay.slots import document_of
from stream_sort.upkeep.trimmer import PAGE, Trimmer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from stream_sort.model.records import Cursor
    from stream_sort.ports import ControlStores
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.access import TableAccess
    from stream_sort.replay.origins.rate import Rate
    from stream_sort.replay.ranges import Part

# Slots below the floor that are looked up one by one in the archive; where there are more, all from the first one on.
FEW = 10


@dataclass(frozen=True, slots=True)
class TrimmedQueue:
    """How many slots of a queue were deleted; `problem` says why no more were.

    `kept` are those with late messages that the archive has not.
    """

    queue: str
    slots: int = 0
    kept: tuple[int, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class TrimQueues:
    """Deletes, on an executor, the ranges of a part that the archive holds byte for byte, as the table has them.

    No slot is deleted that was not compared; `rate` holds for the reading.
    """

    access: TableAccess
    control_table: str
    storage: Storage
    rate: Rate | None = None

    def __call__(self, part: Part) -> list[TrimmedQueue]:
        """Trim each range and answer for it, up to a queue's first problem."""
        # What a stale read leaves out would be deleted and not compared.
        table = TableOrigin(self.access, consistent=True, rate=self.rate)
        answers: list[TrimmedQueue] = []
        for held in part.ranges:
            last = answers[-1] if answers else None
            if last is None or last.queue != held.queue or not last.problem:
                answers.append(self._trim(held, table))
        return answers

    def _trim(self, held: Range, table: TableOrigin) -> TrimmedQueue:
        problem = ""
        try:
            archive = ArchiveOrigin(self.storage)
            archive.check_holds(held)
            seen = SeenSeqs()
            found = first_difference(seen.watched(table.read(held)), archive.read(held))
            if found is not None:
                problem, held = found.problem, replace(held, through=found.seq - 1)
            return replace(self._delete(held, seen.runs), problem=problem)
        except HOPELESS:
            raise
        except NotConsumed:
            # Somebody registered, or gave up on a message, since we looked: a later run trims it.
            return TrimmedQueue(held.queue, problem=problem)
        except StreamSortError as error:
            return TrimmedQueue(held.queue, problem=problem or str(error))

    def _delete(self, held: Range, compared: Sequence[range]) -> TrimmedQueue:
        home = self.access.homes.of(held.queue)
        trimmer = Trimmer(home.items, home.cursors, home.control(self.control_table))
        # Somebody may have put another message into a slot that was empty when it was to be compared.
        done = trimmer.trim_archived(held.queue, held.after, held.through, among=compared)
        archived = self._archived_late(held.queue, done.kept)
        # The first late message of a slot stays: what the archive has cannot have changed since it was compared.
        again = sum(home.items.delete(held.queue, seq - 1, seq, 1) for seq in archived)
        kept = tuple(seq for seq in done.kept if seq not in archived)
        return TrimmedQueue(held.queue, done.emptied + again, kept)

    def _archived_late(self, queue: str, seqs: tuple[int, ...]) -> set[int]:
        """Return those of some seqs whose late messages are the same in the table and in the archive."""
        if not seqs:
            return set()
        items, wanted = self.access.homes.of(queue).items, set(seqs)
        found = set()
        for batch in ArchiveOrigin(self.storage).read(Range(queue, seqs[0] - 1, seqs[-1])):
            rows = batch.filter(pc.is_valid(batch.column("late"))).select(["seq", "late", "binary"]).to_pylist()
            for row in (row for row in rows if row["seq"] in wanted):
                there = items.holding(queue, row["seq"])
                if there is not None and same_value(there.at(row["seq"]).late, document_of(row["late"], row["binary"])):
                    found.add(row["seq"])
        return found


class SeenSeqs:
    """Watches slots go by, in order, and keeps which they were, as runs of seqs."""

    def __init__(self) -> None:
        self.runs: list[range] = []

    def watched(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same batches."""
        for batch in batches:
            if batch.num_rows:
                self._take(batch.column("seq"))
            yield batch

    def _take(self, seqs: pa.Array) -> None:
        first, last = seqs[0].as_py(), seqs[-1].as_py()
        whole = last - first + 1 == len(seqs)
        for run in [range(first, last + 1)] if whole else (range(seq, seq + 1) for seq in seqs.to_pylist()):
            if self.runs and self.runs[-1].stop == run.start:
                self.runs[-1] = range(self.runs[-1].start, run.stop)
            else:
                self.runs.append(run)


@dataclass(frozen=True, slots=True)
class Bound:
    """What of a queue is to be deleted: how many slots, and in which ranges; some may be kept for late messages.

    `problem` says why nothing is, where that cannot be told.
    """

    queue: str
    slots: int
    ranges: tuple[Range, ...]
    problem: str = ""


@dataclass(frozen=True)
class TrimBounds:
    """How far queues may be trimmed."""

    access: TableAccess
    control: ControlStores

    def of(self, archived: Iterable[tuple[Cursor, Range]]) -> list[Bound]:
        """Return what is to be deleted of queues of which ranges are archived, and consumed by all."""
        consumers = [consumer.name for consumer in self.control.subscriptions.consumers()]
        return AT_ONCE.map(lambda one: self._tried(*one, consumers), list(archived))

    def _tried(self, cursor: Cursor, archived: Range, consumers: list[str]) -> Bound:
        try:
            return self._bound(cursor, archived, consumers)
        except RowDamaged as error:
            return Bound(cursor.queue, 0, (), str(error))

    def _bound(self, cursor: Cursor, archived: Range, consumers: list[str]) -> Bound:
        """Return what is stored up to where nobody needs the table any more, not counting the slot at the position."""
        queue, through = cursor.queue, archived.through
        for consumer in consumers:
            # A dead letter's message stays until it is redriven or discarded.
            letters = self.control.dead_letters.of_queue(consumer, queue)
            through = min([through, *(letter.seq - 1 for letter in letters)])
        # The message at the position is not deleted: where only that is left, there is nothing to do.
        last = min(through, cursor.position - 1)
        stored = [seq for seq in self._stored(cursor, archived.after) if seq <= last]
        below = [seq for seq in stored if seq <= cursor.start]
        above = [Range(queue, seq - 1, through) for seq in stored[len(below) :][:1]]
        # Above the floor there are no holes.
        slots = len(below) + sum(last - held.after for held in above)
        if len(below) > FEW:
            return Bound(queue, slots, (Range(queue, below[0] - 1, through),))
        return Bound(queue, slots, tuple(joined([*(Range(queue, seq - 1, seq) for seq in below), *above])))

    def _stored(self, cursor: Cursor, after: int) -> tuple[int, ...]:
        """Return the lowest slots, up to one above the floor, or many: below it a few were kept, or a trim has died.

        What lies before the archive began is left alone: another archive, or somebody's trim, has left it there.
        """
        items, start = self.access.homes.of(cursor.queue).items, max(after, cursor.first_seq - 1)
        look = items.look(cursor.queue, start, 1)
        if look.more and look.slots[0].start <= cursor.start:
            look = items.look(cursor.queue, start, PAGE)
        return look.seqs
