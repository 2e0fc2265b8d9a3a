"""Service: a named reader of all queues. Delivers what is due, in order, one queue never waiting for another."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.consume.dead_letters import DeadLetterTries
from stream_sort.consume.delivery import Delivery
from stream_sort.consume.handler import no_handler
from stream_sort.consume.resetter import ResetTarget, Resetter, time_of
from stream_sort.consume.unrecorded import Unrecorded
from stream_sort.errors import (
    CheckpointConflict,
    InvalidInput,
    NotParked,
    QueueDamaged,
    SettingsError,
)
from stream_sort.model.consumption import LATEST, DeadLetter, Wake, first_checkpoint
from stream_sort.model.message import check_queue, check_seq, is_text
from stream_sort.model.precaution import Shift
from stream_sort.model.records import Cursor
from stream_sort.ports.time_limit import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime, timedelta

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.consume.registration import Registration
    from stream_sort.model.consumption import Checkpoint, Parked, Reset, Served

RETRY_PAUSE = 0.2
# The part of a run's time that is kept for handing over what is left.
RESERVED_SHARE = 0.2
LONGEST_RESERVE = 10.0
# The part of that which is kept for answering, when queues in trouble are recorded that cannot be handed over.
ANSWERING_SHARE = 0.1
MAX_REASON = 256


@dataclass(frozen=True, slots=True)
class Pace:
    """How time passes for a consumer, in seconds."""

    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic


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
        """The consumer's name."""
        return self._context.terms.name

    def process(self, wakes: Iterable[Wake], time_left: Callable[[], float] | None = None) -> list[Served]:
        """Look at every queue that a wake names, once; each gets one chunk in turn until all are done.

        When time is short, what is left is handed to new wakes. What an earlier run could not record in other queues,
        and this one could, is told after them.
        """
        shift = self._shift(time_left)
        self._begin()
        latest = {wake.queue: wake for wake in wakes}
        deliveries = [Delivery(self._context, wake, shift) for wake in latest.values()]
        return self._run(deliveries, shift, time_left)

    def catch_up(self, queue: str, *, force: bool = False) -> int:
        """Deliver now what is due; returns how many messages were delivered.

        A queue that is parked is left alone until its next try is due, unless forced: 0. A forced one, too, waits while
        the last attempt at its message may be under way. A failing handler parks it, as always; so does a hole, or a
        lost cursor row, which each try raises. A failing store is raised.
        """
        self._begin()
        return self._deliver(check_queue(queue), self._shift(None), None, forced=force)

    def checkpoint(self, queue: str) -> int:
        """The seq up to which everything is done in this queue; where it would begin if it has not begun."""
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
        """Queues that wait behind a message that failed; the next to be tried first."""
        return list(self._parked())

    def dead_letters(self) -> list[DeadLetter]:
        """Messages that were given up on and are neither redriven nor discarded; the oldest first."""
        return list(self._dead_letters())

    def discarded(self, queue: str) -> list[DeadLetter]:
        """Messages of one queue that were discarded, dead or parked before, each with the reason; lowest seq first."""
        return DeadLetterTries(self._context).discarded(check_queue(queue))

    def stuck(self, queue: str, seq: int | None = None) -> list[Parked | DeadLetter]:
        """What is dead or parked in one queue, or at one seq of it, as it stands now; lowest seq first."""
        row = self._context.checkpoints.standing(self.name, check_queue(queue)).checkpoint
        parked = [row.parked] if row is not None and row.parked is not None else []
        return [*DeadLetterTries(self._context).of(queue, seq), *(one for one in parked if seq in {None, one.seq})]

    def redrive(self, queue: str, seq: int | None = None, *, time_left: Callable[[], float] | None = None) -> int:
        """Try again what is dead or parked in a queue, or at one seq of it: in order, each at its own place.

        Dead letters come first, lowest seq first, each by itself; the first that fails again ends it. Returns how many
        messages were delivered. When time is short, dead letters stay, and what is parked behind them; of what is
        parked and was begun, the rest is handed to a new wake.
        """
        self._check_handler()
        stuck = self.stuck(queue, None if seq is None else check_seq(seq))
        if not stuck:
            raise NotParked(self.name, queue, seq)
        dead = [one for one in stuck if isinstance(one, DeadLetter)]
        self._begin()
        shift = self._shift(time_left)
        done, has_time = self._redrive_dead(dead, shift, time_left)
        if done < len(dead) or len(stuck) == len(dead) or not has_time:
            return done
        return done + self._deliver(queue, shift, time_left, forced=True, afresh=True)

    def discard(self, queue: str, seq: int, reason: str) -> None:
        """Give up for good on a message that is dead, or on the one a queue is parked at; the queue then goes on.

        QueueDamaged for a queue that is parked because its tables are damaged: it has no message to give up, repair the
        tables. One that others trimmed while this consumer was retired goes on behind what is trimmed. InvalidInput for
        a seq that is done: a checkpoint is never set back.
        """
        check_seq(seq)
        if not isinstance(reason, str) or not reason or not is_text(reason) or len(reason.encode()) > MAX_REASON:
            raise InvalidInput(f"a reason is text of 1 to {MAX_REASON} bytes")
        row = self._context.checkpoints.standing(self.name, check_queue(queue)).checkpoint
        dead = DeadLetterTries(self._context).of(queue, seq)
        parked = row.parked if row is not None and row.parked is not None and row.parked.seq == seq else None
        # After a reset it may be both; what passes a parked message over takes the place of its dead letter.
        if row is not None and parked is not None and not (dead and (parked.damaged or seq <= row.seq)):
            done = self._pass_over(row, parked, reason)
        elif dead:
            letter = dead[0]
            done = self._context.dead_letters.settle(self.name, letter, replace(letter, discarded=reason))
        else:
            raise NotParked(self.name, queue, seq)
        if not done:
            raise CheckpointConflict(self.name, queue)

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

    def _wake(self, queue: str) -> None:
        with suppress(Exception):
            # Whatever a waker of the user's raises: the sweep finds a queue that lags and sleeps.
            self._context.waker.wake(queue, 0.0)

    def _last_given_up(self, parked: Parked) -> int:
        """The last seq that goes when a parked one is discarded: what is trimmed goes as a whole."""
        if not parked.damaged:
            return parked.seq
        there = self._context.checkpoints.standing(self.name, parked.queue, parked.seq)
        floor = None if there.cursor is None else there.cursor.floor
        if floor is None or parked.seq > floor or there.taken:
            raise QueueDamaged(self.name, parked.queue, parked.seq, parked.error)
        return floor

    def _pass_over(self, row: Checkpoint, parked: Parked, reason: str) -> bool:
        last = self._last_given_up(parked)
        if last <= row.seq:
            raise InvalidInput(
                f"consumer {self.name!r}, queue {row.queue!r}: seq {last} is done, the checkpoint is {row.seq}; "
                f"nothing was discarded. redrive({row.queue!r}) lets the queue go on"
            )
        context, now = self._context, self._context.clock()
        new = row.moved(last, context.new_run(), now)
        letter = DeadLetter(row.queue, parked.seq, parked.error, parked.attempts, now, discarded=reason)
        if not context.checkpoints.commit(row, new, dead=letter).put(new):
            return False
        self._wake(row.queue)
        return True

    def _run(self, deliveries: list[Delivery], shift: Shift, time_left: Callable[[], float] | None) -> list[Served]:
        """Deliver; returns what came of each, and then of earlier runs that could not record it."""
        served = [delivery.served for delivery in deliveries]
        reserve = _reserve(shift)
        queues = {delivery.served.queue for delivery in deliveries}
        earlier = self._unrecorded.record(queues, lambda: time_left is None or time_left() > 2 * reserve)
        self._take_turns(deque(one for one in deliveries if not self._unrecorded.holds_up(one)), shift, time_left)
        self._unrecorded.keep(deliveries, lambda: time_left is None or time_left() > reserve / 2)
        return [*served, *earlier]

    def _take_turns(self, line: deque[Delivery], shift: Shift, time_left: Callable[[], float] | None) -> None:
        reserve = _reserve(shift)
        longest = 0.0
        while line and self._stays_registered(line):
            delivery = line.popleft()
            began = self._pace.monotonic()
            goes_on = delivery.turn()
            longest = max(longest, self._pace.monotonic() - began)
            if goes_on:
                line.append(delivery)
                if len(line) == 1 and delivery.tries_again:
                    self._pace.sleep(RETRY_PAUSE)
            if time_left and _is_short(time_left, reserve, longest):
                self._hand_over(line, reserve, time_left)
                break

    def _hand_over(self, line: Iterable[Delivery], reserve: float, time_left: Callable[[], float]) -> None:
        """Leave the rest to new wakes; once there is no time for another one as slow, what is left is given back.

        A wake that cannot be sent takes seconds. What is in trouble is recorded all the same, until that fails once, or
        there is no time for that either. A queue that was asked for by hand is handed over in any case: nobody would
        ask again.
        """
        longest, longest_record, records = 0.0, 0.0, True
        with time_limit(lambda: time_left() - reserve / 2):
            for delivery in line:
                began = self._pace.monotonic()
                if delivery.comes_again and longest and time_left() < 2 * longest:
                    has_time = not _is_short(time_left, ANSWERING_SHARE * reserve, longest_record)
                    records = delivery.give_back(records=records and has_time) and records
                    longest_record = max(longest_record, self._pace.monotonic() - began)
                    continue
                delivery.hand_over()
                longest = max(longest, self._pace.monotonic() - began)

    def _deliver(
        self, queue: str, shift: Shift, time_left: Callable[[], float] | None, *, forced: bool, afresh: bool = False
    ) -> int:
        """Deliver one queue, and raise what kept it from that."""
        delivery = Delivery(self._context, Wake(queue), shift, persists=True, forced=forced, afresh=afresh)
        served, *_ = self._run([delivery], shift, time_left)
        if served.error is not None:
            raise served.error
        return served.delivered

    def _redrive_dead(
        self, dead: Iterable[DeadLetter], shift: Shift, time_left: Callable[[], float] | None
    ) -> tuple[int, bool]:
        """Try dead letters until one fails again; returns how many are delivered, and if there is time for more.

        None is begun that might not end in time: it would be killed, and that counts as an attempt.
        """
        letters, reserve = DeadLetterTries(self._context), _reserve(shift)
        longest, done = 0.0, 0
        for letter in dead:
            # In a long redrive, too, the registration is read again once a minute.
            self._begin()
            began = self._pace.monotonic()
            if (time_left and _is_short(time_left, reserve, longest)) or not letters.redrive(letter):
                return done, False
            longest, done = max(longest, self._pace.monotonic() - began), done + 1
        # What is parked alone is tried, however short the time is.
        return done, not (done and time_left and _is_short(time_left, reserve, longest))

    def _parked(self) -> Iterator[Parked]:
        page = self._context.checkpoints.parked(self.name)
        yield from page.parked
        while page.next is not None:
            page = self._context.checkpoints.parked(self.name, None, page.next)
            yield from page.parked

    def _dead_letters(self) -> Iterator[DeadLetter]:
        page = self._context.dead_letters.listed(self.name)
        yield from page.letters
        while page.next is not None:
            page = self._context.dead_letters.listed(self.name, page.next)
            yield from page.letters

    def _shift(self, time_left: Callable[[], float] | None) -> Shift:
        seconds = time_left() if time_left else None
        return Shift() if seconds is None else Shift(seconds, self._context.clock() + seconds)

    def _check_handler(self) -> None:
        if self._context.handler is no_handler:
            raise SettingsError(
                f"consumer {self.name!r} has no handler; give it one: OrderedConsumer({self.name!r}, handle, ...). "
                "Without one it can be asked, and messages discarded, but nothing delivered"
            )

    def _stays_registered(self, line: deque[Delivery]) -> bool:
        """Read the registration again once a minute, in a long run, too; who cannot read it stops delivering."""
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001  # what was delivered so far is to be told, whatever this is
            while line:
                line.popleft().abandon(error)
        return bool(line)

    def _begin(self) -> None:
        """Before anything is delivered: see that it can be, and that the consumer is known and not retired."""
        self._check_handler()
        start = self._registration.register(self.name, self._context.terms.start)
        if start != self._context.terms.start:
            self._context = replace(self._context, terms=replace(self._context.terms, start=start))


def _reserve(shift: Shift) -> float:
    """What a run keeps of its time for handing over what is left."""
    return min(LONGEST_RESERVE, RESERVED_SHARE * shift.seconds)


def _is_short(time_left: Callable[[], float], reserve: float, longest: float) -> bool:
    """Return True if there may be no time for one more piece of work that takes as long as the longest so far."""
    return time_left() < max(reserve, 2 * longest)
