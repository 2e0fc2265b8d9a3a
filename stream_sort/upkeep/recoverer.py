"""Service: put a lost cursor row back, from what is stored and what consumers have done; nothing is guessed.

A row that is put back too low costs time: the advance that follows goes over all that is stored. One that is put back
too high would pass over what was never released, so that is refused wherever something tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.errors import CursorLost, InvalidInput, MissingItems, QueueNotFound
from stream_sort.model.consumption import EARLIEST, LATEST
from stream_sort.model.gaps import joined
from stream_sort.model.message import MIN_SEQ
from stream_sort.model.records import Cursor
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.ports import ControlStores, WithdrawalStore
    from stream_sort.release.queues import Queues

PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Recovery:
    """A row that was put back, or would be: it says `restored`, and the queue is released up to `position` since.

    `floor` is how far the queue counts as trimmed: nothing is stored there, and no consumer waits for it. None if all
    is there. `policy` is the gap policy that holds from now on: its own was on the row.
    """

    queue: str
    restored: int
    first_seq: int
    floor: int | None
    position: int
    policy: GapPolicy


@dataclass(frozen=True, slots=True)
class Recoverer:
    """Finds what a lost row must have said."""

    queues: Queues
    withdrawals: WithdrawalStore
    control: ControlStores | None

    def recover(self, queue: str, position: int | None, *, dry_run: bool) -> Recovery:
        """Put the row back, unless it is a dry run, and advance."""
        row, queues = self.row(queue, position), self.queues
        now = row.position
        if not dry_run:
            # Marked as waiting: a sweep advances it, should this process die here. In doubt: perhaps there is no gap.
            known = replace(row, withdrawals=self.withdrawals.last(queue))
            # And as if it moved now: consumers behind it are looked at.
            at = queues.clock()
            queues.cursors.create(replace(known, waiting_since=-at, moved_at=at))
            now = queues.reach(queue).advance.new
        return Recovery(queue, row.position, row.first_seq, row.floor, now, queues.gap_policy)

    def row(self, queue: str, position: int | None = None) -> Cursor:
        """Return the row to put back: at the furthest checkpoint there is, or at `position`.

        InvalidInput if there is a row, or nothing tells where the queue was; MissingItems if what a consumer still has
        to get is not stored.
        """
        self._check_lost(queue)
        stored = self._stored(queue)
        done, others = self._consumers(queue)
        reached = max(done.values(), default=None)
        if position is not None and reached is not None and position < reached:
            raise InvalidInput(
                f"queue {queue!r}: a consumer has done all through seq {reached}, beyond {position}; {_AHEAD}"
            )
        at = reached if position is None else position
        at = self._beginning(queue, stored) if at is None else at
        usual = self.queues.first_seq - 1
        # Who stands elsewhere has got something, or waits for it: then something was released.
        if stored.lowest > at and {*done.values()} <= {at} and stored.is_unbegun_at(at, usual):
            return Cursor(queue, at, at + 1)
        self._check_start(queue, stored, at)
        hole, start = stored.run_to(at)
        if start is None:
            # The slot of a position is never trimmed, nor what follows a checkpoint that lags behind it.
            unbegun = None if done else stored.unbegun(usual)
            raise MissingItems(queue, [range(at, at + 1)], advice=_no_position(unbegun, is_done=at == reached))
        first, slowest = min(self.queues.first_seq, start), min(done, key=done.__getitem__, default="")
        needed = done.get(slowest, at) + 1
        if needed < start:
            raise MissingItems(queue, [range(max(hole, needed), start)], advice=_wanted(slowest))
        starts = min(others.values(), default=None if done else MIN_SEQ)
        if starts is not None and starts < start and self._was_not_trimmed(queue, hole):
            raise MissingItems(queue, [range(hole, start)], advice=_perhaps_trimmed(others))
        return Cursor(queue, at, first, floor=start - 1 if start > first else None)

    def _check_lost(self, queue: str) -> None:
        try:
            row = self.queues.row(queue)
        except CursorLost:
            return
        if row is None:
            raise QueueNotFound(queue)
        raise InvalidInput(f"queue {queue!r} has its cursor row, at position {row.position}: nothing is to be put back")

    def _check_start(self, queue: str, stored: _Stored, at: int) -> None:
        """Refuse the usual start of a queue that was opened before it: all from there on was yet to come."""
        if at == self.queues.first_seq - 1 and stored.lowest_seen < at < stored.lowest:
            raise InvalidInput(
                f"queue {queue!r} was opened before {self.queues.first_seq}: a writer found it at position "
                f"{stored.lowest_seen}; give that if nothing was released, else a seq that was, and is stored"
            )

    def _consumers(self, queue: str) -> tuple[dict[str, int], dict[str, int]]:
        """Return how far each is that has begun here, and from where those would read that have not."""
        known = [] if self.control is None else self.control.subscriptions.consumers()
        found = [
            (one, self.control.checkpoints.standing(one.name, queue).checkpoint)
            for one in known
            if self.control is not None
        ]
        done = {one.name: row.seq for one, row in found if row is not None}
        rest = [one for one, row in found if row is None]
        return done, {one.name: MIN_SEQ if one.start in {EARLIEST, LATEST} else int(one.start) for one in rest}

    def _beginning(self, queue: str, stored: _Stored) -> int:
        """Return where a queue stood before anything was released, if it surely starts where queues do, untrimmed.

        Its first is stored then, its writers found no position before that, and there is no hole: nobody can tell one
        that a trim made, which may have kept some slots, or died, from a gap.
        """
        at, lowest, hole = self.queues.first_seq - 1, stored.lowest, stored.runs[0].stop
        if lowest == self.queues.first_seq and at <= stored.lowest_seen and len(stored.runs) == 1:
            return at
        behind = f" with a hole from seq {hole} on, which may be a gap or trimmed," if len(stored.runs) > 1 else ""
        unbegun = stored.unbegun(at)
        raise InvalidInput(
            f"queue {queue!r}: no consumer tells how far it was released; seq {lowest} is the lowest stored,{behind} "
            f"and a writer found it at position {stored.highest_seen}; give its position: a seq that was surely "
            f"released{'' if unbegun is None else f', or {unbegun} if nothing ever was'}"
        )

    def _was_not_trimmed(self, queue: str, before: int) -> bool:
        """Return True if slots are filled before a hole that a trim would have emptied, late messages left out."""
        after, more = MIN_SEQ - 1, True
        while more and after < before - 1:
            page = self.queues.items.page(queue, after, before - 1, PAGE)
            if any(entry.late is None for entry in expand(page.slots)):
                return True
            after, more = page.slots[-1].last if page.slots else after, page.more
        return False

    def _stored(self, queue: str) -> _Stored:
        runs: list[range] = []
        seen: set[int] = set()
        after, more = MIN_SEQ - 1, True
        while more:
            look = self.queues.items.look(queue, after, PAGE)
            runs[-1:] = joined([*runs[-1:], *look.slots])
            found = seen.union(look.seen)
            seen = {min(found), max(found)} if found else seen
            after, more = look.slots[-1].stop - 1 if look.slots else after, look.more
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

    def is_unbegun_at(self, at: int, usual: int) -> bool:
        """Return True if a queue of which nothing was released may stand there: all writers found it there.

        Or some found it at the usual start, and then it was opened there.
        """
        found = {self.lowest_seen, self.highest_seen}
        return at in found and found - {at} <= {usual}

    def unbegun(self, usual: int) -> int | None:
        """Return where it stood if nothing was released; None if something was."""
        return next(
            (at for at in (self.lowest_seen, self.highest_seen) if at < self.lowest and self.is_unbegun_at(at, usual)),
            None,
        )

    def run_to(self, at: int) -> tuple[int, int | None]:
        """Return the first seq of the hole before the run that leads to `at`, and of that run, `at + 1` if all is gone.

        None if no run does.
        """
        hole = MIN_SEQ
        for run in self.runs:
            if run.start <= at + 1 <= run.stop:
                return hole, run.start
            hole = run.stop
        return hole, None


_AHEAD = (
    "if the items table was restored to an earlier time, or has lost messages, retire whoever is ahead of it, and give "
    "a position that is stored"
)


def _no_position(unbegun: int | None, *, is_done: bool) -> str:
    if is_done:
        return f"a consumer has done all through there, and the slot of a position never goes; {_AHEAD}"
    advice = "the slot of a position never goes; give a seq that is stored, and was surely released"
    if unbegun is None:
        return advice
    return f"{advice}, or {unbegun} if nothing ever was: the queue may be opened then where it starts"


def _wanted(consumer: str) -> str:
    return (
        f"consumer {consumer!r} has not got that, and nothing can be put while the row is lost: put the cursor table's "
        "row back from a backup, write what is missing into the items table with the AWS tools, or retire the consumer "
        "if that is gone for good"
    )


def _perhaps_trimmed(others: dict[str, int]) -> str:
    """Say what to do where a trim may have died in the midst, and who has not begun would want what it emptied."""
    if not others:
        return "nobody tells whether that was trimmed; give a position before it, then skip what is gone for good"
    names = ", ".join(map(repr, sorted(others)))
    return (
        f"that may be a trim that died, and consumers that have not begun here would want it: {names}. Retire them if "
        "it is gone for good, and recover the queue then"
    )
