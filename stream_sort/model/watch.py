"""What a watch over consumers keeps between two looks, as values. All of it is a hint: to lose it costs time only."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.model.activity import HOUR
from stream_sort.model.durations import is_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# How many lagging queues are remembered, the worst of each consumer first; in how many bytes, as one row holds them.
MOST_LAGS = 1_000
MOST_BYTES = 200_000
# The pause after a first nudge, and how much longer each is than the one before, up to an hour.
FIRST_WAIT = 60.0
FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Lag:
    """A queue in which a consumer lags: by how many messages behind which checkpoint, and when it was last nudged.

    `wait` is how long the next nudge has to wait after the last one. `active_at` is when the queue last moved or was
    nudged, as far as this look knows.
    """

    consumer: str
    queue: str
    checkpoint: int
    messages: int
    nudged_at: float | None = None
    wait: float = 0.0
    active_at: float | None = None

    def seen(self, checkpoint: int, messages: int, active_at: float | None = None) -> Lag:
        """Return the lag as it is now; a checkpoint that has moved starts the pauses anew."""
        if checkpoint != self.checkpoint:
            return Lag(self.consumer, self.queue, checkpoint, messages, active_at=active_at)
        return replace(self, messages=messages, active_at=active_at)

    def may_nudge(self, now: float, due_since: float = 0.0) -> bool:
        """Return True if there was no nudge yet for what is due since then, or the last one was long enough ago."""
        if self.nudged_at is None or self.nudged_at < due_since:
            return True
        return not 0 <= now - self.nudged_at < self.wait

    def nudged(self, now: float, due_since: float = 0.0) -> Lag:
        """Return the lag after a nudge: a second one for the same cause has to wait longer."""
        again = self.nudged_at is not None and self.nudged_at >= due_since
        wait = min(FACTOR * self.wait, float(HOUR)) if again else FIRST_WAIT
        return replace(self, nudged_at=now, wait=wait)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Lags of one consumer for which there was no room: since when, and the largest of them.

    `in_pass` is the largest that was dropped since the pass over all rows began. All of these queues were active at or
    after `active_since`; None if nobody knows. It is `doubted` when no lag is known that is as large: by then the worst
    ones, which are remembered, have gone.
    """

    since: float
    messages: int
    in_pass: int
    active_since: float | None = None
    doubted: bool = False

    def joined(self, other: Dropped) -> Dropped:
        """Return what was dropped then and later."""
        times = (self.active_since, other.active_since)
        known = None if None in times else min(at for at in times if at is not None)
        most, in_pass = max(self.messages, other.messages), max(self.in_pass, other.in_pass)
        return Dropped(min(self.since, other.since), most, in_pass, known, self.doubted)

    def after_pass(self) -> Dropped | None:
        """Return what is known after a whole pass; None if that dropped nothing: all that lags is remembered."""
        return replace(self, messages=self.in_pass, in_pass=0) if self.in_pass else None


@dataclass(frozen=True, slots=True)
class WatchState:
    """How far the watch has looked.

    Every queue that was active before `since` was compared with the checkpoints of `consumers`; `lags` are those that
    lagged, and `forgotten` how many more there were. `dropped` says, by consumer, that others may lag of which nothing
    is remembered. The pass over all rows began at `began`, has seen `seen` rows and goes on at `place`; None there: it
    is through. The last one found `total` rows. Parked queues that are not compared were nudged if they were due at
    `overdue_until`. Consumers that are `failing` could not be compared when they were last tried; each with
    a queue to try it with, "" if there was none.
    """

    since: float | None = None
    consumers: tuple[str, ...] = ()
    lags: tuple[Lag, ...] = ()
    forgotten: int = 0
    dropped: dict[str, Dropped] = field(default_factory=dict)
    began: float | None = None
    place: Any = None
    seen: int = 0
    total: int | None = None
    overdue_until: float | None = None
    failing: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, kept: Any) -> WatchState:
        """Read what `kept` wrote; what nobody wrote like that is as nothing."""
        try:
            lags = [
                Lag(consumer, queue, checkpoint, 0, nudged_at, wait)
                for consumer, queues in kept["lags"].items()
                for queue, (checkpoint, nudged_at, wait) in queues.items()
            ]
            dropped = {consumer: Dropped(*facts) for consumer, facts in kept["dropped"].items()}
            values = {"consumers": tuple(kept["consumers"]), "lags": tuple(lags), "dropped": dropped}
            watch = cls(**{**kept, **values})
            return watch if watch._is_sound() else cls()
        except Exception:  # noqa: BLE001  # whatever it is that somebody wrote there: without it a look works, too
            return cls()

    def kept(self) -> dict[str, Any]:
        """Return the watch as JSON values."""
        lags: dict[str, dict[str, list[Any]]] = {}
        for lag in self.lags:
            lags.setdefault(lag.consumer, {})[lag.queue] = [lag.checkpoint, lag.nudged_at, lag.wait]
        return {
            "since": self.since,
            "consumers": list(self.consumers),
            "lags": lags,
            "forgotten": self.forgotten,
            "dropped": {name: list(astuple(one)) for name, one in self.dropped.items()},
            "began": self.began,
            "place": self.place,
            "seen": self.seen,
            "total": self.total,
            "overdue_until": self.overdue_until,
            "failing": self.failing,
        }

    def remembering(self, lags: Iterable[Lag], now: float = 0.0) -> WatchState:
        """Return the same with other lags: of each consumer its worst, as many as there is room for.

        Each has the same share of the room, so that one that does not run pushes out no lag of the others; what one
        does not need the others may use.
        """
        ordered = _in_turns(lags)
        size, kept = 0, 0
        for lag in ordered[:MOST_LAGS]:
            # As JSON the name may be longer; beside it stand a checkpoint and two times.
            size += len(json.dumps(lag.queue)) + 80
            if size > MOST_BYTES:
                break
            kept += 1
        # In an order of their own, so that nothing is written anew because the order has changed.
        remembered = sorted(ordered[:kept], key=lambda lag: (lag.consumer, lag.queue))
        dropped = dict(self.dropped)
        for lag in ordered[kept:]:
            if lag.messages > 0:
                one = Dropped(now, lag.messages, lag.messages, lag.active_at)
                dropped[lag.consumer] = dropped[lag.consumer].joined(one) if lag.consumer in dropped else one
        return replace(self, lags=tuple(remembered), forgotten=len(ordered) - kept, dropped=dropped)

    def after_pass(self) -> WatchState:
        """Return the same when a pass over all rows is through."""
        left = ((consumer, one.after_pass()) for consumer, one in self.dropped.items())
        return replace(self, dropped={consumer: one for consumer, one in left if one is not None})

    def in_doubt(self) -> dict[str, float]:
        """Return since when all that was dropped was active, by consumer, where it is doubted."""
        dropped = ((consumer, one) for consumer, one in self.dropped.items() if one.doubted)
        return {consumer: one.active_since for consumer, one in dropped if one.active_since is not None}

    def doubting(self, known: Mapping[str, int]) -> WatchState:
        """Return the same when so large lags are known: what was dropped was none that is larger than the worst."""
        dropped = self.dropped.items()
        return replace(self, dropped={name: replace(one, doubted=known[name] < one.messages) for name, one in dropped})

    def still_dropping(self, before: WatchState, consumers: Collection[str], *, again: bool) -> WatchState:
        """Return the same if the doubts about these could not be cleared up: by the next look, or by the pass."""
        dropped = dict(self.dropped)
        for consumer in before.in_doubt().keys() & set(consumers):
            old = before.dropped[consumer] if again else replace(before.dropped[consumer], active_since=None)
            dropped[consumer] = old.joined(dropped.get(consumer, old))
        return replace(self, dropped=dropped)

    def _is_sound(self) -> bool:
        """Return True if all values are of their types: this was read from a table."""
        dropped = self.dropped.values()
        times = [self.since, self.began, self.overdue_until, *(lag.nudged_at for lag in self.lags)]
        times += [one.active_since for one in dropped]
        numbers: list[float] = [self.forgotten, self.seen, self.total or 0]
        numbers += [number for lag in self.lags for number in (lag.checkpoint, lag.wait)]
        numbers += [number for one in dropped for number in (one.since, one.messages, one.in_pass)]
        return (
            all(at is None or is_time(at) for at in times)
            and all(_is_number(number) for number in numbers)
            and all(isinstance(name, str) for name in (*self.consumers, *self.failing, *self.failing.values()))
        )


def _in_turns(lags: Iterable[Lag]) -> list[Lag]:
    """Order lags: the worst of every consumer, then the second of each, and so on."""
    turns: Counter[str] = Counter()
    ordered: list[tuple[int, Lag]] = []
    for lag in sorted(lags, key=lambda lag: (-lag.messages, lag.consumer, lag.queue)):
        ordered.append((turns[lag.consumer], lag))
        turns[lag.consumer] += 1
    return [lag for _, lag in sorted(ordered, key=lambda one: one[0])]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
