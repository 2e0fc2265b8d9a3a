"""Service: a named reader of all queues. Delivers what is due, in order, one queue never waiting for another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.consume.delivery import Delivery
from stream_sort.consume.handler import no_handler
from stream_sort.consume.push import Pace, Push, RunTime
from stream_sort.consume.resetter import ResetTarget, Resetter, time_of
from stream_sort.consume.stuck_messages import StuckMessages
from stream_sort.consume.unrecorded import Unrecorded
from stream_sort.errors import NotParked, SettingsError
from stream_sort.model.consumption import LATEST, DeadLetter, Wake, first_checkpoint
from stream_sort.model.message import check_queue, check_seq
from stream_sort.model.records import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime, timedelta

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.consume.registration import Registration
    from stream_sort.model.consumption import Parked, Reset, Served


class Consumer:
    """Hands each queue's messages to a handler in order; its checkpoint in each queue says how far it is.

    Any number may run at once under one name: of two that deliver the same queue, one wins every commit and the
    other stops. So a message may reach the handler more than once, but effects in `batch.transaction` happen once.
    """

    def __init__(self, context: ConsumerContext, registration: Registration, pace: Pace | None = None) -> None:
        self._context = context
        self._registration = registration
        self._pace = pace or Pace()
        self._unrecorded = Unrecorded()

    @property
    def name(self) -> str:
        """Its name."""
        return self._context.terms.name

    def process(self, wakes: Iterable[Wake], time_left: Callable[[], float] | None = None) -> list[Served]:
        """Look at every queue that a wake names, once; each gets one batch in turn until all are done.

        When time is short, what is left is handed to new wakes. What an earlier run could not record in other queues,
        and this one could, is reported after them.
        """
        run_time = RunTime.of(time_left, self._context.clock)
        self._begin()
        latest = {wake.queue: wake for wake in wakes}
        deliveries = [Delivery(self._context, wake, run_time.shift) for wake in latest.values()]
        return self._push(deliveries, run_time)

    def catch_up(self, queue: str, *, force: bool = False) -> int:
        """Deliver now what is due; return how many messages were delivered.

        A queue that is parked is left alone until its next try is due, unless forced: 0. A forced one, too, waits while
        the last attempt at its message may be under way. A failing handler parks it, as always; so does a hole, or a
        lost cursor row, which each try raises. A failing store is raised.
        """
        self._begin()
        return self._deliver(check_queue(queue), RunTime.of(None, self._context.clock), forced=force)

    def checkpoint(self, queue: str) -> int:
        """Return the seq up to which everything is done in this queue; where it would begin if it has not begun."""
        standing = self._context.checkpoints.standing(self.name, check_queue(queue))
        if standing.checkpoint is not None:
            return standing.checkpoint.seq
        first = self._context.queues.first_seq
        cursor = standing.cursor or Cursor(queue, first - 1, first)
        start = self._registration.start_of(self.name)
        if start is None and self._context.terms.start == LATEST:
            return cursor.position
        return first_checkpoint(start or self._context.terms.start, cursor)

    def parked(self) -> list[Parked]:
        """List the queues that wait behind a message that failed; the next to be tried first."""
        return self._stuck_messages().all_parked()

    def dead_letters(self) -> list[DeadLetter]:
        """List the messages that were given up on and are neither redriven nor discarded; the oldest first."""
        return self._stuck_messages().all_dead()

    def discarded(self, queue: str) -> list[DeadLetter]:
        """List messages of one queue that were discarded, dead or parked before, with the reason; lowest seq first."""
        return self._context.dead_letters.of_queue(self.name, check_queue(queue), discarded=True)

    def stuck(self, queue: str, seq: int | None = None) -> list[Parked | DeadLetter]:
        """List what is dead or parked in one queue, or at one seq of it, as it stands now; lowest seq first."""
        return self._stuck_messages().of(check_queue(queue), seq)

    def redrive(
        self,
        queue: str,
        seq: int | None = None,
        *,
        time_left: Callable[[], float] | None = None,
        on_failure: Callable[[Exception], None] = lambda _: None,
    ) -> int:
        """Try again what is dead or parked in a queue, or at one seq of it: in order, each at its own place.

        Dead letters come first, lowest seq first, each by itself; the first that fails again ends it. Returns how many
        messages were delivered. When time is short, dead letters stay, and what is parked behind them; of what is
        parked and was begun, the rest is handed to a new wake. `on_failure` gets what the handler raised, with its
        traceback.
        """
        self._check_handler()
        stuck = self.stuck(queue, None if seq is None else check_seq(seq))
        if not stuck:
            raise NotParked(self.name, queue, seq)
        dead = [one for one in stuck if isinstance(one, DeadLetter)]
        self._begin()
        run_time = RunTime.of(time_left, self._context.clock)
        done, has_time = self._redrive_dead(dead, run_time, on_failure)
        if done < len(dead) or len(stuck) == len(dead) or not has_time:
            return done
        return done + self._deliver(queue, run_time, forced=True, afresh=True, on_failure=on_failure)

    def discard(self, queue: str, seq: int, reason: str) -> None:
        """Give up for good on a message that is dead, or on the one a queue is parked at; the queue then goes on.

        QueueDamaged for a queue that is parked because its tables are damaged: it has no message to give up, repair the
        tables. One that others trimmed while this consumer was retired goes on behind what is trimmed. InvalidInput for
        a seq that is done: a checkpoint is never set back.
        """
        self._stuck_messages().discard(queue, check_seq(seq), reason)

    def retire(self) -> None:
        """Take the consumer off the list: nothing waits for it, wakes it or counts its lag any more.

        Stop it first: one that still runs is registered again within a minute, and until then no trim waits for it.
        Every `process`, `catch_up` or `redrive` under its name brings it back, also one that finds nothing due.
        Its checkpoints, parked queues and dead letters stay. Run again under its name, it is registered again and goes
        on where it was, queues that it has not begun from their first message; where a trim went past it meanwhile,
        its queue is parked as `Trimmed`: discard that seq.
        """
        self._registration.retire(self.name)

    def reset(  # noqa: PLR0913  # each is a keyword with a default
        self,
        to: str | int | None = None,
        *,
        by: int | None = None,
        to_time: float | datetime | None = None,
        by_duration: float | timedelta | None = None,
        queues: Iterable[str] | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[Reset]:
        """Set the checkpoints elsewhere: to "earliest", "latest" or the seq to come next, or `by` so many messages.

        Or `to_time`, in seconds since the epoch, or `by_duration`, so many seconds ago: then every message comes
        again that arrived at or after that time, by the clock of the writer that stored it, and, where messages came
        out of order, some that arrived before.
        In all queues or in those named, within what is released and not trimmed; returns what was changed, or would be.
        ConsumerActive, and nothing is changed, if it committed there within 5 minutes, unless forced. What lies
        between comes again, `batch.replayed` if this consumer has had it, or is passed over; a queue that was parked is
        so no longer, dead letters stay. What fails in one queue is its outcome, and keeps no other from being reset.
        All rows are read before anything is changed, and one that cannot be is an error: name the other queues.
        """
        resetter = Resetter(self._context)
        time = time_of(to_time, by_duration, self._context.clock())
        target = ResetTarget.of(to, by, time)
        plan = list(resetter.plan(self._registration.subscription(self.name), target, queues))
        if dry_run:
            return [planned for planned, _ in plan]
        if not force:
            resetter.check_idle([planned for planned, _ in plan])
        return [resetter.apply(planned, there) for planned, there in plan]

    def _stuck_messages(self) -> StuckMessages:
        return StuckMessages(self._context)

    def _push(self, deliveries: list[Delivery], run_time: RunTime) -> list[Served]:
        return Push(self._context.handler, self._begin, self._pace, run_time).run(deliveries, self._unrecorded)

    def _deliver(
        self,
        queue: str,
        run_time: RunTime,
        *,
        forced: bool,
        afresh: bool = False,
        on_failure: Callable[[Exception], None] = lambda _: None,
    ) -> int:
        """Deliver one queue, and raise what kept it from that."""
        wake = Wake(queue)
        delivery = Delivery(self._context, wake, run_time.shift, persists=True, forced=forced, afresh=afresh)
        served, *_ = self._push([delivery], run_time)
        for failure in (*served.causes.values(), served.failure):
            if failure is not None:
                on_failure(failure)
        if served.error is not None:
            raise served.error
        return served.delivered

    def _redrive_dead(
        self, dead: Iterable[DeadLetter], run_time: RunTime, on_failure: Callable[[Exception], None]
    ) -> tuple[int, bool]:
        """Try dead letters until one fails again; return how many are delivered, and if there is time for more.

        None is begun that might not end in time: it would be killed, and that counts as an attempt.
        """
        stuck, monotonic = self._stuck_messages(), self._pace.monotonic
        longest, done = 0.0, 0
        for one in dead:
            # In a long redrive, too, the registration is read again once a minute.
            self._begin()
            began = monotonic()
            if run_time.is_short(longest) or not stuck.redrive(one, on_failure):
                return done, False
            longest, done = max(longest, monotonic() - began), done + 1
        # What is parked alone is tried, however short the time is.
        return done, not (done and run_time.is_short(longest))

    def _check_handler(self) -> None:
        if self._context.handler is no_handler:
            raise SettingsError(
                f"consumer {self.name!r} has no handler; give it one: OrderedConsumer({self.name!r}, handle, ...). "
                "Without one it can be asked, and messages discarded, but nothing delivered"
            )

    def _begin(self) -> None:
        """Check, before anything is delivered, that it can be, and that the consumer is known and not retired."""
        self._check_handler()
        start = self._registration.register(self.name, self._context.terms.start)
        if start != self._context.terms.start:
            self._context = replace(self._context, terms=replace(self._context.terms, start=start))
