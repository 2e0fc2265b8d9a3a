"""What the report tells: all queues as `status` sees them, what came in a period, the newest messages of the worst.

Reads each cursor row, checkpoint and dead letter once; of the items table what arrived in the period, in so many reads
at most, so many messages of so many queues, and a few slots of queues of which the cursor row does not tell whether
they wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from stream_sort.insight.history import History, ReportGap, TimedSeq, merged
from stream_sort.insight.overview import look
from stream_sort.insight.rows import Choice, chosen_rows
from stream_sort.insight.traffic import TrafficCounts, period_of, walk_queues
from stream_sort.model.message import MAX_SEQ
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stream_sort.insight.overview import Overview, QueueLine
    from stream_sort.insight.sources import Sources
    from stream_sort.model.records import Cursor
    from stream_sort.model.slots import Entry

# The clocks of writers may be ahead of ours by as much.
SKEW = 60.0
# Gaps that are closer together than this part of the period are drawn as one.
PARTS = 300


@dataclass(frozen=True, slots=True)
class ReportBounds:
    """How much is looked at: so many queues closely, the worst first, and so many messages of each; rows of tables.

    `period` is what is counted, in seconds until now, None to choose one; in `reads` reads at most.
    """

    queues: int = 12
    messages: int = 200
    rows: int = 500
    period: float | None = None
    reads: int = 500


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many queues there are, and how they are; `dead` are those with dead letters.

    In trouble are those that are parked, keep dead letters or wait for a seq.
    """

    queues: int
    in_trouble: int
    parked: int
    dead: int
    waiting: int
    behind: int
    due: int
    dead_letters: int

    @classmethod
    def of(cls, lines: tuple[QueueLine, ...]) -> QueueCounts:
        """Count what the lines say."""
        return cls(
            len(lines),
            sum(is_in_trouble(line) for line in lines),
            sum(bool(line.parked) for line in lines),
            sum(bool(line.dead) for line in lines),
            sum(line.waits for line in lines),
            sum(any(line.lag.values()) for line in lines),
            sum(sum(line.lag.values()) for line in lines),
            sum(sum(line.dead.values()) for line in lines),
        )

    @property
    def headline(self) -> str:
        """Return the first thing to say."""
        if not self.queues:
            return "No queues yet"
        if not self.in_trouble:
            return "The one queue is well" if self.queues == 1 else f"All {self.queues:,} queues are well"
        if self.queues == 1:
            return "The one queue is in trouble"
        return f"{self.in_trouble:,} of {self.queues:,} queues {'is' if self.in_trouble == 1 else 'are'} in trouble"


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the report tells; `gaps` are those of the period, by queue."""

    overview: Overview
    verdict: QueueCounts
    histories: tuple[History, ...]
    traffic: TrafficCounts
    gaps: Mapping[str, list[ReportGap]]
    untimed: int
    bounds: ReportBounds

    @property
    def begin(self) -> float:
        """Return where its time axes begin."""
        return self.traffic.begin

    @property
    def now(self) -> float:
        """Return when it was looked at."""
        return self.overview.at


def gather(sources: Sources, pattern: str, bounds: ReportBounds) -> Findings:
    """Look at all queues whose names match, and closely at the worst."""
    before = sources.requests()
    known = chosen_rows(sources, Choice(pattern=pattern))
    overview, rows = look(sources, known=known), known.rows
    lines, now = overview.lines, overview.at
    histories = tuple(_history(sources, line, bounds, now) for line in lines[: bounds.queues])
    begin = now - (_period(histories, rows, now) if bounds.period is None else bounds.period)
    walks = walk_queues(sources.items, rows, (begin, now), bounds.reads, sources.in_flight)
    # A walk that came to the position shows more than the newest messages do.
    shown = {history.queue: history for history in histories}
    shown |= {walk.row.queue: walk.history for walk in walks if walk.shows_what_waits}
    return Findings(
        replace(overview, requests=sources.requests() - before),
        QueueCounts.of(lines),
        histories,
        TrafficCounts.of(walks, begin, now),
        dict(_gaps(shown.values(), begin, now)),
        sum(history.untimed for history in shown.values()),
        bounds,
    )


def is_in_trouble(line: QueueLine) -> bool:
    """Return True if somebody should look at a queue."""
    return bool(line.parked) or bool(line.dead) or line.waits


def _period(histories: tuple[History, ...], rows: tuple[Cursor, ...], now: float) -> float:
    moved = max((row.moved_at for row in rows if row.moved_at is not None), default=now)
    return period_of([now - slot.at for history in histories for slot in history.slots], max(0.0, now - moved))


def _gaps(histories: Iterable[History], begin: float, now: float) -> Iterator[tuple[str, list[ReportGap]]]:
    """Yield the gaps of each queue that had some since `begin`; those of a moment are merged."""
    for history in histories:
        gaps = [gap for gap in history.gaps if gap.end is None or gap.end >= begin]
        if gaps:
            yield history.queue, merged(gaps, (now - begin) / PARTS)


def _history(sources: Sources, line: QueueLine, bounds: ReportBounds, now: float) -> History:
    after = line.position - bounds.messages
    items = [
        *_items(sources, line.queue, range(after + 1, line.position + 1), bounds.messages),
        *_items(sources, line.queue, range(line.position + 1, MAX_SEQ + 1), bounds.messages),
    ]
    slots = tuple(
        TimedSeq(seq, min(at, now), skipped) for seq, at, skipped in items if at is not None and 0 <= at <= now + SKEW
    )
    return History(line.queue, line.position, slots, len(items) - len(slots))


def _items(sources: Sources, queue: str, seqs: range, limit: int) -> Iterator[tuple[int, float | None, bool]]:
    """Read what matters of the first seqs of a range; the messages themselves are let go of page by page."""
    after, through, more = seqs.start - 1, seqs.stop - 1, True
    while more and limit > 0 and after < through:
        page = sources.items.page(queue, after, through, limit)
        found = list(islice(expand(page.slots, after, through), limit))
        yield from map(_times_of, found)
        more, limit = page.more, limit - len(found)
        after = found[-1].seq if found else through


def _times_of(entry: Entry) -> tuple[int, float | None, bool]:
    return entry.seq, entry.arrived_at, entry.is_tombstone
