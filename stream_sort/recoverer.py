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
        stored = self._stored(queue)
        done, others = self._consumers(queue)
        reached = max(done.values(), default=None)
        if position is not None and reached is not None and position < reached:
            raise InvalidInput(f"queue {queue!r}: a consumer has done all through seq {reached}, beyond {position}")
        at = reached if position is None else position
        at = self._beginning(queue, stored) if at is None else at
        if at == self.first_seq - 1 and stored.lowest > at:
            return Cursor(queue, at, self.first_seq)
        hole, start = stored.run_to(queue, at)
        first, slowest = min(self.first_seq, start), min(done, key=done.__getitem__, default="")
        needed = done.get(slowest, at) + 1
        if needed < start:
            raise MissingItems(queue, [range(max(hole, needed), start)], wanted_by=slowest)
        if others is not None and others < start and self._was_not_trimmed(queue, hole):
            raise MissingItems(queue, [range(hole, start)])
        return Cursor(queue, at, first, floor=start - 1 if start > first else None)

    def _check_lost(self, queue: str) -> None:
        try:
            row = find_row(self.items, self.cursors, queue)
        except CursorLost:
            return
        if row is None:
            raise QueueNotFound(queue)
        raise InvalidInput(f"queue {queue!r} has its cursor row, at position {row.position}: nothing is to be put back")

    def _consumers(self, queue: str) -> tuple[dict[str, int], int | None]:
        """How far each is that has begun here, and from where those would read that have not; None if there are none.

        Where nobody is known, anybody may come.
        """
        known = [] if self.control is None else self.control.consumers()
        found = [(one, self.control.standing(one.name, queue).checkpoint) for one in known if self.control is not None]
        done = {one.name: row.seq for one, row in found if row is not None}
        starts = [MIN_SEQ if one.start in {EARLIEST, LATEST} else int(one.start) for one, row in found if row is None]
        return done, min(starts, default=None if done else MIN_SEQ)

    def _beginning(self, queue: str, stored: _Stored) -> int:
        """Where a queue stood before anything was released, if it surely starts where queues do and is not trimmed.

        Its first is stored then, its writers found no position before that, and there is no hole: nobody can tell one
        that a trim made, which may have kept some slots, or died, from a gap.
        """
        at, lowest, hole = self.first_seq - 1, stored.lowest, stored.runs[0].stop
        if lowest == self.first_seq and at <= stored.lowest_seen and len(stored.runs) == 1:
            return at
        behind = f" with a hole from seq {hole} on, which may be a gap or trimmed," if len(stored.runs) > 1 else ""
        raise InvalidInput(
            f"queue {queue!r}: no consumer tells how far it was released; seq {lowest} is the lowest stored,{behind} "
            f"and a writer found it at position {stored.highest_seen}; give its position: a seq that was surely "
            f"released, or {at} if nothing ever was; if it was opened elsewhere, put its first message, and give the "
            "seq before it"
        )

    def _was_not_trimmed(self, queue: str, before: int) -> bool:
        """Whether slots are filled before a hole that a trim would have emptied: all but those with late messages."""
        after, more = MIN_SEQ - 1, True
        while more and after < before - 1:
            page = self.items.page(queue, after, before - 1, PAGE)
            if any(item.late is None for item in page.items):
                return True
            after, more = page.items[-1].seq if page.items else after, page.more
        return False

    def _stored(self, queue: str) -> _Stored:
        runs: list[range] = []
        seen: set[int] = set()
        after, more = MIN_SEQ - 1, True
        while more:
            look = self.items.look(queue, after, PAGE)
            for seq in look.seqs:
                run = runs.pop() if runs and runs[-1].stop == seq else range(seq, seq)
                runs.append(range(run.start, seq + 1))
            found = seen.union(look.seen)
            seen = {min(found), max(found)} if found else seen
            after, more = look.seqs[-1] if look.seqs else after, look.more
        return _Stored(runs, min(seen), max(seen))


@dataclass(frozen=True, slots=True)
class _Stored:
    """The runs of filled slots, in order, and the lowest and highest position that their writers found."""

    runs: list[range]
    lowest_seen: int
    highest_seen: int

    @property
    def lowest(self) -> int:
        return self.runs[0].start

    def run_to(self, queue: str, at: int) -> tuple[int, int]:
        """The first seq of the hole before the run that leads to `at`, and of that run: `at + 1` if all is trimmed."""
        hole = MIN_SEQ
        for run in self.runs:
            if run.start <= at + 1 <= run.stop:
                return hole, run.start
            hole = run.stop
        # The slot of a position is never trimmed, nor what follows a checkpoint that lags behind it.
        raise MissingItems(queue, [range(at, at + 1)])
