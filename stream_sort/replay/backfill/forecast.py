"""What a backfill would do and cost, when it is only asked: for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.formats.columns import PIPE_WIDTH
from stream_sort.formats.terminal_text import visible
from stream_sort.replay.backfill.bounds import shortfalls
from stream_sort.replay.backfill.report import short_notes
from stream_sort.replay.engine.report import MOST_QUEUES, table

if TYPE_CHECKING:
    from stream_sort.replay.backfill.options import BackfillOptions
    from stream_sort.replay.engine.estimate import Estimate
    from stream_sort.replay.engine.plan import JobPlan

NOTHING_DONE = "dry run: nothing was read or written"


@dataclass(frozen=True, slots=True)
class Forecast:
    """A plan and its cost; without one, nothing is paid for reading."""

    options: BackfillOptions
    plan: JobPlan
    cost: Estimate | None = None

    def text(self, width: int = PIPE_WIDTH) -> str:
        """Return the plan as people read it: what would be read, and for how much; its table no wider than that."""
        rows, plan = self._rows(), self.plan
        lines = table(("queue", "rows", "first", "last"), rows[:MOST_QUEUES], width)
        if len(rows) > MOST_QUEUES:
            lines.append(f"and {len(rows) - MOST_QUEUES:,} more")
        lines += ["", f"from {self.options.source}", f"as {self.options.sink}"]
        lines.append(f"queues {len(rows):,}, rows {plan.rows:,} (tombstones included), parts {len(plan.parts):,}")
        if self.cost is not None:
            lines.append(_told(self.cost, consistent=self.options.consistent))
        return "\n".join([*map(visible, [*lines, *self._notes(), NOTHING_DONE]), ""])

    def document(self) -> dict[str, Any]:
        """Return the same for programs, every queue in it."""
        rows = self._rows()
        totals = {"queues": len(rows), "rows": self.plan.rows, "parts": len(self.plan.parts)}
        units = None if self.cost is None or self.cost.read_units is None else round(self.cost.read_units, 1)
        return {
            "job": "backfill",
            "dry_run": True,
            "totals": {**totals, "read_units": units},
            "source": str(self.options.source),
            "sink": str(self.options.sink),
            "notes": [*self._notes(), NOTHING_DONE],
            "queues": rows,
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Return a row for each queue, the longest first."""
        starts, ends = self.plan.starts(), self.plan.ends()
        rows = dict.fromkeys(sorted(ends), 0)
        for one in self.plan.ranges():
            rows[one.queue] += len(one)
        longest = sorted(rows, key=lambda queue: -rows[queue])
        return [{"queue": one, "rows": rows[one], "first": starts[one] + 1, "last": ends[one]} for one in longest]

    def _notes(self) -> list[str]:
        return [*self.plan.notes, *short_notes(shortfalls(self.options, self.plan))]


def _told(cost: Estimate, *, consistent: bool) -> str:
    if cost.read_units is None or cost.item_bytes is None:
        return "cost: not known; DynamoDB has not counted the table yet (it does every six hours)"
    how = "strongly" if consistent else "eventually"
    return f"cost: about {cost.read_units:,.0f} read units ({how} consistent, {cost.item_bytes:,.0f} bytes an item)"
