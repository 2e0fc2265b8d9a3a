"""What the read models read: the ports of one sorter's tables, and what holds for all of its queues."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.insight.wording import counted
from stream_sort.model.consumption import Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.message import KeyNames
    from stream_sort.model.outcomes import QueueState
    from stream_sort.ports import Clock, ControlStores, CursorStore, HeadReader, ItemStore
    from stream_sort.ports.in_flight import InFlight


@dataclass(frozen=True, slots=True)
class OwnConsumer:
    """The consumer that a stack runs by itself, and where it starts; `logs` is the command that shows why it fails."""

    name: str
    start: str
    logs: str

    @property
    def unbegun(self) -> Subscription:
        """Return it as it will be registered, should it not have run yet."""
        return Subscription(self.name, self.start, math.inf)

    def due(self, seqs: int) -> str:
        """Say how much waits for it, as long as it has not begun."""
        return f"{counted(seqs, 'message')} {'is' if seqs == 1 else 'are'} due; see {self.logs}"


@dataclass(frozen=True, slots=True)
class Sources:
    """The tables of a sorter, for reading.

    `open_control` is None where no control table is named. `gap_policy` is that of queues without one of their own.
    `requests` returns how many requests were made so far; `explain` the state of one queue. `own` is None where no
    stack is known.
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
    own: OwnConsumer | None = None

    @property
    def control(self) -> ControlStores | None:
        """Return the control table, None if none is named; opened only here, as it loads an SDK and may be misnamed."""
        return None if self.open_control is None else self.open_control()
