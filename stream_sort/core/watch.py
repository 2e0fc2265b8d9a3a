"""What a watch over consumers keeps between two looks, as values. All of it is a hint: to lose it costs time only."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.core.activity import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

# How many lagging queues are remembered, the worst first; and in how many bytes, because one row holds them.
MOST_LAGS = 1_000
MOST_BYTES = 200_000
LONGEST_LAG = 10_000
# The pause after a first nudge, and how much longer each is than the one before, up to an hour.
FIRST_WAIT = 60.0
FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class Lag:
    """A queue in which a consumer lags: by how many messages behind which checkpoint, and when it was last nudged.

    `wait` is how long the next nudge has to wait after the last one.
    """

    consumer: str
    queue: str
    checkpoint: int
    messages: int
    nudged_at: float | None = None
    wait: float = 0.0

    def seen(self, checkpoint: int, messages: int) -> Lag:
        """Return the lag as it is now; a checkpoint that has moved starts the pauses anew."""
        if checkpoint != self.checkpoint:
            return Lag(self.consumer, self.queue, checkpoint, messages)
        return replace(self, messages=messages)

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
class Watch:
    """How far the watch has looked.

    Every queue that was active before `since` was compared with the checkpoints of `consumers`; `lags` are those that
    lagged, and `forgotten` how many more there were. `full` says that others may have been forgotten before. The pass
    over all rows began at `began`, has seen `seen` rows and goes on at `place`; None there: it is through. The last
    one found `total` rows.
    """

    since: float | None = None
    consumers: tuple[str, ...] = ()
    lags: tuple[Lag, ...] = ()
    forgotten: int = 0
    full: bool = False
    began: float | None = None
    place: Any = None
    seen: int = 0
    total: int | None = None

    @classmethod
    def parse(cls, kept: Any) -> Watch:
        """Read what `kept` wrote; what nobody wrote like that is as nothing."""
        try:
            lags = [
                Lag(consumer, queue, checkpoint, 0, nudged_at, wait)
                for consumer, queues in kept["lags"].items()
                for queue, (checkpoint, nudged_at, wait) in queues.items()
            ]
            return cls(**{**kept, "consumers": tuple(kept["consumers"]), "lags": tuple(lags)})
        except (AttributeError, KeyError, TypeError, ValueError):
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
            "full": self.full,
            "began": self.began,
            "place": self.place,
            "seen": self.seen,
            "total": self.total,
        }

    def remembering(self, lags: Iterable[Lag]) -> Watch:
        """Return the same with other lags: the worst, as many as there is room for."""
        ordered = sorted(lags, key=lambda lag: (-lag.messages, lag.consumer, lag.queue))
        size, kept = 0, 0
        for lag in ordered[:MOST_LAGS]:
            # As JSON the name may be longer; beside it stand a checkpoint and two times.
            size += len(json.dumps(lag.queue)) + 80
            if size > MOST_BYTES:
                break
            kept += 1
        # In an order of their own, so that nothing is written anew because the order has changed.
        remembered = sorted(ordered[:kept], key=lambda lag: (lag.consumer, lag.queue))
        full = kept >= MOST_LAGS or size > MOST_BYTES - LONGEST_LAG
        return replace(self, lags=tuple(remembered), forgotten=len(ordered) - kept, full=full)
