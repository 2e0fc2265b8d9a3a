"""Service: push what is due to a handler, the queues of one run in turns, in the time it has."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.consume.handler import call_handler
from stream_sort.model.retries import Shift
from stream_sort.ports.time_limit import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stream_sort.consume.delivery import Delivery
    from stream_sort.consume.handler import Handler
    from stream_sort.consume.unrecorded import Unrecorded
    from stream_sort.model.consumption import Served
    from stream_sort.ports import Clock

RETRY_PAUSE = 0.2
# The part of a run's time that is kept for handing over what is left.
RESERVED_SHARE = 0.2
LONGEST_RESERVE = 10.0
# The part of that which is kept for answering, when queues in trouble are recorded that cannot be handed over.
ANSWERING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """How time passes for a consumer, in seconds."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class RunTime:
    """The time that one run has; without `left` nothing limits it."""

    left: Callable[[], float] | None
    shift: Shift

    @classmethod
    def of(cls, left: Callable[[], float] | None, clock: Clock) -> RunTime:
        """Return the time of a run that begins now."""
        seconds = left() if left else None
        return cls(left, Shift() if seconds is None else Shift(seconds, clock() + seconds))

    @property
    def reserve(self) -> float:
        """Return the seconds that are kept for handing over what is left."""
        return min(LONGEST_RESERVE, RESERVED_SHARE * self.shift.seconds)

    def exceeds(self, reserves: float) -> bool:
        """Return True if more is left than so many reserves."""
        return self.left is None or self.left() > reserves * self.reserve

    def is_short(self, longest: float, reserves: float = 1.0) -> bool:
        """Return True if there may be no time for one more piece of work that takes as long as the longest so far."""
        return self.left is not None and self.left() < max(reserves * self.reserve, 2 * longest)


def turn(delivery: Delivery, handler: Handler) -> None:
    """Let a queue have a turn: hand one batch to the handler, if one is due, and do what the answer says."""
    batch = delivery.fetch()
    if batch is None:
        return
    answer = call_handler(handler, batch)
    if answer.done > batch.after:
        delivery.ack(batch, answer.done, answer.effects, error=answer.error)
    elif answer.error is not None:
        delivery.fail(batch, answer.error)


class Push:
    """One run of a consumer; `begin` is called before each turn, and raises if the consumer must not go on."""

    def __init__(self, handler: Handler, begin: Callable[[], None], pace: Pace, run_time: RunTime) -> None:
        self._handler = handler
        self._begin = begin
        self._pace = pace
        self._time = run_time

    def run(self, deliveries: list[Delivery], unrecorded: Unrecorded) -> list[Served]:
        """Deliver; return what came of each queue, and then of earlier runs that could not record it."""
        served = [delivery.served for delivery in deliveries]
        queues = {delivery.queue for delivery in deliveries}
        earlier = unrecorded.record(queues, lambda: self._time.exceeds(2.0))
        self._take_turns(deque(one for one in deliveries if not unrecorded.holds_up(one)))
        unrecorded.keep(deliveries, lambda: self._time.exceeds(0.5))
        return [*served, *earlier]

    def _take_turns(self, line: deque[Delivery]) -> None:
        longest = 0.0
        while line and self._may_go_on(line):
            delivery = line.popleft()
            began = self._pace.monotonic()
            turn(delivery, self._handler)
            longest = max(longest, self._pace.monotonic() - began)
            if not delivery.is_over:
                line.append(delivery)
                if len(line) == 1 and delivery.tries_again:
                    self._pace.sleep(RETRY_PAUSE)
            if self._time.left and self._time.is_short(longest):
                self._hand_over(line, self._time.left)
                break

    def _may_go_on(self, line: deque[Delivery]) -> bool:
        """Read the registration again once a minute, in a long run, too; who cannot read it stops delivering."""
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001  # what was delivered so far is to be reported, whatever this is
            while line:
                line.popleft().abandon(error)
        return bool(line)

    def _hand_over(self, line: Iterable[Delivery], time_left: Callable[[], float]) -> None:
        """Leave the rest to new wakes; once there is no time for another one as slow, what is left is given back.

        A wake that cannot be sent takes seconds. What is in trouble is recorded all the same, until that fails once, or
        there is no time for that either. A queue that was asked for by hand is handed over in any case: nobody would
        ask again.
        """
        longest, longest_record, records = 0.0, 0.0, True
        with time_limit(lambda: time_left() - self._time.reserve / 2):
            for delivery in line:
                began = self._pace.monotonic()
                if delivery.comes_again and longest and time_left() < 2 * longest:
                    has_time = not self._time.is_short(longest_record, ANSWERING_SHARE)
                    records = delivery.give_back(records=records and has_time) and records
                    longest_record = max(longest_record, self._pace.monotonic() - began)
                    continue
                delivery.hand_over()
                longest = max(longest, self._pace.monotonic() - began)
