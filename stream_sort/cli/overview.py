"""All queues at a glance: one pass over the cursor rows, over each consumer's checkpoints and its dead letters.

Of the items table, which may hold anything, only the first slots of queues whose rows leave a doubt are read, and of
so many queues; unless asked for more.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from stream_sort.cli.choice import Choice, counted
from stream_sort.cli.doubts import HOPELESS, ask_each, settle
from stream_sort.errors import (
    QueueNotFound,
    SettingsError,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
    named_error,
)
from stream_sort.model.consumption import first_checkpoint
from stream_sort.model.message import check_queue
from stream_sort.model.precaution import is_trouble
from stream_sort.model.records import Cursor, CursorPage
from stream_sort.release.lost_cursor import find_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stream_sort.cli.doubts import Settled
    from stream_sort.model.consumption import Checkpoint, Checkpoints, Parked, Subscription
    from stream_sort.model.policy import GapPolicy
    from stream_sort.ports import ControlStore
    from stream_sort.sorter import Sorter

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
        """Whether it certainly waits for a seq."""
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

    checkpoints: Checkpoints
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
    are consumers that are left out, since their registrations cannot be read, each with the error.
    """

    at: float
    consumers: tuple[str, ...]
    lines: tuple[QueueLine, ...]
    requests: int
    settled: int = 0
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """How many queues there are, and how many of them have a problem."""
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
        """The same with rates, as far as an earlier look tells."""
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
    sorter: Sorter,
    control_table: str | None,
    choice: Choice = EVERYTHING,
    *,
    deep: bool = False,
    known: CursorPage | None = None,
) -> Overview:
    """Read every cursor row, checkpoint and dead letter once; with `deep`, the ends of the queues, too.

    Of a queue whose row leaves a doubt, a few slots are read, so that the worst come first: see `settle`.
    Of queues that are named, only their rows are read; CursorLost if one had a row and it is gone. Whoever has read
    the rows gives them as `known`.
    """
    stores, now = sorter.stores, sorter.clock()
    before = stores.requests()
    chosen = chosen_rows(sorter, choice) if known is None else known
    rows = {row.queue: row for row in chosen.rows}
    control = None if control_table is None else stores.control(control_table)
    unreadable: dict[str, StreamSortError] = {}
    consumers = [] if control is None else consumers_of(control, unreadable)
    found = {} if control is None else {one: _progress(control, one.name, list(rows)) for one in consumers}
    settled = {} if deep else settle(sorter, rows.values(), now)
    at_row = partial(_look_at, sorter, found, settled, now, deep=deep)
    lines = [*(ask_each(sorter, at_row, list(rows.values())) if deep else map(at_row, rows.values()))]
    lines += [_damaged_line(sorter, queue, error) for queue, error in chosen.damaged.items()]
    names = tuple(one.name for one in consumers)
    ordered = tuple(sorted(lines, key=lambda line: line.trouble))
    errors = {name: str(error) for name, error in unreadable.items()}
    return Overview(now, names, ordered, stores.requests() - before, len(settled), errors)


def chosen_rows(sorter: Sorter, choice: Choice) -> CursorPage:
    """Read the rows of the queues that are meant."""
    damaged: dict[str, StreamSortError] = {}
    rows = tuple(_chosen_rows(sorter, choice, damaged))
    return CursorPage(rows, None, {queue: error for queue, error in damaged.items() if choice.takes(queue)})


def _chosen_rows(sorter: Sorter, choice: Choice, damaged: dict[str, StreamSortError]) -> Iterator[Cursor]:
    if not choice.queues:
        yield from (row for row in cursor_rows(sorter, damaged) if choice.takes(row.queue))
    unbegun = Cursor("", sorter.options.first_seq - 1, sorter.options.first_seq)
    for queue in choice.queues:
        yield find_row(sorter.stores.items, sorter.stores.cursors, queue) or replace(unbegun, queue=queue)


def cursor_rows(sorter: Sorter, damaged: dict[str, StreamSortError] | None = None) -> Iterator[Cursor]:
    """Read the row of every queue; SettingsError if the table is none of cursor rows, or has other keys.

    Queues whose rows cannot be read are noted in `damaged`, with the error.
    """
    seen: set[str] = set()
    page = CursorPage((), None)
    is_first = True
    while is_first or page.next is not None:
        page = sorter.stores.cursors.rows(page.next)
        is_first = False
        names = {row.queue for row in page.rows}
        if len(names) < len(page.rows) or names & seen:
            # Not by its key alone: these are messages.
            _check_table(sorter)
        seen |= names
        if damaged is not None:
            damaged |= page.damaged
        yield from page.rows
    if not seen:
        _check_table(sorter)


def require_known(sorter: Sorter, queue: str) -> None:
    """Raise QueueNotFound for a queue with neither a row nor a message: it may be a slip of the finger."""
    if sorter.stores.cursors.get(check_queue(queue)) is None and sorter.stores.items.highest(queue) is None:
        raise QueueNotFound(queue)


def consumers_of(control: ControlStore, unreadable: dict[str, StreamSortError]) -> list[Subscription]:
    """Return all consumers, by name; those whose registration cannot be read are noted in `unreadable`."""
    found = control.readable_consumers()
    unreadable |= found.damaged
    return sorted(found.active(), key=lambda one: one.name)


def lag_of(row: Cursor, consumer: Subscription, checkpoint: Checkpoint | None) -> int:
    """How many released seqs a consumer has not done; rows are read at different moments, so it may seem ahead."""
    done = first_checkpoint(consumer.start, row) if checkpoint is None else checkpoint.seq
    return max(0, row.position - done)


def _check_table(sorter: Sorter) -> None:
    """Tell a table without queues from one whose rows we cannot read: a scan gives none of either."""
    cursors, keys = sorter.stores.cursors, sorter.options.keys
    try:
        names = cursors.queues().queues
        # Whatever the name: a table with other keys refuses it.
        cursors.get(names[0] if names else "queue")
    except (StoreMisconfigured, StoreUnavailable):
        raise
    except StreamSortError as error:
        told = f"table {sorter.stores.cursor_table!r} has no cursor rows with the keys {keys.queue!r} and {keys.seq!r}"
        # Of other keys AWS says no more than that.
        why = "" if isinstance(error, SettingsError) else f": {error}"
        raise SettingsError(f"{told}; check --cursor-table, --queue-key and --seq-key{why}") from error


def _progress(control: ControlStore, consumer: str, queues: list[str]) -> ConsumerProgress:
    checkpoints = control.readable_checkpoints(consumer, queues)
    page = control.dead_letters(consumer)
    dead = Counter(letter.queue for letter in page.letters)
    while page.next is not None:
        page = control.dead_letters(consumer, page.next)
        dead.update(letter.queue for letter in page.letters)
    return ConsumerProgress(checkpoints, dead)


def _look_at(  # noqa: PLR0913  # all that is known when a row is looked at
    sorter: Sorter,
    found: Mapping[Subscription, ConsumerProgress],
    settled: Mapping[str, Settled],
    now: float,
    row: Cursor,
    *,
    deep: bool,
) -> QueueLine:
    """One queue; an error in it, also one that nobody foresaw, is told in its line and hides no other queue."""
    line = QueueLine(row.queue, row.position, row.first_seq, row.policy or sorter.options.gap_policy, None)
    try:
        line = _line(sorter, row, found, now)
        return _deepened(sorter, line, now) if deep else _certain(line, settled.get(row.queue), now)
    except HOPELESS:
        raise
    except Exception as error:  # noqa: BLE001  # I7
        return replace(line, error=str(named_error(row.queue, error)))


def _damaged_line(sorter: Sorter, queue: str, error: StreamSortError) -> QueueLine:
    """Show a queue whose cursor row cannot be read, as one that has not begun."""
    first = sorter.options.first_seq
    return QueueLine(queue, first - 1, first, sorter.options.gap_policy, None, error=str(error))


def _line(sorter: Sorter, row: Cursor, found: Mapping[Subscription, ConsumerProgress], now: float) -> QueueLine:
    there = {consumer: progress.checkpoint(row.queue) for consumer, progress in found.items()}
    since = row.gap_since
    return QueueLine(
        row.queue,
        row.position,
        row.first_seq,
        row.policy or sorter.options.gap_policy,
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
    """The same with what a read of its items has shown, if there was one."""
    if settled is None:
        return line
    if settled.error is not None:
        return replace(line, error=str(settled.error))
    waited = None if settled.since is None else max(0.0, now - settled.since)
    return replace(line, gap_age=waited, in_doubt=False)


def _deepened(sorter: Sorter, line: QueueLine, now: float) -> QueueLine:
    """The same with what is stored beyond the position: a request a queue, and more where it waits."""
    highest = sorter.stores.items.highest(line.queue)
    if highest is None or highest <= line.position:
        return replace(line, highest=highest, waiting=0, gap_age=None, in_doubt=False)
    state = sorter.explain(line.queue)
    waited = None if state.waiting_since is None else max(0.0, now - state.waiting_since)
    return replace(line, highest=highest, waiting=state.stored_beyond, gap_age=waited, in_doubt=False)
