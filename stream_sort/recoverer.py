"""Service: put a lost cursor row back, from what is stored and what consumers have done; nothing is guessed.

A row that is put back too low costs time: the advance that follows goes over all that is stored. One that is put back
too high would pass over what was never released, so that is refused wherever something tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.core.consumption import EARLIEST, LATEST
from stream_sort.core.message import MIN_SEQ
from stream_sort.core.records import Cursor
from stream_sort.errors import CursorLost, InvalidInput, MissingItems, QueueNotFound
from stream_sort.proof import find_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.ports import ControlStore, CursorStore, ItemStore

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """A row that was put back, or would be: it says `restored`, and the queue is released up to `position` since.

    `floor` is how far the queue counts as trimmed: nothing is stored there, and no consumer waits for it. None if all
    is there.
    """

    queue: str
    restored: int
    first_seq: int
    floor: int | None
    position: int


@dataclass(frozen=True, slots=True)
class Recoverer:
    """Finds what a lost row must have said."""

    items: ItemStore
    cursors: CursorStore
    control: ControlStore | None
    first_seq: int

    def row(self, queue: str, position: int | None = None) -> Cursor:
        """The row to put back: at the furthest checkpoint there is, or at `position`.

        InvalidInput if there is a row, or nothing tells where the queue was; MissingItems if what a consumer still has
        to get is not stored.
        """
        self._check_lost(queue)
        done, others = self._consumers(queue)
        reached = max(done, default=None)
        if position is not None and reached is not None and position < reached:
            raise InvalidInput(f"queue {queue!r}: a consumer has done all through seq {reached}, beyond {position}")
        at = reached if position is None else position
        at = self._beginning(queue) if at is None else at
        if at == self.first_seq - 1 and self._lowest(queue) > at:
            return Cursor(queue, at, self.first_seq)
        hole, start = self._run_to(queue, at)
        first, needed = min(self.first_seq, start), min(done, default=at) + 1
        if needed < start or self._holds_messages(queue, others, hole):
            raise MissingItems(queue, [range(max(hole, needed) if needed < start else hole, start)])
        return Cursor(queue, at, first, floor=start - 1 if start > first else None)

    def _check_lost(self, queue: str) -> None:
        try:
            row = find_row(self.items, self.cursors, queue)
        except CursorLost:
            return
        if row is None:
            raise QueueNotFound(queue)
        raise InvalidInput(f"queue {queue!r} has its cursor row, at position {row.position}: nothing is to be put back")

    def _consumers(self, queue: str) -> tuple[list[int], int | None]:
        """How far each is that has begun here, and from where those would read that have not; None if there are none.

        Where nobody is known, anybody may come.
        """
        known = [] if self.control is None else self.control.consumers()
        found = [(one, self.control.standing(one.name, queue).checkpoint) for one in known if self.control is not None]
        done = [row.seq for _, row in found if row is not None]
        starts = [MIN_SEQ if one.start in {EARLIEST, LATEST} else int(one.start) for one, row in found if row is None]
        return done, min(starts, default=None if done else MIN_SEQ)

    def _beginning(self, queue: str) -> int:
        """Where a queue stood before anything was released, if it starts where queues do, and its first is stored."""
        lowest = self._lowest(queue)
        if lowest != self.first_seq:
            raise InvalidInput(
                f"queue {queue!r}: no consumer tells how far it was released, and seq {lowest} is the lowest stored; "
                f"give its position: a seq that was surely released, or {self.first_seq - 1} if nothing ever was; if "
                "it was opened elsewhere, put its first message, and give the seq before it"
            )
        return lowest - 1

    def _holds_messages(self, queue: str, first: int | None, before: int) -> bool:
        """Whether messages from `first` on are stored before a hole, so that no trim made it: it leaves none behind."""
        if first is None:
            return False
        after, more = first - 1, True
        while more and after < before - 1:
            page = self.items.page(queue, after, before - 1, PAGE)
            if not all(item.is_tombstone for item in page.items):
                return True
            after, more = page.items[-1].seq if page.items else after, page.more
        return False

    def _lowest(self, queue: str) -> int:
        return next(self._stored(queue))

    def _run_to(self, queue: str, at: int) -> tuple[int, int]:
        """The first seq of the stored run that leads to `at`, and that of the hole before it.

        The run begins at `at + 1` if all up to there is trimmed.
        """
        hole = start = end = MIN_SEQ
        for seq in self._stored(queue):
            if seq > at + 1:
                break
            if seq != end:
                hole, start = end, seq
            end = seq + 1
        if end <= at:
            # The slot of a position is never trimmed, nor what follows a checkpoint that lags behind it.
            raise MissingItems(queue, [range(at, at + 1)])
        return hole, start

    def _stored(self, queue: str) -> Iterator[int]:
        after, more = MIN_SEQ - 1, True
        while more:
            look = self.items.look(queue, after, PAGE)
            yield from look.seqs
            more = look.more
            after = look.seqs[-1] if look.seqs else after
