"""The `process` function: wakes in, batches to the handler, and back to Lambda only what could not be recorded.

A direct invoke may ask it to redrive what is parked: see `redrives`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.aws_lambda import telemetry as metrics
from stream_sort.aws_lambda.failures import facts_of
from stream_sort.aws_lambda.redrives import Redriving, redrive, wanted_by
from stream_sort.aws_lambda.telemetry import Telemetry, time_left_of
from stream_sort.aws_lambda.wakes import WakeReader, batch_response, comes_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from stream_sort.aws_lambda.redrives import RedriveRequest
    from stream_sort.aws_lambda.wakes import Wakes
    from stream_sort.model.consumption import Served, Wake
    from stream_sort.sorter import Sorter


class Woken(Redriving, Protocol):
    """The consumer that is woken; it knows where it was asked to start, and where it does start."""

    @property
    def name(self) -> str:
        """Under which it is registered."""

    @property
    def asked_start(self) -> str:
        """What it was given as its start."""

    @property
    def start(self) -> str:
        """Where it starts: as it was first registered, which is known once it has served a wake."""

    def process(self, wakes: Iterable[Wake], time_left: Callable[[], float] | None = None) -> list[Served]:
        """Serve the queues that wakes name."""


class ProcessStep:
    """Serves the queues that an event names.

    A queue that fails is parked and holds up no other one, and no shard. Only if its failure cannot be recorded is the
    record reported back, and Lambda sends it again; when that goes for all of them, the error is raised. A queue with a
    row that somebody has to mend first is logged.
    """

    def __init__(self, consumer: Woken, reader: WakeReader, telemetry: Telemetry) -> None:
        self._consumer = consumer
        self._reader = reader
        self._telemetry = telemetry
        self._is_first = True

    @classmethod
    def of(cls, consumer: Woken, sorter: Sorter) -> Self:
        """Wire the function to a consumer of a sorter."""
        reader = WakeReader(consumer.name, sorter.homes.only.cursor_table, sorter.options.keys)
        return cls(consumer, reader, Telemetry("process", sorter.requests))

    def __call__(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle one event."""
        with self._telemetry.invocation(context):
            wanted = wanted_by(event)
            if wanted is not None:
                return self._redrive(wanted, context)
            return self._serve(self._reader.read(event), context)

    def _redrive(self, wanted: RedriveRequest, context: Any) -> dict[str, Any]:
        """Redrive, and answer whoever asks: nothing is to be sent again."""
        done = redrive(self._consumer, wanted, time_left_of(context))
        if done.delivered:
            self._telemetry.count(metrics.MESSAGES_DELIVERED, done.delivered)
        for failed, where in zip(done.failed, done.places, strict=True):
            self._telemetry.logger.error("redrive failed", extra=failed | where)
        answer = done.answer()
        self._telemetry.logger.info("redriven", extra={name: answer[name] for name in ("queues", "delivered", "left")})
        return answer

    def _serve(self, found: Wakes, context: Any) -> dict[str, Any]:
        for reason in found.ignored:
            self._telemetry.logger.warning("record ignored", extra={"reason": reason})
        served = self._consumer.process(found.wakes, time_left_of(context))
        if self._is_first:
            self._is_first = False
            self._log_start()
        for one in served:
            self._log(one)
        return batch_response(found.wakes, served)

    def _log_start(self) -> None:
        """Once a process: somebody changed `start` and may wonder why nothing came of it."""
        asked, start = self._consumer.asked_start, self._consumer.start
        if asked != start:
            self._telemetry.logger.warning(
                "start is ignored: this consumer was registered before, and starts where it was told to then",
                extra={"consumer": self._consumer.name, "asked": asked, "start": start},
            )

    def _log(self, served: Served) -> None:
        count, logger = self._telemetry.count, self._telemetry.logger
        facts = {"queue": served.queue, "delivered": served.delivered, "ended": served.ended}
        if served.delivered:
            count(metrics.MESSAGES_DELIVERED, served.delivered)
        if served.handler_failures:
            count(metrics.HANDLER_FAILURES, served.handler_failures)
        for letter in served.dead:
            count(metrics.DEAD_LETTERS)
            what = {"queue": letter.queue, "seq": letter.seq, "error": letter.error}
            logger.error("dead letter", extra=what | facts_of(served.causes.get(letter.seq), letter.error))
        if served.ended == "parked" and served.parked is not None:
            parked = served.parked
            count(metrics.QUEUES_PARKED)
            why = {"seq": parked.seq, "attempts": parked.attempts, "next_try": parked.next_try, "error": parked.error}
            where = facts_of(served.failure or served.error, parked.error)
            logger.error("queue parked", extra=facts | why | where)
        elif served.ended == "failed":
            text = "queue failed, reported back" if comes_again(served) else "queue failed, and must be mended first"
            logger.error(text, extra=facts | {"error": str(served.error)})
        else:
            (logger.info if served.delivered else logger.debug)("queue served", extra=facts)
