"""Service: delete what every consumer is done with, and never before all of them are, whoever comes meanwhile.

First the floor, then the deletion. Who begins to read, or puts a message, after the floor is set sees it on the
cursor row; so nobody begins below it, and nothing is accepted below it, once the first slot is empty.

A consumer that registers while the floor is set, and has no checkpoint yet, begins below the floor or behind it: that
depends on when it read the row. So the trim makes the checkpoint, behind the floor, and whoever makes it first decides:
either the consumer stands below, and the trim is refused, or it begins behind, and the trim goes on. To make it below
the floor would be wrong: another trim may have asked all consumers before this one registered, and be deleting there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.errors import CursorLost, NotConsumed, NotReleased, QueueNotFound
from stream_sort.model.consumption import Checkpoint, first_checkpoint
from stream_sort.model.records import Cleared
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.consumption import Subscription
    from stream_sort.model.records import Cursor
    from stream_sort.ports import ControlStores, CursorStore, ItemStore

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Trimmer:
    """Trims queues. Any number may run at once; each leaves a state from which the same call goes on."""

    items: ItemStore
    cursors: CursorStore
    control: ControlStores | None

    def trim(self, queue: str, through: int) -> int:
        """Delete messages up to `through`, late ones, too, but for the one at the position; return how many seqs."""
        row = self._row(queue, through)
        if through < row.first_seq:
            return 0
        return self._delete(row, self._raise_floor(row, through))

    def trim_archived(self, queue: str, after: int, through: int, *, among: Sequence[range] | None = None) -> Cleared:
        """Do as `trim`, of `(after, through]`, but slots with late messages are kept: an archive may not have those.

        What lies below is left alone, and below the floor all the same; so is what is not `among` some seqs, in order.
        """
        row = self._row(queue, through)
        after = max(after, row.first_seq - 1)
        if through <= after:
            return Cleared(0, (), through)
        last = self._raise_floor(row, through)
        emptied, kept = 0, list[int]()
        for seqs in [range(after + 1, last + 1)] if among is None else among:
            at, end = max(after, seqs.start - 1), min(last, seqs.stop - 1)
            while at < end:
                some = self.items.clear(queue, at, end, PAGE)
                emptied, at = emptied + some.emptied, some.through
                kept += some.kept
        return Cleared(emptied, tuple(kept), through)

    def _delete(self, row: Cursor, through: int) -> int:
        """Empty the slots of the queue; what lies before its start is not ours."""
        deleted = 0
        while through >= row.first_seq and (count := self.items.delete(row.queue, row.first_seq - 1, through, PAGE)):
            deleted += count
        return deleted

    def _row(self, queue: str, through: int) -> Cursor:
        row = find_row(self.items, self.cursors, queue)
        if row is None:
            raise QueueNotFound(queue)
        if through > row.position:
            raise NotReleased(queue, through, row.position)
        return row

    def _raise_floor(self, row: Cursor, through: int) -> int:
        """Set the floor if all consumers let it be; return the last seq to delete."""
        self._check_consumers(row, through)
        raised = self._set_floor(row, through)
        # Who registered before the floor was set may have begun below it. Who does so from now on begins behind it.
        self._check_consumers(raised, through)
        return min(through, raised.position - 1)

    def _set_floor(self, row: Cursor, through: int) -> Cursor:
        """See to it that the floor is at or above `through`; return the row as it is then."""
        move = self.cursors.set_floor(row.queue, through)
        if move is None:
            raise CursorLost(row.queue, known_position=row.position)
        if move.cursor.start < through:
            raise NotReleased(row.queue, through, move.cursor.position)
        return move.cursor

    def _check_consumers(self, row: Cursor, through: int) -> None:
        if self.control is not None:
            for consumer in self.control.subscriptions.consumers():
                _check(self.control, consumer, row, through)


def _check(control: ControlStores, consumer: Subscription, row: Cursor, through: int) -> None:
    """Raise NotConsumed unless a consumer is done with everything up to `through`."""
    name, queue = consumer.name, row.queue
    there = control.checkpoints.standing(name, queue).checkpoint or _pinned(control, consumer, row, through)
    at = first_checkpoint(consumer.start, row) if there is None else there.seq
    if there is not None and there.parked is not None:
        at = min(at, there.parked.seq - 1)
    # One that is not ready gets its checkpoints at positions that were read before, however long ago.
    if at < through or (there is None and not consumer.ready):
        raise NotConsumed(queue, through, name, checkpoint=at)
    dead = [letter.seq for letter in control.dead_letters.of_queue(name, queue) if letter.seq <= through]
    if dead:
        raise NotConsumed(queue, through, name, checkpoint=at, dead=dead[0])


def _pinned(control: ControlStores, consumer: Subscription, row: Cursor, through: int) -> Checkpoint | None:
    """Return the checkpoint of a consumer that had none, made in its stead where it could make one that is too low.

    It may have read the row before the floor was set, and may be about to begin there: whoever makes the checkpoint
    first decides. One that starts at a seq beyond `through` needs none.
    """
    first = first_checkpoint(consumer.start, row)
    if not consumer.ready or first < through:
        return None
    if first_checkpoint(consumer.start, replace(row, floor=None)) >= through:
        return None
    return control.checkpoints.create(Checkpoint(consumer.name, row.queue, first)).checkpoint
