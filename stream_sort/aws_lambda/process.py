"""The `process` function: wakes in, batches to the handler, and back to Lambda only what could not be recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda import telemetry as metrics
from stream_sort.aws_lambda.wakes import batch_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.aws_lambda.telemetry import Telemetry
    from stream_sort.aws_lambda.wakes import WakeReader, Wakes
    from stream_sort.consumer import Consumer
    from stream_sort.core.consumption import Served


class Process:
    """Serves the queues that an event names.

    A queue that fails is parked and holds up no other one, and no shard. Only if its failure cannot be recorded is the
    record reported back, and Lambda sends it again; when that goes for all of them, the error is raised.
    """

    def __init__(self, consumer: Consumer, reader: WakeReader, telemetry: Telemetry) -> None:
        self._consumer = consumer
        self._reader = reader
        self._telemetry = telemetry

    def __call__(self, event: Any, context: Any) -> dict[str, Any]:
        """Handle one event."""
        with self._telemetry.invocation(context):
            return self._serve(self._reader.read(event), context)

    def _serve(self, found: Wakes, context: Any) -> dict[str, Any]:
        for reason in found.ignored:
            self._telemetry.logger.warning("record ignored", extra={"reason": reason})
        served = self._consumer.process(found.wakes, _time_left(context))
        for one in served:
            self._tell(one)
        return batch_response(found.wakes, served)

    def _tell(self, served: Served) -> None:
        count, logger = self._telemetry.count, self._telemetry.logger
        facts = {"queue": served.queue, "delivered": served.delivered, "ended": served.ended}
        if served.delivered:
            count(metrics.MESSAGES_DELIVERED, served.delivered)
        if served.handler_failures:
            count(metrics.HANDLER_FAILURES, served.handler_failures)
        for letter in served.dead:
            count(metrics.DEAD_LETTERS)
            logger.error("dead letter", extra={"queue": letter.queue, "seq": letter.seq, "error": letter.error})
        if served.ended == "parked" and served.parked is not None:
            parked = served.parked
            count(metrics.QUEUES_PARKED)
            told = {"seq": parked.seq, "attempts": parked.attempts, "next_try": parked.next_try, "error": parked.error}
            logger.error("queue parked", extra=facts | told)
        elif served.ended == "failed":
            logger.error("queue failed, reported back", extra=facts | {"error": str(served.error)})
        else:
            (logger.info if served.delivered else logger.debug)("queue served", extra=facts)


def _time_left(context: Any) -> Callable[[], float] | None:
    """Seconds until Lambda ends this run; None outside Lambda."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: ask() / 1000) if callable(ask) else None
