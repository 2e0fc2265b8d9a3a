"""Trimming: what is archived and consumed by all is deleted from the items table. The archive is read first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import NotConsumed, StreamSortError
from stream_sort.replay.archive.origin import AT_ONCE, ArchiveOrigin
from stream_sort.replay.archive.work import HOPELESS
from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.core.records import Cursor
    from stream_sort.ports import ControlStore
    from stream_sort.replay.access import TableAccess
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.ranges import Part


@dataclass(frozen=True, slots=True)
class Trimmed:
    """How many slots of a queue were deleted; `problem` says why no more were."""

    queue: str
    slots: int = 0
    problem: str = ""


@dataclass(frozen=True)
class TrimQueues:
    """Deletes, on an executor, the ranges of a part that the archive holds byte for byte, and all before them."""

    access: TableAccess
    control_table: str
    storage: Storage

    def __call__(self, part: Part) -> list[Trimmed]:
        """One answer for each range."""
        return [self._trim(held) for held in part.ranges]

    def _trim(self, held: Range) -> Trimmed:
        try:
            ArchiveOrigin(self.storage).check_holds(held)
            return Trimmed(
                held.queue, self.access.sorter.trim(held.queue, held.through, control_table=self.control_table)
            )
        except HOPELESS:
            raise
        except NotConsumed:
            # Somebody registered, or gave up on a message, since we looked: a later run trims it.
            return Trimmed(held.queue)
        except StreamSortError as error:
            return Trimmed(held.queue, problem=str(error))


@dataclass(frozen=True)
class Bounds:
    """How far queues may be trimmed."""

    access: TableAccess
    control: ControlStore

    def of(self, archived: Iterable[tuple[Cursor, int]]) -> list[Range]:
        """What is to be deleted of queues that are archived, and consumed, up to a seq."""
        consumers = [consumer.name for consumer in self.control.consumers()]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = pool.map(lambda one: self._bound(one[0], one[1], consumers), archived)
            return [held for held in found if len(held)]

    def _bound(self, cursor: Cursor, through: int, consumers: list[str]) -> Range:
        """From the lowest stored slot to where nobody needs the table any more; it may be empty."""
        queue = cursor.queue
        for consumer in consumers:
            # A dead letter's message stays until it is redriven or discarded.
            letters = self.control.dead_letters_of(consumer, queue)
            through = min([through, *(letter.seq - 1 for letter in letters)])
        stored = self.access.sorter.stores.items.look(queue, cursor.first_seq - 1, 1).seqs
        # The message at the position is not deleted: where only that is left, there is nothing to do.
        if not stored or stored[0] > min(through, cursor.position - 1):
            return Range(queue, through, through)
        return Range(queue, stored[0] - 1, through)
