"""What a load asks of DynamoDB, as a formula: requests, write units and read units of every step. Pure: knows no price.

docs/cost.md says it in words, and a test holds it against what is measured. It counts one writer that remembers its
queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from math import ceil
from operator import add
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, shown
from stream_sort.insight.costing import sweeps
from stream_sort.insight.costing.disorder import CostedRelease, LookAhead, releases
from stream_sort.insight.costing.sweeps import PAGE_BYTES
from stream_sort.insight.costing.work import Work, read_units, write_units
from stream_sort.intake.storing import WINDOW_BYTES
from stream_sort.model.activity import HOUR
from stream_sort.model.message import MAX_MESSAGE_BYTES
from stream_sort.release.advancer import Limits
from stream_sort.upkeep.lag_watch import OVERLAP

if TYPE_CHECKING:
    from collections.abc import Iterator

HOURS = 730
SWEEPS_OF_ALL = HOURS
WINDOW = 1_000
STATEMENTS_A_CALL = 25
# What stands beside a message at rest: when it came, and the position that its writer saw.
OWN_BYTES = 26
# How far the formula goes; beyond that somebody's finger slipped.
MOST = {
    "batch": 1_000_000,
    "size": MAX_MESSAGE_BYTES,
    "queues": 1_000_000_000,
    "shuffled": 100,
    "consumers": 1_000,
    "batch_size": 10_000,
    "sweep_minutes": 1_440,
}
# Where a batch has several messages of a queue: one move, then a look at the row and the slot behind it.
MOVE_OF_A_BATCH = Work(2, 1, 2)
# Checkpoint, cursor row and the slot behind the position, in one request, before the first chunk and after the last.
WAKE, IDLE_WAKE = Work(2, 0, 6), Work(1, 0, 3)
# A queue that is seen to wait is marked: a write to its row and to the index. A sweep that finds it waiting no more
# puts the mark in doubt, looks again, and takes it away. Each of these three changes of the row wakes consumers.
MARK, MARK_SWEPT, RECORDS_OF_A_MARK = Work(1, 2, 0), Work(6, 5, 4), 3


@dataclass(frozen=True, slots=True)
class Load:
    """What comes in a month. `size` is that of a message in bytes as DynamoDB counts them: its names and its values.

    `shuffled` messages of a queue are mixed up with each other; 1 is in order. `queues_a_batch` are those that one
    batch touches, `queues` all there are. `batch_size` is that of the consumers. Without messages it is an idle stack.
    """

    messages: float
    batch: int = 1
    size: int = 300
    queues_a_batch: int = 1
    queues: int = 100
    shuffled: int = 1
    consumers: int = 1
    batch_size: int = 100
    sweep_minutes: int = 1

    def __post_init__(self) -> None:
        if not self.messages >= 0:
            raise InvalidInput(f"messages is {self.messages}; it must be at least 0")
        for name in ("batch", "size", "queues_a_batch", "queues", "shuffled", "batch_size", "sweep_minutes"):
            if not getattr(self, name) >= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.consumers < 0:
            raise InvalidInput(f"consumers is {self.consumers}; it must be at least 0")
        for name, most in MOST.items():
            if getattr(self, name) > most:
                raise InvalidInput(f"{name} is {shown(getattr(self, name))}; it must be at most {most:,}")
        if self.queues_a_batch > min(self.batch, self.queues):
            raise InvalidInput(
                f"a batch of {self.batch} messages cannot touch {self.queues_a_batch} queues; there are {self.queues}, "
                "and each takes a message of the batch"
            )

    @property
    def item_bytes(self) -> int:
        """Return the bytes of a message at rest."""
        return self.size + OWN_BYTES

    @property
    def of_a_queue(self) -> float:
        """Messages of one queue in a batch."""
        return self.batch / self.queues_a_batch

    @property
    def moves_a_second(self) -> float:
        """Return how many queues move in a second: each batch moves those that it touches."""
        return self.messages / self.of_a_queue / (HOURS * HOUR)

    @property
    def sweeps(self) -> float:
        """Sweeps in a month, besides those of all queues."""
        return HOURS * 60 / self.sweep_minutes

    @property
    def marks(self) -> float:
        """Return how often a queue begins to wait and is marked: once between two sweeps at most."""
        if not self.goes_over_the_edge:
            return 0.0
        moves = sum(1 / place for place in range(1, self.shuffled + 1)) / self.shuffled
        in_vain = 1 - moves if self.of_a_queue == 1 else 1.0
        return min(self.messages / self.of_a_queue * in_vain, self.queues * self.sweeps)

    @property
    def goes_over_the_edge(self) -> bool:
        """Return True if a batch may leave a gap that the next one closes."""
        return self.shuffled > 1 and self.of_a_queue % self.shuffled != 0

    def windows(self) -> Iterator[int]:
        """Yield the lengths of the pieces in which one batch is stored and released."""
        longest = min(WINDOW, ceil(WINDOW_BYTES / self.size))
        for start in range(0, self.batch, longest):
            yield min(longest, self.batch - start)


@cache
def monthly(load: Load) -> dict[str, Work]:
    """Return the work of every step in a month."""
    batches = load.messages / load.batch
    released = list(_releases(load))
    marks = load.marks
    return {
        "enqueue": _stores(load) * batches,
        "advance": _sum(release.work * (times * batches) for times, release in released)
        + MARK * marks
        + sweeps.hours(load.queues, load.moves_a_second) * HOURS,
        "process": _sum(_deliveries(load, release) * (times * batches) for times, release in released)
        + IDLE_WAKE * (load.consumers * marks * RECORDS_OF_A_MARK),
        "sweep": _sweeps(load) + MARK_SWEPT * marks,
    }


def _stores(load: Load) -> Work:
    """Return the work of putting a batch into the items table, 25 messages a call."""
    calls = sum(ceil(window / STATEMENTS_A_CALL) for window in load.windows())
    return Work(calls, load.batch * write_units(load.item_bytes), 0)


def _releases(load: Load) -> Iterator[tuple[float, CostedRelease]]:
    """Yield how often a batch causes which release."""
    look = LookAhead(max(2, min(64, Limits().first_page_bytes // load.size)), load.item_bytes)
    for window in load.windows():
        queues = min(load.queues_a_batch, window)
        if window > queues:
            yield queues, CostedRelease(window / queues, MOVE_OF_A_BATCH + _look_over_the_edge(load, look))
        else:
            for share, release in releases(load.shuffled, look):
                yield queues * share, release


def _look_over_the_edge(load: Load, look: LookAhead) -> Work:
    """Return the work of a look at what the batch before left waiting, where disorder goes over the edge of batches.

    That is the most it costs: a batch that is shorter than the disorder may release nothing.
    """
    if not load.goes_over_the_edge:
        return Work()
    read = min(look.first_page, load.shuffled + int(load.of_a_queue))
    return Work(1, 0, read_units(read * look.item_bytes))


def _deliveries(load: Load, release: CostedRelease) -> Work:
    """Return the work of consumers that a move wakes, and that deliver it: a page and a commit for each chunk."""
    if not release.length:
        return Work()
    longest = min(load.batch_size, max(1, PAGE_BYTES // load.item_bytes))
    whole, rest = divmod(release.length, longest)
    read = whole * read_units(longest * load.item_bytes) + (read_units(rest * load.item_bytes) if rest else 0)
    chunks = whole + (rest > 0)
    return (WAKE + Work(2 * chunks, chunks, read)) * load.consumers


def _sweeps(load: Load) -> Work:
    """Once a minute, or as often as it says, what is marked, parked or asleep; once an hour every queue."""
    since = load.sweep_minutes * 60 + OVERLAP
    # The hour of a queue began half an hour ago, on average.
    recent, active = (min(load.queues, load.moves_a_second * seconds) for seconds in (since, since + HOUR / 2))
    watch = sweeps.watch(load.queues, load.consumers, recent, active)
    passed = sweeps.in_turn(load.queues, load.consumers, recent, load.sweeps / HOURS + 1)
    of_all = sweeps.names(load.queues) + Work(2, 0, 2) * load.queues
    return (sweeps.WAITING + watch) * load.sweeps + (of_all + watch) * SWEEPS_OF_ALL + passed * HOURS


def _sum(parts: Iterator[Work]) -> Work:
    return reduce(add, parts, Work())
