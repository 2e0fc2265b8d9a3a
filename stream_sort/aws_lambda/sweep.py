"""The `sweep` function: once a minute, what nobody else did; and the figures that alarms look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda import telemetry as metrics
from stream_sort.aws_lambda.receipts import error_facts
from stream_sort.aws_lambda.telemetry import Telemetry, time_left_of
from stream_sort.consume.registration import Registration
from stream_sort.errors import InternalError
from stream_sort.model.consumption import check_start
from stream_sort.model.gaps import length
from stream_sort.settings import ConsumerSettings
from stream_sort.upkeep.lag_watch import LagWatch
from stream_sort.upkeep.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from stream_sort.errors import StreamSortError
    from stream_sort.model.gaps import GapEvent
    from stream_sort.sorter import Sorter
    from stream_sort.upkeep.sweep import Sweep

# So many gaps of one queue have a line of their own in the log of one sweep.
GAPS_LOGGED = 10


class SweepStep:
    """Sweeps the queues that wait, or all of them for an event with `"all": true`.

    `register` makes the stack's own consumer known, so that it is watched over from the first day.
    """

    def __init__(self, sweeper: Sweeper, watcher: LagWatch, register: Callable[[], None], telemetry: Telemetry) -> None:
        self._sweeper = sweeper
        self._watcher = watcher
        self._register = register
        self._telemetry = telemetry

    @classmethod
    def of(cls, sorter: Sorter) -> Self:
        """Wire the function to a sorter; the stack's own consumer is that of the environment."""
        settings, home = ConsumerSettings.from_env(), sorter.homes.only
        control, start = home.control(settings.control_table), check_start(settings.start)
        subscriptions, checkpoints = control.subscriptions, control.checkpoints
        registration = Registration(subscriptions, checkpoints, home.cursors, sorter.clock, sorter.in_flight)
        watcher = LagWatch(subscriptions, checkpoints, home.cursors)

        def register() -> None:
            registration.introduce(settings.consumer, start)

        return cls(Sweeper(sorter, lagging=watcher), watcher, register, Telemetry("sweep", sorter.requests))

    def __call__(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle one event; raises only when all is done that could be, and its figures are published."""
        with self._telemetry.invocation(context):
            errors: list[Exception] = []

            def publish(done: Sweep) -> None:
                self._publish(done)
                # A first pass over very many queues may take all the time there is.
                errors.extend(self._try_register())

            whole = isinstance(event, dict) and event.get("all") is True
            sweep = self._sweeper.sweep_all if whole else self._sweeper.sweep
            try:
                done = sweep(time_left=time_left_of(context), on_figures=publish)
            except Exception:
                # The queues could not be listed; how consumers stand was seen all the same.
                self._measure_consumers()
                self._telemetry.flush()
                raise
            errors += [done.watch_error] if done.watch_error is not None else []
            self._measure_consumers()
            if done.failed:
                # Some may have failed since they were counted: when they were to be woken.
                self._telemetry.measure(metrics.QUEUES_FAILED, len(done.failed))
            self._telemetry.flush()
            self._log(done)
            if errors:
                raise errors[0]
            return _summary(done)

    def _try_register(self) -> list[Exception]:
        try:
            self._register()
        except Exception as error:  # noqa: BLE001  # gaps need no control table: their policies are applied all the same
            return [error]
        return []

    def _publish(self, done: Sweep) -> None:
        """Publish what happened to gaps before anybody is woken: whatever takes too long after that loses none of it.

        If the queues could not be listed, there is no figure of them, not a zero.
        """
        self._telemetry.count(metrics.CURSOR_ADVANCED, sum(map(len, done.advanced)))
        self._telemetry.count(metrics.GAPS_FOUND, len(done.found))
        self._telemetry.count(metrics.GAPS_CLOSED, len(done.closed))
        self._telemetry.count(metrics.GAPS_GIVEN_UP, len(done.skipped))
        if done.listed:
            self._telemetry.measure(metrics.QUEUES_WAITING, len(done.waiting))
            self._telemetry.measure(metrics.QUEUES_FAILED, len(done.failed))
            self._telemetry.measure(metrics.OLDEST_GAP_AGE_SECONDS, done.oldest_gap, "Seconds")
        self._telemetry.flush()
        log = self._telemetry.logger
        self._log_gaps(done.found, log.info, "gap found")
        self._log_gaps(done.closed, log.info, "gap closed")
        self._log_gaps(done.skipped, log.warning, "gap given up by its queue's policy")
        self._log_gaps(done.too_long, log.error, "gap too long to skip by itself")

    def _measure_consumers(self) -> None:
        """Measure how consumers stand, unless that could not be seen: then there is no figure, not a zero."""
        watched = self._watcher.watched
        if watched.counts_parked:
            self._telemetry.measure(metrics.QUEUES_PARKED, watched.parked.total())
        if watched.whole:
            self._telemetry.measure(metrics.CONSUMER_LAG, max(watched.lag.values(), default=0))

    def _log(self, done: Sweep) -> None:
        logger = self._telemetry.logger
        for event, error in done.callback_errors:
            logger.error("on_gap raised", extra={"queue": event.queue, "error": repr(error)})
        for queue, problem in done.failed:
            logger.error(
                "queue could not be swept", extra={"queue": queue, **error_facts(problem)}, exc_info=_bug(problem)
            )
        if done.watch_error is not None:
            why = error_facts(done.watch_error)
            logger.error("consumers could not be watched", extra=why, exc_info=_bug(done.watch_error))
        watched = self._watcher.watched
        if watched.forgotten or watched.left or watched.dropped:
            facts = {"forgotten": watched.forgotten, "left": watched.left, "since": watched.dropped_since}
            logger.warning("more queues lag or moved than one look keeps; the others are seen in turns", extra=facts)
        logger.info("swept", extra=_summary(done))

    def _log_gaps(self, events: list[GapEvent], log: Callable[..., None], text: str) -> None:
        """Write a line for each gap; of a queue with very many the first ones, and how many more there are."""
        by_queue: dict[str, list[GapEvent]] = {}
        for event in events:
            by_queue.setdefault(event.queue, []).append(event)
        for queue, gaps in by_queue.items():
            for gap in gaps[:GAPS_LOGGED]:
                log(text, extra=_facts(gap))
            if len(gaps) > GAPS_LOGGED:
                last = gaps[-1].seqs.stop - 1
                log(f"{text}: more of one queue", extra={"queue": queue, "count": len(gaps), "through": last})


def _facts(gap: GapEvent) -> dict[str, Any]:
    seqs = gap.seqs
    return {
        "queue": gap.queue,
        "from": seqs.start,
        "to": seqs.stop - 1,
        "length": length(seqs),
        "age": round(gap.age, 3),
        "gap": str(gap.kind),
    }


def _bug(error: StreamSortError) -> BaseException | None:
    """Return what is worth its traceback in the log: an error that nobody foresaw."""
    return error.__cause__ if isinstance(error, InternalError) else None


def _summary(done: Sweep) -> dict[str, Any]:
    return {
        "looked_at": done.looked_at,
        "advanced": len(done.advanced),
        "skipped": len(done.skipped),
        "nudged": len(done.nudged),
        "waiting": len(done.waiting),
        "found": len(done.found),
        "closed": len(done.closed),
        "failed": len(done.failed),
        "complete": done.complete,
    }
