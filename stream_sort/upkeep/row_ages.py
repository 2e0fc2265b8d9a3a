"""How long queues wait by what their rows tell: for those that a sweep has no time to visit, or cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.model.records import Cursor
    from stream_sort.ports import CursorStore

# Rows in one request, and in all.
AT_ONCE, MOST = 100, 2_000


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
