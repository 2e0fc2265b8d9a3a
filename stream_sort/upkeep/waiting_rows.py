"""What the rows of waiting queues say without a visit: which of them are idle, and for how long each has waited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.model.gaps import length
from stream_sort.model.records import TakenSlots

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.records import Cursor
    from stream_sort.ports import CursorStore, ItemStore

# Rows in one request, and in all.
AT_ONCE, MOST = 100, 2_000


@dataclass(frozen=True, slots=True)
class IdleQueues:
    """Looks at queues that are marked as waiting; `policy` is that of queues that have none of their own.

    One is idle if it stands at the gap that a sweep noted and measured to its end, that gap is not due, and nothing
    fills the slot behind the position. A visit would leave it as it is, whatever came in beyond: the gap is as old as
    noted. Its mark stays. Only a visit finds out that others deleted, past us, what waited beyond the gap: the sweep of
    all queues makes one.
    """

    cursors: CursorStore
    items: ItemStore
    policy: GapPolicy
    now: float
    max_gap: int

    def of(self, queues: Sequence[str]) -> dict[str, float]:
        """Return those that are idle, and for how many seconds they have waited; all others are to be visited."""
        if len(queues) == 1:
            # A visit costs no more.
            return {}
        try:
            rows = {row.queue: row for row in self.cursors.rows_of(queues).rows if self._may_be_idle(row)}
            behind = [(row.queue, row.position + 1) for row in rows.values()]
            taken = self.items.taken(behind) if behind else TakenSlots(set())
        except Exception:  # noqa: BLE001  # a visit to each tells whose trouble it is
            return {}
        surely = ((queue, seq) for queue, seq in behind if queue not in taken.damaged)
        return {queue: self._age(rows[queue]) for queue, seq in surely if (queue, seq) not in taken.slots}

    def _may_be_idle(self, row: Cursor) -> bool:
        skip_after = (row.policy or self.policy).skip_after
        # A message within a gap that is too long makes another gap of it, and only a visit tells.
        is_known = row.is_measured and row.gap is not None and length(row.gap.seqs) <= self.max_gap
        is_seen_whole = is_known and row.gap is not None and row.gap.through is None
        return row.is_marked and is_seen_whole and (skip_after is None or self._age(row) < skip_after)

    def _age(self, row: Cursor) -> float:
        return 0.0 if row.gap is None else max(0.0, self.now - row.gap.since)


@dataclass(frozen=True, slots=True)
class RowAges:
    """Reads the rows of many queues while there is time.

    Of queues that were listed as waiting (`marked`) those whose rows are not read count as waiting, too.
    """

    cursors: CursorStore
    now: float
    is_short: Callable[[], bool]
    marked: bool

    def of(self, queues: Sequence[str], since: Callable[[Cursor], float | None]) -> dict[str, float]:
        """Return the queues that wait, and for how many seconds; 0 where `since` does not tell from when on."""
        ages = dict.fromkeys(queues, 0.0) if self.marked else {}
        for start in range(0, min(len(queues), MOST), AT_ONCE):
            if self.is_short():
                break
            try:
                rows = self.cursors.rows_of(queues[start : min(start + AT_ONCE, MOST)]).rows
            except Exception:  # noqa: BLE001  # a figure is not worth what the sweep did so far
                break
            for row in rows:
                if row.waiting_since is None:
                    ages.pop(row.queue, None)
                else:
                    ages[row.queue] = self._age(since(row))
        return ages

    def _age(self, since: float | None) -> float:
        return 0.0 if since is None else max(0.0, self.now - since)


def since_measured(row: Cursor) -> float | None:
    """Return since when a sweep found a queue waiting; the mark is no age: it may be of another gap, or of none."""
    return row.gap.since if row.gap is not None and row.is_measured else None


def since_marked(row: Cursor) -> float | None:
    """Return since when a queue waits; a mark from before the last move is that of another gap, perhaps days older."""
    return None if row.in_doubt else row.gap_since
