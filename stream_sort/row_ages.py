"""How long queues wait by what their rows tell: for those that a sweep has no time to visit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.core.records import Cursor
    from stream_sort.ports import CursorStore

# Rows in one request, and in all.
AT_ONCE, MOST = 100, 2_000


def row_ages(
    cursors: CursorStore, queues: Sequence[str], now: float, is_short: Callable[[], bool], *, marked: bool
) -> dict[str, float]:
    """Return the queues that wait, and for how many seconds; 0 where no sweep has measured it.

    Of queues that were listed as waiting (`marked`) those whose rows are not read count, too.
    """
    ages = dict.fromkeys(queues, 0.0) if marked else {}
    for start in range(0, min(len(queues), MOST), AT_ONCE):
        if is_short():
            break
        try:
            rows = cursors.rows_of(queues[start : min(start + AT_ONCE, MOST)])
        except Exception:  # noqa: BLE001  # a figure is not worth what the sweep did so far
            break
        for row in rows:
            if row.waiting_since is None:
                ages.pop(row.queue, None)
            else:
                ages[row.queue] = _age(row, now)
    return ages


def _age(row: Cursor, now: float) -> float:
    """Return the age of the gap that was noted on a row; the mark is no age: it may be of another gap, or of none."""
    return max(0.0, now - row.gap.since) if row.gap is not None and row.is_measured else 0.0
