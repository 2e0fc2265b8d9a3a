"""The tables of a sorter, each behind its port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.ports.control import ControlStores
    from stream_sort.ports.cursors import CursorStore, HeadReader
    from stream_sort.ports.items import ItemStore
    from stream_sort.ports.withdrawals import WithdrawalStore


def _none() -> int:
    """Memory needs no requests."""
    return 0


def _nothing(name: str) -> None:
    """Check nothing: the first call raises."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where queues live: an items table, a cursor table, and control tables by their names.

    `cursor_table` is the name in its stream's records, empty where there is no stream; `requests` returns how many
    requests were made so far. `check_control` raises for a control table that is not there, where no call would.
    `check_items` takes a queue, and raises for an items table that is not there or has other keys; once is enough.
    """

    items: ItemStore
    cursors: CursorStore
    heads: HeadReader
    control: Callable[[str], ControlStores]
    create_tables: Callable[[], None]
    withdrawals: WithdrawalStore
    cursor_table: str = ""
    requests: Callable[[], int] = _none
    check_control: Callable[[str], None] = _nothing
    check_items: Callable[[str], None] = _nothing


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of one sorter; a queue lives in one of them, for good. Today there is one."""

    only: Home

    def of(self, queue: str) -> Home:  # noqa: ARG002  # all queues live in the only home
        """Return the home of a queue."""
        return self.only

    def all(self) -> tuple[Home, ...]:
        """Return every home: together they hold all queues."""
        return (self.only,)
