"""How many messages arrived and were released, and how many seqs were skipped, over a period. Pure: reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.model.records import CLOCKS_DIFFER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stream_sort.cli.page.counting import QueueWalk

BINS = 48
HOUR, DAY = 3_600.0, 86_400.0
SPANS = (
    *(HOUR / count for count in (12, 4, 2)),
    *(HOUR * count for count in (1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 3, 7, 14, 30, 90, 365)),
)
# A period shows at least so much of what was read; a few old messages do not make it one of months.
SHARE = 0.9


@dataclass(frozen=True, slots=True)
class TrafficCounts:
    """Counts of a period in `BINS` equal parts; from `complete_since` on nothing is left out, before it they are least.

    `active` queues may have had messages in it; `cut_short` of them were not read to its beginning. Of `trimmed` ones,
    messages of the period may have been deleted.
    """

    begin: float
    end: float
    arrived: tuple[int, ...]
    released: tuple[int, ...]
    skipped: tuple[int, ...]
    complete_since: float
    active: int
    cut_short: int
    trimmed: int

    @classmethod
    def of(cls, walks: Sequence[QueueWalk], begin: float, end: float) -> TrafficCounts:
        """Count what walks over all active queues have read."""
        arrived, released, skipped = [0] * BINS, [0] * BINS, [0] * BINS
        for walk in walks:
            history = walk.history
            _add(arrived, (slot.at for slot in history.slots if not slot.skipped), begin, end)
            _add(released, (slot.at for slot in history.released if not slot.skipped), begin, end)
            _add(skipped, (slot.at for slot in history.slots if slot.skipped), begin, end)
        unread = [walk.unread_before + CLOCKS_DIFFER for walk in walks if not walk.is_complete]
        return cls(
            begin,
            end,
            tuple(arrived),
            tuple(released),
            tuple(skipped),
            min(end, max(unread, default=begin)),
            len(walks),
            sum(walk.goes_on for walk in walks),
            sum(walk.is_trimmed for walk in walks),
        )

    @property
    def is_complete(self) -> bool:
        """Return True if every message of the period is counted."""
        return self.complete_since <= self.begin

    @property
    def step(self) -> float:
        """The seconds of a part."""
        return (self.end - self.begin) / BINS

    @property
    def totals(self) -> tuple[int, int, int]:
        """How many messages arrived and were released, and seqs were skipped, in the whole period."""
        return sum(self.arrived), sum(self.released), sum(self.skipped)


def period_of(ages: Sequence[float], idle: float) -> float:
    """Choose how many seconds back to look: the shortest span with most of what was read.

    `ages` are those of some messages, `idle` says for how long no queue moved. Where the last hour has some, it is an
    hour at most: to count a longer one is for those who ask for it.
    """
    most = sorted(ages)[int((len(ages) - 1) * SHARE)] if ages else HOUR
    wanted = min(most, max(HOUR, 2 * idle))
    return next((span for span in SPANS if span >= wanted), wanted)


def _add(counts: list[int], times: Iterable[float], begin: float, end: float) -> None:
    span = end - begin
    for at in times:
        if at >= begin:
            counts[min(BINS - 1, int((at - begin) / span * BINS))] += 1
