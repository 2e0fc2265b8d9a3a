"""The `sweep` function: once a minute, what nobody else did; and the figures that alarms look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda import telemetry as metrics
from stream_sort.aws_lambda.clock import time_left_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from stream_sort.sweeper import Sweep, Sweeper
    from stream_sort.watcher import Watcher


class SweepStep:
    """Sweeps the queues that wait, or all of them for an event with `"all": true`.

    `register` makes the stack's own consumer known, so that it is watched over from the first day.
    """

    def __init__(self, sweeper: Sweeper, watcher: Watcher, register: Callable[[], None], telemetry: Telemetry) -> None:
        self._sweeper = sweeper
        self._watcher = watcher
        self._register = register
        self._telemetry = telemetry

    def __call__(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle one event."""
        with self._telemetry.invocation(context):
            self._register()
            time_left = time_left_of(context)
            whole = isinstance(event, dict) and event.get("all") is True
            done = self._sweeper.sweep_all(time_left=time_left) if whole else self._sweeper.sweep(time_left=time_left)
            self._measure(done)
            self._log(done)
            return _summary(done)

    def _measure(self, done: Sweep) -> None:
        watched = self._watcher.watched
        self._telemetry.count(metrics.CURSOR_ADVANCED, sum(map(len, done.advanced)))
        self._telemetry.measure(metrics.QUEUES_WAITING, len(done.waiting))
        self._telemetry.measure(metrics.OLDEST_GAP_AGE_SECONDS, done.oldest_gap, "Seconds")
        self._telemetry.measure(metrics.QUEUES_PARKED, watched.parked.total())
        self._telemetry.measure(metrics.CONSUMER_LAG, max(watched.lag.values(), default=0))

    def _log(self, done: Sweep) -> None:
        logger = self._telemetry.logger
        for gap in done.skipped:
            facts = {"queue": gap.queue, "from": gap.seqs.start, "to": gap.seqs.stop - 1}
            logger.warning("gap skipped by its queue's policy", extra=facts)
        for gap in done.too_long:
            logger.error("gap too long to skip by itself", extra={"queue": gap.queue, "length": len(gap.seqs)})
        for queue, error in done.failed:
            logger.error("queue could not be swept", extra={"queue": queue, "error": str(error)})
        logger.info("swept", extra=_summary(done))


def _summary(done: Sweep) -> dict[str, Any]:
    return {
        "looked_at": done.looked_at,
        "advanced": len(done.advanced),
        "skipped": len(done.skipped),
        "nudged": len(done.nudged),
        "waiting": len(done.waiting),
        "failed": len(done.failed),
        "complete": done.complete,
    }
