"""What the read models read: the ports of one sorter's tables, and what holds for all of its queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.message import KeyNames
    from stream_sort.model.outcomes import QueueState
    from stream_sort.ports import Clock, ControlStores, CursorStore, HeadReader, ItemStore
    from stream_sort.ports.in_flight import InFlight


@dataclass(frozen=True, slots=True)
class Sources:
    """The tables of a sorter, for reading.

    `open_control` is None where no control table is named. `gap_policy` is that of queues without one of their own.
    `requests` returns how many requests were made so far; `explain` the state of one queue.
    """

    items: ItemStore
    cursors: CursorStore
    heads: HeadReader
    open_control: Callable[[], ControlStores] | None
    cursor_table: str
    keys: KeyNames
    first_seq: int
    gap_policy: GapPolicy
    clock: Clock
    in_flight: InFlight
    requests: Callable[[], int]
    explain: Callable[[str], QueueState]

    @property
    def control(self) -> ControlStores | None:
        """Return the control table, None if none is named; opened only here, as it loads an SDK and may be misnamed."""
        return None if self.open_control is None else self.open_control()
