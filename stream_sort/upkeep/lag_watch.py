"""Service: finds consumers that sleep although something is due, and measures how far behind they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreMisconfigured, StoreUnavailable, StreamSortError, named_error
from stream_sort.model.activity import HOUR, hour_of
from stream_sort.model.retries import TRIES_IN_PLACE, is_crash_guard
from stream_sort.model.watch import MOST_LAGS, WatchState
from stream_sort.upkeep.activity_reader import ROWS_A_LOOK, ActivityReader
from stream_sort.upkeep.lag_finder import MOST_COMPARED, PATIENCE, LagFinder, LagLook, Watched

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stream_sort.model.consumption import Parked, Subscription
    from stream_sort.ports import Checkpoints, CursorStore, Subscriptions

# What was active so shortly before a look is looked at again in the next one: clocks differ, the index may lag behind
# the rows, and a move that is tried again keeps its time.
OVERLAP = 180.0
# How far the very first look goes back, and one for a consumer that is new.
FIRST_LOOK = 2.0 * HOUR
# How often it is noted that nothing happened.
NOTED_EVERY = 600.0
# How many queues with damaged rows are named at once.
MOST_NAMED = 100


@dataclass(frozen=True, slots=True)
class _Pending:
    """A look that is not kept yet: what is known if no nudge goes out, and which lags and parked queues need one."""

    look: LagLook
    before: WatchState
    after: WatchState
    due: dict[tuple[str, str], float]
    overdue: list[str]

    def kept(self, nudged: Collection[str]) -> WatchState:
        """Return what is known once these queues were nudged."""
        now, went_out = self.look.now, set(nudged)
        lags = [
            lag.nudged(now, self.due[lag.consumer, lag.queue])
            if (lag.consumer, lag.queue) in self.due and lag.queue in went_out
            else lag
            for lag in self.after.lags
        ]
        until = now if self.overdue and went_out.issuperset(self.overdue) else self.after.overdue_until
        return replace(self.after, lags=tuple(lags), overdue_until=until)


class LagWatch:
    """Finds the queues that a sweep is to nudge, and remembers what it saw once they were.

    A look compares every queue that was active since the last one, every queue that lagged then, whether it moved or
    not, and some of all others. So each lag is known from its first look on until it is gone, and its maximum is true.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        checkpoints: Checkpoints,
        cursors: CursorStore,
        rows_a_look: int = ROWS_A_LOOK,
    ) -> None:
        self._subscriptions = subscriptions
        self._checkpoints = checkpoints
        self._reader = ActivityReader(cursors, rows_a_look)
        self._pending: _Pending | None = None
        # What the table held at the last look, and what was to be kept there since but perhaps is not.
        self._held: Any = None
        self._unkept: Any = None
        self.watched = Watched()

    @property
    def problem(self) -> StreamSortError | None:
        """See Lagging."""
        return self.watched.failed[0][1] if self.watched.failed else None

    @property
    def damaged(self) -> list[tuple[str, StreamSortError]]:
        """See Lagging."""
        return sorted(self.watched.damaged.items())[:MOST_NAMED]

    def lagging(self, now: float) -> list[str]:
        """See Lagging."""
        self.watched, self._pending = Watched(), None
        found = self._subscriptions.readable_consumers()
        self.watched.damaged.update((f"(consumer {name})", error) for name, error in found.damaged.items())
        consumers = found.active()
        if not consumers:
            self.watched.whole = self.watched.counts_parked = True
            return []
        before = self._before()
        parked = {one.name: self._parked(one.name, now) for one in consumers}
        look, after = self._look(before, consumers, _some(parked), now)
        self.watched.damaged.update(look.rows.damaged)
        finder = LagFinder(self._checkpoints, look, self.watched)
        left = finder.find(consumers, parked)
        self.watched.left += len(left)
        after = replace(after, since=left[0][0] if left else after.since).remembering(finder.lags, now)
        overdue = [queue for name, queues in parked.items() for queue in _overdue(look, queues, finder.compared[name])]
        self.watched.counts_parked = not self.watched.failed
        self.watched.whole = finder.is_whole and not self.watched.failed
        after = self._seen(before, after, look, finder.compared).doubting(self.watched.lag)
        self._tell(after)
        self._pending = _Pending(look, before, after, finder.due, overdue)
        return list(dict.fromkeys((*(queue for _, queue in finder.due), *overdue)))

    def were_nudged(self, queues: Collection[str]) -> None:
        """See Lagging. Should the watch not be kept, only this object's next look goes on from here."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        before, after = pending.before, pending.kept(queues)
        is_old = before.since is None or not 0 <= (after.since or 0.0) - before.since < NOTED_EVERY
        has_changed = replace(after, since=before.since).kept() != before.kept()
        if not (is_old or has_changed or pending.look.recent or self._unkept is not None):
            return
        self._unkept = after.kept()
        try:
            self._subscriptions.set_bookmark(self._unkept)
            self._unkept = None
        except StreamSortError as error:
            self.watched.failed.append(("(all)", error))

    def _seen(
        self, before: WatchState, after: WatchState, look: LagLook, compared: Mapping[str, set[str]]
    ) -> WatchState:
        """Return what is known after a look: what could not be compared is the next one's, the part of the pass too.

        But those that fail at every look hold up no other one: they are left out. One that answers again is as a new
        one from then on, which is compared with all that was active for a while, and with the whole pass.
        """
        failed = {name for name, _ in self.watched.failed}
        is_again = bool(failed) and (failed == compared.keys() or not failed <= set(before.failing))
        unclear = compared if is_again or self.watched.left or not look.rows.active else failed
        after = after.still_dropping(before, unclear, again=is_again)
        if is_again:
            after = replace(before, lags=after.lags, forgotten=after.forgotten, dropped=after.dropped)
        else:
            left_out = failed | (set(before.failing) - set(before.consumers))
            after = replace(after, consumers=tuple(name for name in after.consumers if name not in left_out))
            after = after.after_pass() if look.rows.through else after
        return replace(after, failing={name: min(compared[name], default="") for name in sorted(failed)})

    def _before(self) -> WatchState:
        """Read what the last look kept; what cannot be read is as nothing, or no look would ever replace it.

        What it could not keep counts all the same, or every look would nudge everybody, unless another one kept more.
        """
        try:
            held = self._subscriptions.bookmark()
        except (StoreUnavailable, StoreMisconfigured):
            raise
        except Exception:  # noqa: BLE001  # whatever it is that somebody wrote there
            held = None
        if held != self._held:
            self._held, self._unkept = held, None
        return WatchState.parse(held if self._unkept is None else self._unkept)

    def _look(
        self, before: WatchState, consumers: list[Subscription], parked: Collection[str], now: float
    ) -> tuple[LagLook, WatchState]:
        """Read what there is to compare; and what will be known if all of it is."""
        names = tuple(sorted(one.name for one in consumers if one.ready))
        is_known = set(names) <= {*before.consumers, *before.failing}
        if not is_known:
            # Somebody is new, also to queues that are idle: they are all passed anew.
            before = replace(before, began=None)
        since = now - FIRST_LOOK if before.since is None else min(before.since, now - OVERLAP)
        # Lags for which there was no room are compared again once no larger one is known.
        doubts = before.in_doubt()
        since = min(since, *doubts.values()) if doubts else since
        named = {*parked, *(lag.queue for lag in before.lags), *filter(None, before.failing.values())}
        rows = self._reader.read(before, named, since if is_known else min(since, now - FIRST_LOOK), now)
        times = ((row.active_at, row.queue) for row in rows.found.values())
        active = sorted((at, queue) for at, queue in times if at is not None and at >= since)
        recent = active[:MOST_COMPARED]
        self.watched.left = len(active) - len(recent)
        done = recent[-1][0] if self.watched.left else now - OVERLAP
        kept = before.dropped.keys() - doubts
        dropped = {one.name: before.dropped[one.name] for one in consumers if one.name in kept}
        return LagLook(now, before, rows, recent), replace(rows.watch, since=done, consumers=names, dropped=dropped)

    def _tell(self, after: WatchState) -> None:
        """Report lags that are not remembered: until none is left, the longest of them counts."""
        self.watched.forgotten, self.watched.dropped = after.forgotten, after.dropped
        for consumer, one in after.dropped.items():
            self.watched.lag[consumer] = max(one.messages, self.watched.lag[consumer])

    def _parked(self, consumer: str, now: float) -> dict[str, Parked]:
        """Return parked queues, none if they cannot be listed; those that may get on by themselves are not counted."""
        try:
            return self._list_parked(consumer, now)
        except Exception as error:  # noqa: BLE001  # a bug of ours included: the others are woken all the same
            self.watched.failed.append((consumer, named_error("(all)", error)))
            return {}

    def _list_parked(self, consumer: str, now: float) -> dict[str, Parked]:
        parked: dict[str, Parked] = {}
        page = self._checkpoints.parked(consumer)
        while True:
            self.watched.parked[consumer] += sum(_is_stuck(one, now) for one in page.parked)
            self.watched.damaged.update(page.damaged)
            parked.update((one.queue, one) for one in page.parked)
            if page.next is None:
                return parked
            page = self._checkpoints.parked(consumer, None, page.next)


def _overdue(look: LagLook, parked: dict[str, Parked], compared: set[str]) -> Iterable[str]:
    """Name parked queues that are not compared: nudged when their time has come, and then once an hour."""
    now = look.now
    until = min(now, now - HOUR if look.before.overdue_until is None else look.before.overdue_until)
    for one in parked.values():
        is_due = one.queue not in compared and one.next_try is not None and one.next_try <= now
        # In an hour that begins at another second in every queue, so that not all are nudged at once.
        if is_due and ((one.next_try or 0.0) > until or hour_of(one.queue, now) != hour_of(one.queue, until)):
            yield one.queue


def _some(parked: dict[str, dict[str, Parked]]) -> set[str]:
    """Return the first parked queues of each consumer, those that are tried next."""
    return {queue for queues in parked.values() for queue in islice(queues, MOST_LAGS)}


def _is_stuck(parked: Parked, now: float) -> bool:
    """Return True if a retry has failed, or none will come; not while the first is still due, or its run may be alive.

    What is no message's fault uses up no attempt: it counts once it has lasted for a while.
    """
    if parked.next_try is None or parked.attempts > TRIES_IN_PLACE or parked.damaged:
        return True
    return parked.next_try <= now if is_crash_guard(parked) else now - parked.since >= PATIENCE
