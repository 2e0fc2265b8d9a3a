"""What the functions say about themselves: logs, metrics, traces, the time left. No payload above DEBUG, no error."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics
from aws_lambda_powertools.tracing import Tracer

from stream_sort.settings import metrics_namespace, tracing_is_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MESSAGES_ACCEPTED = "MessagesAccepted"
DUPLICATES = "Duplicates"
CONFLICTS = "Conflicts"
LATE = "Late"
# Accepted after a message of the same queue with a higher seq; how many in each queue is in the log.
OUT_OF_ORDER = "OutOfOrder"
# What no retry will store: messages, bodies that hold none; queues that cannot be advanced before somebody acts.
REJECTED = "Rejected"
# Messages that were not stored, and which their source or caller may put again.
NOT_STORED = "NotStored"
# Seqs released, not moves.
CURSOR_ADVANCED = "CursorAdvanced"
MESSAGES_DELIVERED = "MessagesDelivered"
HANDLER_FAILURES = "HandlerFailures"
QUEUES_PARKED = "QueuesParked"
DEAD_LETTERS = "DeadLetters"
QUEUES_WAITING = "QueuesWaiting"
OLDEST_GAP_AGE_SECONDS = "OldestGapAgeSeconds"
# Queues that a sweep could not look after, or not wake.
QUEUES_FAILED = "QueuesFailed"
# Gaps that a sweep saw for the first time, saw closed, or skipped as the policy says.
GAPS_FOUND = "GapsFound"
GAPS_CLOSED = "GapsClosed"
GAPS_GIVEN_UP = "GapsGivenUp"
CONSUMER_LAG = "ConsumerLag"
# Requests to the tables, retries included: what a message costs.
STORE_REQUESTS = "StoreRequests"


def time_left_of(context: Any) -> Callable[[], float] | None:
    """Return what asks for the seconds until Lambda ends this run; None outside Lambda."""
    ask = getattr(context, "get_remaining_time_in_millis", None)
    return (lambda: ask() / 1000) if callable(ask) else None


class Telemetry:
    """The logger and the metrics of one function; `service` is its step, and the dimension of its metrics.

    `requests` returns how many requests were made to the tables so far.
    """

    def __init__(self, service: str, requests: Callable[[], int] = lambda: 0) -> None:
        self._requests = requests
        self.logger = Logger(service=service)
        self.tracer = _make_tracer(service) if tracing_is_on() else None
        self._service = service
        self._counts: Counter[str] = Counter()
        self._measures: list[tuple[str, float, str]] = []

    def count(self, name: str, value: int = 1) -> None:
        """Add to a count; what adds up to nothing is not published."""
        self._counts[name] += value

    def measure(self, name: str, value: float, unit: str = "Count") -> None:
        """Publish a value as it is, zero too; `unit` is one of CloudWatch's, such as Seconds."""
        if math.isfinite(value):
            self._measures.append((name, value, unit))

    def flush(self) -> None:
        """Publish what was counted and measured since the last time, in one blob; nothing if there is nothing."""
        values = [(name, float(count), "Count") for name, count in self._counts.items() if count] + self._measures
        self._counts, self._measures = Counter(), []
        if not values:
            return
        try:
            metrics = EphemeralMetrics(namespace=metrics_namespace(), service=self._service)
            for name, value, unit in values:
                metrics.add_metric(name=name, unit=unit, value=value)
            metrics.flush_metrics()
        except Exception:  # a batch that is done is not to be repeated for want of its figures
            self.logger.exception("metrics were not published")

    @contextmanager
    def invocation(self, context: Any) -> Iterator[None]:
        """Mark the logs of one invocation with its request id; publish its metrics however it ends."""
        self.logger.append_keys(request_id=getattr(context, "aws_request_id", None))
        before = self._requests()
        try:
            yield
        finally:
            self.count(STORE_REQUESTS, self._requests() - before)
            self.flush()


def _make_tracer(service: str) -> Tracer | None:
    """Make a tracer that shows each call to AWS, if the SDK of X-Ray is installed, as it is in our layer."""
    return Tracer(service=service) if find_spec("aws_xray_sdk") else None
