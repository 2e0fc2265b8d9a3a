"""Service: reads the cursor rows that a look needs: of active queues, of named ones, and some of all others in turn."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreMisconfigured, StoreUnavailable
from stream_sort.model.activity import HOUR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stream_sort.errors import StreamSortError
    from stream_sort.model.records import Cursor, CursorPage
    from stream_sort.model.watch import WatchState
    from stream_sort.ports import CursorStore

# How many rows of the pass over all queues a look goes through; a table that has no more is read whole at every look.
ROWS_A_LOOK = 500
# The same while more queues lag than can be remembered: nothing but the pass finds the others.
ROWS_TO_CATCH_UP = 5_000
# The same where no index tells which queues are active.
ROWS_WITHOUT_INDEX = 2_000
# A scan reads a row for about a thirtieth of what reading it by its key costs.
CHEAPER_BY_SCAN = 30
# So many rows are scanned though nobody has counted all yet.
MANY = 20_000
# Of so many rows none may get an answer, and it is the trouble of their queues: if more do not, it is the table's.
MOST_UNREAD = 100


@dataclass(slots=True)
class Rows:
    """The rows of a look; those `in_turn` are compared however long ago they moved.

    `damaged` are queues whose rows cannot be read. `watch` is how far the pass got, and `through` says that it has come
    to its end. Without `active` nobody knows which queues were active.
    """

    watch: WatchState
    found: dict[str, Cursor] = field(default_factory=dict)
    damaged: dict[str, StreamSortError] = field(default_factory=dict)
    in_turn: list[str] = field(default_factory=list)
    through: bool = False
    active: bool = True

    def add(self, page: CursorPage, wanted: Collection[str] | None = None) -> None:
        """Take rows in, all of a page or those that are wanted."""
        self.found.update((row.queue, row) for row in page.rows if wanted is None or row.queue in wanted)
        self.damaged.update(page.damaged)


class ActivityReader:
    """Reads rows at a cost that follows activity; a slow pass over all rows, once an hour at most, is the safety net.

    The pass finds what no index shows: rows of an earlier version, and consumers that are new to idle queues.
    """

    def __init__(self, cursors: CursorStore, rows_a_look: int = ROWS_A_LOOK) -> None:
        self._cursors = cursors
        self._rows_a_look = rows_a_look

    def read(self, watch: WatchState, named: Collection[str], since: float, now: float) -> Rows:
        """Read the rows of queues that were active at or after `since`, of those named, and of the pass's next part."""
        rows = Rows(watch)
        is_small = watch.total is not None and watch.total <= self._rows_a_look
        if is_small and self._take_whole(rows, now):
            return rows
        active = self._active(since)
        part = max(self._rows_a_look, ROWS_TO_CATCH_UP) if watch.dropped else self._rows_a_look
        if active is None:
            rows.active = False
            self._go_on(rows, now, max(part, ROWS_WITHOUT_INDEX))
        elif _is_under_way_or_due(watch, now):
            self._go_on(rows, now, part)
        wanted = {*named, *(active or ())}.difference(rows.found)
        try:
            for page in self._by_name(wanted, watch.total):
                rows.add(page, wanted)
        except StoreUnavailable as error:
            # The table has answered if the look has rows: these alone must not keep the pass from going on.
            if not rows.found or len(wanted) > MOST_UNREAD:
                raise
            rows.damaged.update(dict.fromkeys(wanted.difference(rows.found), error))
        return rows

    def _take_whole(self, rows: Rows, now: float) -> bool:
        """Read the whole table in one page, if it still is that small."""
        page = self._cursors.rows(None, self._rows_a_look)
        if page.next is not None:
            rows.watch = replace(rows.watch, total=None)
            return False
        rows.add(page)
        if _is_under_way_or_due(rows.watch, now):
            rows.watch = replace(rows.watch, place=None)
            _note_part(rows, page, now)
        return True

    def _go_on(self, rows: Rows, now: float, limit: int) -> None:
        try:
            page = self._cursors.rows(rows.watch.place, limit)
        except Exception as error:
            if rows.watch.place is None or isinstance(error, StoreUnavailable | StoreMisconfigured):
                raise
            # No table knows such a place: the pass begins anew.
            rows.watch = replace(rows.watch, place=None)
            page = self._cursors.rows(None, limit)
        rows.add(page)
        _note_part(rows, page, now)

    def _active(self, since: float) -> list[str] | None:
        """Name the active queues; None if there is no index that could tell."""
        page = self._cursors.active(since)
        names: list[str] = []
        while page is not None:
            names += page.queues
            if page.next is None:
                return names
            page = self._cursors.active(since, page.next)
        return None

    def _by_name(self, wanted: set[str], total: int | None) -> Iterator[CursorPage]:
        many = len(wanted) >= MANY if total is None else total <= len(wanted) * CHEAPER_BY_SCAN
        if not wanted or not many:
            yield self._cursors.rows_of(sorted(wanted))
            return
        start: Any = None
        while True:
            page = self._cursors.rows(start)
            yield page
            start = page.next
            if start is None:
                return


def _is_under_way_or_due(watch: WatchState, now: float) -> bool:
    is_due = watch.began is None or not 0 <= now - watch.began < HOUR
    return is_due or watch.place is not None or bool(watch.dropped)


def _note_part(rows: Rows, page: CursorPage, now: float) -> None:
    """Note that a part of the pass is read: its first one, if none was under way."""
    watch = rows.watch
    begins = watch.place is None
    seen = len(page.rows) + len(page.damaged) + (0 if begins else watch.seen)
    rows.in_turn = [row.queue for row in page.rows]
    rows.through = page.next is None
    rows.watch = replace(
        watch,
        began=now if begins else watch.began,
        place=page.next,
        seen=seen,
        total=seen if page.next is None else watch.total,
    )
