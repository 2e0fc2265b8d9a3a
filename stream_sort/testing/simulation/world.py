"""The tables that simulated processes share, and what happens to them from outside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import HandlerProblem
from stream_sort.stores.memory.cursors import MemoryCursorStore
from stream_sort.stores.memory.tables import MemoryTables
from stream_sort.testing.simulation.calls import RefusedEffects
from stream_sort.testing.simulation.consumers import CONTROL

if TYPE_CHECKING:
    from random import Random

    from stream_sort.model.records import Cursor
    from stream_sort.stores.memory.control import MemoryControl
    from stream_sort.testing.simulation.calls import Call

START_TIME = 1_000.0
# For how many seconds an index may lag behind its table.
INDEX_LAGS = 60.0


class World:
    """Memory tables on which one part of a call is applied at a time, and a clock that only the scheduler moves."""

    def __init__(self, tables: MemoryTables | None = None) -> None:
        self.tables = tables or MemoryTables()
        self.now = START_TIME
        self._index: dict[str, Cursor] = {}
        home = self.tables.home()
        control = home.control(CONTROL)
        self._ports: dict[str, object] = {
            "items": home.items,
            "cursors": home.cursors,
            "heads": home.heads,
            "checkpoints": control.checkpoints,
            "dead_letters": control.dead_letters,
            "subscriptions": control.subscriptions,
            "withdrawals": home.withdrawals,
        }

    @property
    def control(self) -> MemoryControl:
        """Return the rows of the control table."""
        return self.tables.controls[CONTROL]

    def clock(self) -> float:
        """Return the time."""
        return self.now

    def apply(self, part: Call, rng: Random | None = None) -> Any:
        """Do what one atomic part asks for. `rng` decides what eventually consistent answers show."""
        if part.key == "cursors.waiting" and rng is not None:
            return self._marked(rng, *part.args)
        if part.key == "cursors.active" and rng is not None:
            return self._active(rng, *part.args)
        if part.key == "cursors.create":
            # A repeated request must not be known by the identity of its row.
            return self.tables.home().cursors.create(replace(part.args[0]))
        try:
            return getattr(self._ports[part.port], part.name)(*part.args)
        except HandlerProblem as problem:
            # The store's answer to effects that cannot be: for the process that asked, as on tables.
            return RefusedEffects(problem)

    def position(self, queue: str) -> int | None:
        """Return where a queue stands; None without a row."""
        row = self.tables.cursors.get(queue)
        return None if row is None else row.position

    def settle(self) -> None:
        """Let the index of waiting queues catch up with the rows."""
        self._index = dict(self.tables.cursors)

    def _active(self, rng: Random, *args: Any) -> Any:
        """Read the index of active queues, which may not show what happened a moment ago."""
        before = {
            queue: row
            for queue, row in self.tables.cursors.items()
            if (row.active_at or 0.0) < self.now - INDEX_LAGS or rng.random() < 0.5  # noqa: PLR2004  # as often as not
        }
        return MemoryCursorStore(MemoryTables(cursors=before)).active(*args)

    def _marked(self, rng: Random, *args: Any) -> Any:
        """Read the index of waiting queues, which may lag behind the rows."""
        if rng.random() < 0.5:  # noqa: PLR2004  # as often current as not
            self.settle()
        return MemoryCursorStore(MemoryTables(cursors=self._index)).waiting(*args)
