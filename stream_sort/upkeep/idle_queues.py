"""Service: find the queues for which a sweep has nothing to do, a hundred with two requests. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.model.gaps import length
from stream_sort.model.policy import MAX_GAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.model.policy import GapPolicy
    from stream_sort.model.records import Cursor
    from stream_sort.ports import CursorStore, ItemStore


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

    def of(self, queues: Sequence[str]) -> dict[str, float]:
        """Return those that are idle, and for how many seconds they have waited; all others are to be visited."""
        if len(queues) == 1:
            # A visit costs no more.
            return {}
        try:
            rows = {row.queue: row for row in self.cursors.rows_of(queues).rows if self._may_be_idle(row)}
            behind = [(row.queue, row.position + 1) for row in rows.values()]
            taken = self.items.taken(behind) if behind else set()
        except Exception:  # noqa: BLE001  # a visit to each tells whose trouble it is
            return {}
        return {queue: self._age(rows[queue]) for queue, seq in behind if (queue, seq) not in taken}

    def _may_be_idle(self, row: Cursor) -> bool:
        skip_after = (row.policy or self.policy).skip_after
        # A message within a gap that is too long makes another gap of it, and only a visit tells.
        is_known = row.is_measured and row.gap is not None and length(row.gap.seqs) <= MAX_GAP
        is_seen_whole = is_known and row.gap is not None and row.gap.through is None
        return row.is_marked and is_seen_whole and (skip_after is None or self._age(row) < skip_after)

    def _age(self, row: Cursor) -> float:
        return 0.0 if row.gap is None else max(0.0, self.now - row.gap.since)
