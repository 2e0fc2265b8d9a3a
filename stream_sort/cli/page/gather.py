"""What the page tells: all queues as `status` sees them, and the newest messages of the worst ones.

Reads each cursor row, checkpoint and dead letter once; of the items table only so many messages of so many queues, and
a key of each queue of which the cursor row does not tell whether it waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.cli.choice import Choice
from stream_sort.cli.overview import look
from stream_sort.cli.page.history import History, Slot
from stream_sort.core.message import MAX_SEQ

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.cli.overview import Overview, QueueLine
    from stream_sort.core.records import Item
    from stream_sort.sorter import Sorter

# A queue that has moved since it was seen to wait is asked whether it still does; so many of them at most.
DOUBTS = 100
# The clocks of writers may be ahead of ours by as much.
SKEW = 60.0
# A chart shows at least so much of what was read; a few old messages do not make it one of months.
SHARE = 0.9
HOUR, DAY = 3_600.0, 86_400.0
SPANS = (
    *(HOUR * count for count in (0.25, 0.5, 1, 2, 3, 6, 12)),
    *(DAY * count for count in (1, 2, 3, 7, 14, 30, 90, 365)),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is looked at: so many queues closely, the worst first, and so many messages of each; rows of tables."""

    queues: int = 12
    messages: int = 200
    rows: int = 500


@dataclass(frozen=True, slots=True)
class Verdict:
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
    def of(cls, lines: tuple[QueueLine, ...]) -> Verdict:
        """Count."""
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
        """The first thing to say."""
        if not self.queues:
            return "No queues yet"
        if not self.in_trouble:
            return "The one queue is well" if self.queues == 1 else f"All {self.queues:,} queues are well"
        if self.queues == 1:
            return "The one queue is in trouble"
        return f"{self.in_trouble:,} of {self.queues:,} queues {'is' if self.in_trouble == 1 else 'are'} in trouble"


@dataclass(frozen=True, slots=True)
class Findings:
    """All that the page tells; its time axes go from `begin` to now."""

    overview: Overview
    verdict: Verdict
    histories: tuple[History, ...]
    begin: float
    bounds: Bounds

    @property
    def now(self) -> float:
        """When it was looked at."""
        return self.overview.at


def gather(sorter: Sorter, control_table: str | None, pattern: str, bounds: Bounds) -> Findings:
    """Look at all queues whose names match, and closely at the worst."""
    before = sorter.stores.requests()
    overview = look(sorter, control_table, Choice(pattern=pattern))
    lines = tuple(_settled(sorter, overview.lines, overview.at))
    histories = tuple(_history(sorter, line, bounds, overview.at) for line in lines[: bounds.queues])
    overview = replace(overview, lines=lines, requests=sorter.stores.requests() - before)
    return Findings(overview, Verdict.of(lines), histories, _begin(histories, overview.at), bounds)


def is_in_trouble(line: QueueLine) -> bool:
    """Whether somebody should look at a queue."""
    return bool(line.parked) or bool(line.dead) or line.waits


def _settled(sorter: Sorter, lines: tuple[QueueLine, ...], now: float) -> list[QueueLine]:
    """The same, the worst first, without the doubts that one small read each settles: those of the longest waits."""
    doubted = sorted((line for line in lines if line.in_doubt), key=lambda line: -(line.gap_age or 0.0))[:DOUBTS]
    waits = {line.queue: _wait(sorter, line, now) for line in doubted}
    settled = [
        replace(line, in_doubt=False, gap_age=waits[line.queue]) if line.queue in waits else line for line in lines
    ]
    return sorted(settled, key=lambda line: line.trouble)


def _wait(sorter: Sorter, line: QueueLine, now: float) -> float | None:
    """For how long a queue is held up that has moved since it was seen to wait; None if it is not."""
    beyond = sorter.stores.items.page(line.queue, line.position, MAX_SEQ, 1).items
    if not beyond:
        return None
    arrived = beyond[0].arrived_at
    return line.gap_age if arrived is None or line.gap_age is None else max(0.0, min(line.gap_age, now - arrived))


def _begin(histories: tuple[History, ...], now: float) -> float:
    """Where the shortest span begins that holds most of what was read."""
    ages = sorted(now - slot.at for history in histories for slot in history.slots)
    most = ages[int((len(ages) - 1) * SHARE)] if ages else 0.0
    return now - next((span for span in SPANS if span >= most), most)


def _history(sorter: Sorter, line: QueueLine, bounds: Bounds, now: float) -> History:
    after = line.position - bounds.messages
    items = [
        *_items(sorter, line.queue, range(after + 1, line.position + 1), bounds.messages),
        *_items(sorter, line.queue, range(line.position + 1, MAX_SEQ + 1), bounds.messages),
    ]
    slots = tuple(
        Slot(seq, min(at, now), skipped) for seq, at, skipped in items if at is not None and 0 <= at <= now + SKEW
    )
    return History(line.queue, line.position, slots, len(items) - len(slots))


def _items(sorter: Sorter, queue: str, seqs: range, limit: int) -> Iterator[tuple[int, float | None, bool]]:
    """What matters of the first items of a range; the messages themselves are let go of page by page."""
    after, through, more = seqs.start - 1, seqs.stop - 1, True
    while more and limit > 0 and after < through:
        page = sorter.stores.items.page(queue, after, through, limit)
        yield from map(_told, page.items)
        more, limit = page.more, limit - len(page.items)
        after = page.items[-1].seq if page.items else through


def _told(item: Item) -> tuple[int, float | None, bool]:
    return item.seq, item.arrived_at, item.is_tombstone
