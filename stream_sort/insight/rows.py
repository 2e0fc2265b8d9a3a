"""Which queues are meant, and their cursor rows: by name one by one, else by a pass over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stream_sort.errors import QueueNotFound, SettingsError, StoreMisconfigured, StoreUnavailable, StreamSortError
from stream_sort.model.message import check_queue
from stream_sort.model.records import Cursor, CursorPage
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.insight.sources import Sources


@dataclass(frozen=True, slots=True)
class Choice:
    """Queues by name, by a pattern, or all of them."""

    queues: tuple[str, ...] = ()
    pattern: str | None = None

    @property
    def is_all(self) -> bool:
        """Return True if no queue is left out."""
        return not self.queues and self.pattern is None

    def takes(self, queue: str) -> bool:
        """Return True if a queue is meant."""
        if self.queues:
            return queue in self.queues
        return self.pattern is None or fnmatchcase(queue, self.pattern)


def chosen_rows(sources: Sources, choice: Choice) -> CursorPage:
    """Read the rows of the queues that are meant; CursorLost if one that is named had a row and it is gone."""
    damaged: dict[str, StreamSortError] = {}
    rows = tuple(_chosen_rows(sources, choice, damaged))
    return CursorPage(rows, None, {queue: error for queue, error in damaged.items() if choice.takes(queue)})


def _chosen_rows(sources: Sources, choice: Choice, damaged: dict[str, StreamSortError]) -> Iterator[Cursor]:
    if not choice.queues:
        yield from (row for row in cursor_rows(sources, damaged) if choice.takes(row.queue))
    for queue in choice.queues:
        unbegun = Cursor(queue, sources.first_seq - 1, sources.first_seq)
        yield find_row(sources.items, sources.cursors, queue) or unbegun


def chosen_queues(sources: Sources, choice: Choice) -> Iterator[str]:
    """Return the names of the queues that are meant; whether those that are named are there is not looked at."""
    if choice.queues:
        return iter(choice.queues)
    return (row.queue for row in cursor_rows(sources) if choice.takes(row.queue))


def cursor_rows(sources: Sources, damaged: dict[str, StreamSortError] | None = None) -> Iterator[Cursor]:
    """Read the row of every queue; SettingsError if the table is none of cursor rows, or has other keys.

    Queues whose rows cannot be read are noted in `damaged`, with the error.
    """
    seen: set[str] = set()
    page = CursorPage((), None)
    is_first = True
    while is_first or page.next is not None:
        page = sources.cursors.rows(page.next)
        is_first = False
        names = {row.queue for row in page.rows}
        if len(names) < len(page.rows) or names & seen:
            # Not by its key alone: these are messages.
            _check_table(sources)
        seen |= names
        if damaged is not None:
            damaged |= page.damaged
        yield from page.rows
    if not seen:
        _check_table(sources)


def require_known(sources: Sources, queue: str) -> None:
    """Raise QueueNotFound for a queue with neither a row nor a message: it may be a slip of the finger."""
    if sources.cursors.get(check_queue(queue)) is None and sources.items.highest(queue) is None:
        raise QueueNotFound(queue)


def _check_table(sources: Sources) -> None:
    """Tell a table without queues from one whose rows cannot be read: a scan gives none of either."""
    cursors, keys = sources.cursors, sources.keys
    try:
        names = cursors.queues().queues
        # Whatever the name: a table with other keys refuses it.
        cursors.get(names[0] if names else "queue")
    except (StoreMisconfigured, StoreUnavailable):
        raise
    except StreamSortError as error:
        told = f"table {sources.cursor_table!r} has no cursor rows with the keys {keys.queue!r} and {keys.seq!r}"
        # Of other keys AWS says no more than that.
        why = "" if isinstance(error, SettingsError) else f": {error}"
        raise SettingsError(f"{told}; check --cursor-table, --queue-key and --seq-key{why}") from error
