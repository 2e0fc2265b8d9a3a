"""Service: take a message that is not released, and cannot be, out of its slot.

Why that is safe: a run is contiguous from the position on, so a slot whose predecessor is empty, and lies beyond the
position, is in nobody's run. One transaction demands both and counts itself on the cursor row. Whoever learnt before
it that the slot was filled moves the cursor only if that count is still the same (see `advancer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import NotWithdrawn, QueueNotFound
from stream_sort.model.withdrawal import Withdrawal
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry
    from stream_sort.ports import Clock, ItemStore, WithdrawalStore
    from stream_sort.release.advancer import Advancer

PAGE = 1_000
TRIES = 10


@dataclass(frozen=True, slots=True)
class Withdrawer:
    """Withdraws messages; nothing that is released, or could be, is ever touched."""

    items: ItemStore
    withdrawals: WithdrawalStore
    advancer: Advancer
    clock: Clock

    def withdraw(self, queue: str, seq: int, reason: str) -> Withdrawal:
        """Withdraw one message; NotWithdrawn says why it cannot be.

        Made again after a lost answer, it answers what the first call did: the slot is empty, and the message is kept
        with the same reason.
        """
        last = 0
        for _ in range(TRIES):
            # First of all release what can be: then what is left is beyond a gap, or somebody is just storing it.
            row = self.advancer.advance(queue).cursor
            number = max(row.withdrawals, last) + 1
            wanted = Withdrawal(queue, number, seq, reason, self.clock())
            done = self.withdrawals.withdraw(row, wanted) or self._look_why(queue, seq, reason)
            if done is not None:
                return done
            # A cursor row that was restored may count less than there are.
            last = self.withdrawals.last(queue)
        raise NotWithdrawn(queue, seq, "the queue is changed by others all the time; try again")

    def kept(self, queue: str) -> Iterator[Withdrawal]:
        """Go through the withdrawals of a queue, the first one first."""
        after = 0
        while page := self.withdrawals.page(queue, after, PAGE):
            yield from page
            after = page[-1].number

    def _look_why(self, queue: str, seq: int, reason: str) -> Withdrawal | None:
        """Find out why nothing was withdrawn: return what was before, None to try again, or raise NotWithdrawn."""
        row = self._row(queue)
        if seq < row.first_seq:
            raise NotWithdrawn(queue, seq, f"it lies before the start of the queue at {row.first_seq}")
        if seq <= row.position:
            raise NotWithdrawn(queue, seq, f"it is released; the queue is at position {row.position}")
        slot = self._slot(queue, seq)
        if slot is None:
            return self._done_before(queue, seq, reason)
        if slot.is_tombstone:
            raise NotWithdrawn(queue, seq, f"it was skipped ({slot.skipped}) and holds no message")
        lowest, skipped = self._run_before(queue, seq, row.position)
        if skipped is not None:
            problem = f"seq {skipped} was skipped, and what follows a skipped seq without a gap cannot be taken out"
            raise NotWithdrawn(queue, seq, f"{problem}; put what is missing before it")
        if row.position + 1 < lowest < seq:
            problem = f"seq {seq - 1} before it is stored; withdraw the run from its lowest seq on: {lowest}"
            raise NotWithdrawn(queue, seq, problem, lowest=lowest)
        return None

    def _done_before(self, queue: str, seq: int, reason: str) -> Withdrawal:
        """Return the withdrawal that left the slot empty, if it had the same reason."""
        found = None
        for one in self.kept(queue):
            found = one if one.seq == seq else found
        if found is None:
            raise NotWithdrawn(queue, seq, "nothing is stored there")
        if found.reason != reason:
            problem = f"nothing is stored there; it was withdrawn before ({found.reason}), as number {found.number}"
            raise NotWithdrawn(queue, seq, problem)
        return found

    def _run_before(self, queue: str, seq: int, position: int) -> tuple[int, int | None]:
        """Return the lowest seq of the run of filled slots that `seq` is in; and its lowest tombstone, None if none.

        A run that begins at the position has neither: it is about to be released.
        """
        lowest, skipped, more = seq, None, True
        while more and lowest > position + 1:
            # Not their documents: one that cannot be read is stored all the same.
            page = self.items.arrivals_below(queue, lowest, PAGE)
            more = page.more
            for slot in page.slots:
                if slot.last != lowest - 1 or slot.first <= position:
                    more = False
                    break
                lowest = slot.first
                skipped = lowest if slot.at(lowest).is_tombstone else skipped
        return lowest, skipped if lowest > position + 1 else None

    def _slot(self, queue: str, seq: int) -> Entry | None:
        found = self.items.holding(queue, seq)
        return None if found is None else found.at(seq)

    def _row(self, queue: str) -> Cursor:
        row = find_row(self.items, self.advancer.cursors, queue)
        if row is None:
            raise QueueNotFound(queue)
        return row
