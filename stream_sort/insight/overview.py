"""All queues at a glance: one pass over the cursor rows, over each consumer's checkpoints and its dead letters.

Of the items table, which may hold anything, only the first slots of queues whose rows leave a doubt are read, and of
so many queues; unless asked for more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.errors import named_error
from stream_sort.insight.doubts import HOPELESS, ask_each, settle_doubts
from stream_sort.insight.rows import Choice, chosen_rows
from stream_sort.insight.wording import counted
from stream_sort.model.consumption import first_checkpoint
from stream_sort.model.retries import is_trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.errors import StreamSortError
    from stream_sort.insight.doubts import Settled
    from stream_sort.insight.sources import OwnConsumer, Sources
    from stream_sort.model.consumption import Checkpoint, FoundCheckpoints, Parked, Subscription
    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.records import Cursor, CursorPage
    from stream_sort.ports import ControlStores

EVERYTHING = Choice()


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue. `gap_age` is in seconds, None if it does not wait; `lag`, `parked` and `dead` are by consumer.

    `dead` counts the dead letters of those that keep any.
    `in_doubt` says that the queue has moved since it was seen to wait, and that its items were not read.
    `highest` and `waiting` are None unless the items table was asked; `rate` is in messages released a second.
    `error` says why the queue could not be looked at, or not whole.
    """

    queue: str
    position: int
    first_seq: int
    policy: GapPolicy
    gap_age: float | None
    lag: dict[str, int] = field(default_factory=dict)
    parked: dict[str, Parked] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    highest: int | None = None
    waiting: int | None = None
    rate: float | None = None
    in_doubt: bool = False
    error: str | None = None

    @property
    def waits(self) -> bool:
        """Return True if it certainly waits for a seq."""
        return self.gap_age is not None and not self.in_doubt

    @property
    def trouble(self) -> tuple[bool, int, float, int, float, int, str]:
        """Return what to sort by: errors, parked, waiting for long, dead letters, perhaps waiting, far behind."""
        waited = self.gap_age if self.waits else None
        lag = max(self.lag.values(), default=0)
        dead = sum(self.dead.values())
        fails = self.error is not None
        perhaps = 1.0 + (self.gap_age or 0.0) if self.in_doubt else 0.0
        return not fails, -len(self.parked), -(waited or 0.0), -dead, -perhaps, -lag, self.queue


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """One consumer in all queues: its checkpoints, and how many dead letters it keeps in each."""

    checkpoints: FoundCheckpoints
    dead: Counter[str]

    def checkpoint(self, queue: str) -> Checkpoint | None:
        """Return the checkpoint in a queue, None if there is none; raises if it cannot be read."""
        if queue in self.checkpoints.damaged:
            raise self.checkpoints.damaged[queue]
        return self.checkpoints.rows.get(queue)


@dataclass(frozen=True, slots=True)
class Overview:
    """All queues, the worst first, and how many requests it took to see them.

    `settled` is how many queues were in doubt until their items were read; the rest is beyond the bound. `unreadable`
    are consumers that are left out, since their registrations cannot be read, each with the error. `not_begun` says of
    the stack's own consumer what is due, as long as it has not begun anywhere.
    """

    at: float
    consumers: tuple[str, ...]
    lines: tuple[QueueLine, ...]
    requests: int
    settled: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)
    not_begun: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Say how many queues there are, and how many of them have a problem."""
        parked = sum(bool(line.parked) for line in self.lines)
        waiting = sum(line.waits for line in self.lines)
        doubtful = sum(line.in_doubt for line in self.lines)
        behind = sum(any(line.lag.values()) for line in self.lines)
        dead = sum(bool(line.dead) for line in self.lines)
        told = [f"{parked:,} parked"]
        told += [f"{dead:,} with dead letters"] if dead else []
        told += [f"{waiting:,} waiting for a seq", f"{behind:,} not all consumed"]
        told += [f"{doubtful:,} in doubt"] if doubtful else []
        failed = sum(line.error is not None for line in self.lines)
        told += [f"{failed:,} could not be looked at"] if failed else []
        return f"{counted(len(self.lines), 'queue')}: {', '.join(told)} ({counted(self.requests, 'request')})"

    def rated(self, before: Overview | None) -> Overview:
        """Return the same with rates, as far as an earlier look tells."""
        if before is None or self.at <= before.at:
            return self
        then = {line.queue: line.position for line in before.lines}
        spent = self.at - before.at
        lines = [
            replace(line, rate=max(0, line.position - then.get(line.queue, line.first_seq - 1)) / spent)
            for line in self.lines
        ]
        return replace(self, lines=tuple(lines))


def look(
    sources: Sources, choice: Choice = EVERYTHING, *, deep: bool = False, known: CursorPage | None = None
) -> Overview:
    """Read every cursor row, checkpoint and dead letter once; with `deep`, the ends of the queues, too.

    Of a queue whose row leaves a doubt, a few slots are read, so that the worst come first: see `settle_doubts`.
    Of queues that are named, only their rows are read; CursorLost if one had a row and it is gone. Whoever has read
    the rows gives them as `known`.
    """
    now, before = sources.clock(), sources.requests()
    chosen = chosen_rows(sources, choice) if known is None else known
    rows = {row.queue: row for row in chosen.rows}
    control = sources.control
    unreadable: dict[str, StreamSortError] = {}
    consumers = [] if control is None else consumers_of(control, unreadable, sources.own)
    found = {} if control is None else _progress(control, consumers, list(rows))
    settled = {} if deep else settle_doubts(sources, rows.values(), now)
    at_row = partial(_look_at, sources, found, settled, now, deep=deep)
    lines = [*(ask_each(sources, at_row, list(rows.values())) if deep else map(at_row, rows.values()))]
    lines += [_damaged_line(sources, queue, error) for queue, error in chosen.damaged.items()]
    names = tuple(one.name for one in consumers)
    ordered = tuple(sorted(lines, key=lambda line: line.trouble))
    errors = {name: str(error) for name, error in unreadable.items()}
    requests = sources.requests() - before
    return Overview(now, names, ordered, requests, len(settled), errors, _not_begun(sources.own, consumers, lines))


def consumers_of(
    control: ControlStores, unreadable: dict[str, StreamSortError], own: OwnConsumer | None = None
) -> list[Subscription]:
    """Return all consumers, by name, and the stack's own one also if it has not begun.

    Those whose registration cannot be read are noted in `unreadable`.
    """
    found = control.subscriptions.readable_consumers()
    unreadable |= found.damaged
    is_missing = own is not None and own.name not in {*found.rows, *found.damaged}
    missing = [own.unbegun] if own is not None and is_missing else []
    return sorted([*found.active(), *missing], key=lambda one: one.name)


def _not_begun(
    own: OwnConsumer | None, consumers: Iterable[Subscription], lines: Iterable[QueueLine]
) -> dict[str, str]:
    """Say what is due for the stack's own consumer, if it has not begun; nothing if nothing is."""
    if own is None or own.unbegun not in consumers:
        return {}
    due = sum(line.lag.get(own.name, 0) for line in lines)
    return {own.name: own.due(due)} if due else {}


def lag_of(row: Cursor, consumer: Subscription, checkpoint: Checkpoint | None) -> int:
    """Return how many released seqs a consumer has not done; rows are of different moments, so it may seem ahead."""
    done = first_checkpoint(consumer.start, row) if checkpoint is None else checkpoint.seq
    return max(0, row.position - done)


def dead_letters_by_queue(control: ControlStores, consumer: str) -> Counter[str]:
    """Count the dead letters that a consumer keeps."""
    page = control.dead_letters.listed(consumer)
    dead = Counter(letter.queue for letter in page.dead)
    while page.next is not None:
        page = control.dead_letters.listed(consumer, page.next)
        dead.update(letter.queue for letter in page.dead)
    return dead


def _progress(
    control: ControlStores, consumers: Iterable[Subscription], queues: list[str]
) -> dict[Subscription, ConsumerProgress]:
    return {
        one: ConsumerProgress(control.checkpoints.of_queues(one.name, queues), dead_letters_by_queue(control, one.name))
        for one in consumers
    }


def _look_at(  # noqa: PLR0913  # all that is known when a row is looked at
    sources: Sources,
    found: Mapping[Subscription, ConsumerProgress],
    settled: Mapping[str, Settled],
    now: float,
    row: Cursor,
    *,
    deep: bool,
) -> QueueLine:
    """Look at one queue; an error in it, also one that nobody foresaw, is told in its line and hides no other queue."""
    line = QueueLine(row.queue, row.position, row.first_seq, row.policy or sources.gap_policy, None)
    try:
        line = _line(sources, row, found, now)
        return _deepened(sources, line, now) if deep else _certain(line, settled.get(row.queue), now)
    except HOPELESS:
        raise
    except Exception as error:  # noqa: BLE001  # I7
        return replace(line, error=str(named_error(row.queue, error)))


def _damaged_line(sources: Sources, queue: str, error: StreamSortError) -> QueueLine:
    """Show a queue whose cursor row cannot be read, as one that has not begun."""
    first = sources.first_seq
    return QueueLine(queue, first - 1, first, sources.gap_policy, None, error=str(error))


def _line(sources: Sources, row: Cursor, found: Mapping[Subscription, ConsumerProgress], now: float) -> QueueLine:
    there = {consumer: progress.checkpoint(row.queue) for consumer, progress in found.items()}
    since = row.gap_since
    return QueueLine(
        row.queue,
        row.position,
        row.first_seq,
        row.policy or sources.gap_policy,
        None if since is None else max(0.0, now - since),
        {consumer.name: lag_of(row, consumer, checkpoint) for consumer, checkpoint in there.items()},
        {
            consumer.name: checkpoint.parked
            for consumer, checkpoint in there.items()
            if checkpoint is not None and checkpoint.parked is not None and is_trouble(checkpoint.parked, now)
        },
        {consumer.name: one.dead[row.queue] for consumer, one in found.items() if row.queue in one.dead},
        in_doubt=row.in_doubt,
    )


def _certain(line: QueueLine, settled: Settled | None, now: float) -> QueueLine:
    """Return the same with what a read of its items has shown, if there was one."""
    if settled is None:
        return line
    if settled.error is not None:
        return replace(line, error=str(settled.error))
    waited = None if settled.since is None else max(0.0, now - settled.since)
    return replace(line, gap_age=waited, in_doubt=False)


def _deepened(sources: Sources, line: QueueLine, now: float) -> QueueLine:
    """Return the same with what is stored beyond the position: a request a queue, and more where it waits."""
    highest = sources.items.highest(line.queue)
    if highest is None or highest <= line.position:
        return replace(line, highest=highest, waiting=0, gap_age=None, in_doubt=False)
    state = sources.explain(line.queue)
    waited = None if state.waiting_since is None else max(0.0, now - state.waiting_since)
    return replace(line, highest=highest, waiting=state.stored_beyond, gap_age=waited, in_doubt=False)
