"""Service: compares the cursor rows of one look with the checkpoints of each consumer: who lags, and whom to nudge."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from stream_sort.errors import StoreUnavailable, StreamSortError, named_error
from stream_sort.model.activity import HOUR
from stream_sort.model.consumption import FoundCheckpoints, check_start, first_checkpoint
from stream_sort.model.watch import MOST_LAGS, Dropped, Lag, WatchState
from stream_sort.ports.time_limit import seconds_left
from stream_sort.upkeep.activity_reader import MOST_UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.model.consumption import Checkpoint, Subscription
    from stream_sort.model.records import Cursor
    from stream_sort.ports import Checkpoints
    from stream_sort.upkeep.activity_reader import Rows

# How long a released message may wait before somebody is thought to sleep.
PATIENCE = 30.0
# How many queues one look compares at most; what is left is older than all that was compared, and the next one's first.
MOST_COMPARED = 50_000
# How many active queues are compared before the time is looked at again.
PART = 500


@dataclass(slots=True)
class Watched:
    """What a look found, by consumer: the longest lag in messages, and how many queues stay parked.

    `forgotten` is how many lagging queues there are beyond those that are remembered until the next look. `dropped`
    says, by consumer, that there were some before, since when, and how long the longest was: `lag` is not below that
    until a look at all that may be among them, or a pass over all queues, has found no more of them. `left` is how many
    queues there was no time for. `failed` is what went wrong, by consumer; without `whole`, some lag is not known, and
    without `counts_parked`, not how many are parked.
    `damaged` are queues of which a row cannot be read, or which cannot be compared: they are left out, but for a lag of
    before whose checkpoint cannot be read now.
    """

    lag: Counter[str] = field(default_factory=Counter)
    parked: Counter[str] = field(default_factory=Counter)
    forgotten: int = 0
    dropped: dict[str, Dropped] = field(default_factory=dict)
    left: int = 0
    failed: list[tuple[str, StreamSortError]] = field(default_factory=list)
    damaged: dict[str, StreamSortError] = field(default_factory=dict)
    whole: bool = False
    counts_parked: bool = False

    @property
    def dropped_since(self) -> float | None:
        """Return since when not all lags could be remembered; None if all are."""
        return min((one.since for one in self.dropped.values()), default=None)


@dataclass(frozen=True, slots=True)
class LagLook:
    """One look at all consumers: what was known before, the rows in hand, and those active since, the oldest first."""

    now: float
    before: WatchState
    rows: Rows
    recent: list[tuple[float, str]]

    def always(self, consumer: Subscription, parked: Iterable[str]) -> list[str]:
        """Name what is compared for one consumer however little time there is; all in hand for one that is new."""
        if consumer.ready and consumer.name not in self.before.consumers:
            return list(islice(self.rows.found, MOST_COMPARED))
        lagged = (lag.queue for lag in self.before.lags if lag.consumer == consumer.name)
        return list(dict.fromkeys((*self.rows.in_turn, *lagged, *parked)))


@dataclass(slots=True)
class _View:
    """One consumer's part of a look: what it lagged by before, and what was read."""

    consumer: Subscription
    old: dict[str, Lag]
    asked: set[str] = field(default_factory=set)
    read: list[tuple[Cursor, Checkpoint | None]] = field(default_factory=list)
    damaged: dict[str, StreamSortError] = field(default_factory=dict)
    failed: bool = False

    def is_running(self, now: float) -> bool:
        """Return True if it has committed anything of what was read within the last hour."""
        times = (there.committed_at for _, there in self.read if there is not None)
        return any(at is not None and now - at < HOUR for at in times)


class LagFinder:
    """Finds the lags of one look, as they are before anybody is nudged.

    `due` are those to nudge, and since when; `compared` names, by consumer, the queues that were looked at. Without
    `is_whole` some row got no answer, and nobody knows a lag of its queue.
    """

    def __init__(self, checkpoints: Checkpoints, look: LagLook, watched: Watched) -> None:
        self._checkpoints = checkpoints
        self._look = look
        self._watched = watched
        self.lags: list[Lag] = []
        self.due: dict[tuple[str, str], float] = {}
        self.compared: dict[str, set[str]] = {}
        self.is_whole = True

    def find(self, consumers: list[Subscription], parked: Mapping[str, Iterable[str]]) -> list[tuple[float, str]]:
        """Compare what has to be, then what was active while there is time; return the active ones that are left.

        At least their first part is compared, so that the next look does not begin where this one did.
        """
        look, views = self._look, [self._view(one) for one in consumers]
        first = [queue for _, queue in look.recent[:PART]]
        for one in views:
            # Together: if a single row gets no answer, nobody can say that the table does.
            self._read(one, [*look.always(one.consumer, islice(parked[one.consumer.name], MOST_LAGS)), *first])
        left = [(at, queue) for at, queue in look.recent if any(queue not in one.asked for one in views)]
        compared = 0
        while compared < len(left) and seconds_left() > 0:
            part = [queue for _, queue in left[compared : compared + PART]]
            for one in views:
                self._read(one, [queue for queue in part if queue not in one.asked])
            compared += len(part)
        for one in views:
            self._conclude(one)
        return left[compared:]

    def _view(self, consumer: Subscription) -> _View:
        return _View(consumer, {lag.queue: lag for lag in self._look.before.lags if lag.consumer == consumer.name})

    def _read(self, view: _View, names: list[str]) -> None:
        """Read one consumer's checkpoints; whatever fails there stops no other consumer's look."""
        found = self._look.rows.found
        rows = [found[name] for name in dict.fromkeys(names) if name in found]
        if view.failed or not rows:
            return
        view.asked.update(row.queue for row in rows)
        try:
            there = self._checkpoints.of_queues(view.consumer.name, [row.queue for row in rows])
        except Exception as error:  # noqa: BLE001  # a bug of ours included: the others are woken all the same
            # Where the table has answered before, it is the trouble of a few rows; as it may be of a single one.
            if not isinstance(error, StoreUnavailable) or len(rows) > (MOST_UNREAD if view.read else 1):
                self._fail(view, error)
                return
            there = FoundCheckpoints({}, dict.fromkeys((row.queue for row in rows), error))
        self._watched.damaged.update(there.damaged)
        view.damaged.update(there.damaged)
        view.read += [(row, there.rows.get(row.queue)) for row in rows if row.queue not in there.damaged]

    def _conclude(self, view: _View) -> None:
        """Note the lags of one consumer; those it had before if they are not known, as for a start that is none."""
        self.compared[view.consumer.name] = view.asked
        try:
            self.lags += self._compare(view)
        except Exception as error:  # noqa: BLE001  # a bug of ours included: the others are woken all the same
            self._fail(view, error)
            self.lags += view.old.values()

    def _fail(self, view: _View, error: Exception) -> None:
        view.failed = True
        self._watched.failed.append((view.consumer.name, named_error("(all)", error)))

    def _compare(self, view: _View) -> list[Lag]:
        """Return the lags of one consumer, and note which of them are due."""
        runs = view.is_running(self._look.now)
        check_start(view.consumer.start)
        # One that cannot be read is looked at again at every look, and reported, until it can be.
        kept: dict[str, StreamSortError | None] = dict.fromkeys(view.old if view.failed else ())
        kept |= self._look.rows.damaged | view.damaged
        lags: list[Lag | None] = []
        for row, there in view.read:
            kept.pop(row.queue, None)
            try:
                lags.append(self._lag(view, row, there, runs=runs))
            except Exception as error:  # noqa: BLE001  # I7: also a bug of ours is the trouble of its own queue only
                self._watched.damaged[row.queue] = named_error(row.queue, error)
                kept[row.queue] = None
        found = [lag for lag in lags if lag is not None]
        return found + [self._unread(view, queue, error) for queue, error in kept.items()]

    def _unread(self, view: _View, queue: str, error: StreamSortError | None) -> Lag:
        """Return a lag as it was before; it counts from where its checkpoint stood, if that alone cannot be read.

        Where the checkpoint is -1, nobody may ever have read it.
        """
        name, row = view.consumer.name, self._look.rows.found.get(queue)
        lag = view.old.get(queue, Lag(name, queue, -1, 0))
        if error is not None and row is not None and lag.checkpoint >= 0:
            lag = lag.seen(lag.checkpoint, row.position - lag.checkpoint, row.active_at)
            self._watched.lag[name] = max(lag.messages, self._watched.lag[name])
        elif isinstance(error, StoreUnavailable):
            self.is_whole = False
        return lag

    def _lag(self, view: _View, row: Cursor, there: Checkpoint | None, *, runs: bool) -> Lag | None:
        """Return the lag in one queue, and note it if it is due; None if there is none, or if nobody can know."""
        name, now = view.consumer.name, self._look.now
        if there is None and not view.consumer.ready:
            # Its first checkpoints are still being set: where it starts is not known.
            return None
        checkpoint = there.seq if there else first_checkpoint(view.consumer.start, row)
        messages = row.position - checkpoint
        if messages <= 0 and (there is None or there.parked is None):
            return None
        self._watched.lag[name] = max(messages, self._watched.lag[name])
        lag = view.old.get(row.queue, Lag(name, row.queue, checkpoint, messages))
        lag = lag.seen(checkpoint, messages, row.active_at)
        since = _due_since(row, there, now)
        if since is not None and lag.may_nudge(now, since):
            began = max(since, _latest(row, there) if runs else _committed_at(there))
            if not self._was_nudged(lag, row, began):
                self.due[name, row.queue] = since
        return lag

    def _was_nudged(self, lag: Lag, row: Cursor, began: float) -> bool:
        """Return True for a lag that may be one of those dropped, if its row shows a nudge from after it began.

        Of a consumer that runs, every move may be where the lag began. One that does not run gets no nudge for each.
        """
        if lag.nudged_at is not None or lag.consumer not in self._look.before.dropped or row.nudged_at is None:
            return False
        return row.nudged_at >= began and 0 <= self._look.now - row.nudged_at < HOUR


def _due_since(row: Cursor, there: Checkpoint | None, now: float) -> float | None:
    """Return since when a consumer should have gone on, None if it may yet: 0 if it sleeps, a parked queue's own time.

    It sleeps if nothing happened for a while.
    """
    if there is not None and there.parked is not None:
        next_try = there.parked.next_try
        return next_try if next_try is not None and next_try <= now else None
    return 0.0 if now - _latest(row, there) >= PATIENCE else None


def _latest(row: Cursor, there: Checkpoint | None) -> float:
    return max(row.moved_at or 0.0, _committed_at(there))


def _committed_at(there: Checkpoint | None) -> float:
    return (there.committed_at or 0.0) if there is not None else 0.0
