"""Service: a named reader of all queues. Delivers what is due, in order, one queue never waiting for another."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.core.batch import Batch
from stream_sort.core.consumption import Checkpoint, DeadLetter, Wake, first_checkpoint, told
from stream_sort.core.message import check_queue, check_seq, is_text
from stream_sort.core.records import Cursor
from stream_sort.delivery import Delivery
from stream_sort.errors import (
    CheckpointConflict,
    EffectRefused,
    InvalidInput,
    MissingItems,
    NotParked,
    StreamSortError,
    TransactionTooLarge,
)
from stream_sort.verdict import verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.core.consumption import Parked, Served
    from stream_sort.desk import Desk
    from stream_sort.registrar import Registrar

RETRY_PAUSE = 0.2
# The part of a run's time that is kept for handing over what is left.
RESERVED_SHARE = 0.2
LONGEST_RESERVE = 10.0
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

    def __init__(self, desk: Desk, registrar: Registrar, pace: Pace | None = None) -> None:
        self._desk = desk
        self._registrar = registrar
        self._pace = pace or Pace()

    @property
    def name(self) -> str:
        """The consumer's name."""
        return self._desk.terms.name

    def process(self, wakes: Iterable[Wake], time_left: Callable[[], float] | None = None) -> list[Served]:
        """Look at every queue that a wake names, once; each gets one chunk in turn until all are done.

        When time is short, what is left is handed to new wakes.
        """
        self._register()
        latest = {wake.queue: wake for wake in wakes}
        deliveries = [Delivery(self._desk, wake) for wake in latest.values()]
        self._take_turns(deque(deliveries), time_left)
        return [delivery.served for delivery in deliveries]

    def catch_up(self, queue: str) -> int:
        """Deliver now what is due, parked or not; returns how many messages were delivered.

        A failing handler parks the queue, as always; a hole in the queue, or a failing store, is raised.
        """
        return self._force(queue, afresh=False)

    def checkpoint(self, queue: str) -> int:
        """The seq up to which everything is done in this queue."""
        self._register()
        standing = self._desk.control.standing(self.name, check_queue(queue))
        if standing.checkpoint is not None:
            return standing.checkpoint.seq
        first = self._desk.sorter.options.first_seq
        return first_checkpoint(self._desk.terms.start, standing.cursor or Cursor(queue, first - 1, first))

    def parked(self) -> list[Parked]:
        """Queues that wait behind a message that failed; the next to be tried first."""
        return list(self._parked())

    def dead_letters(self) -> list[DeadLetter]:
        """Messages that were given up on and are neither redriven nor discarded; the oldest first."""
        return list(self._dead_letters())

    def redrive(self, queue: str, seq: int | None = None) -> int:
        """Try again what is dead or parked in a queue, or at one seq of it: in order, each at its own place.

        Dead letters come first, lowest seq first, each by itself; the first that fails again ends it. Returns how many
        messages were delivered.
        """
        self._register()
        wanted = None if seq is None else check_seq(seq)
        row = self._desk.control.standing(self.name, check_queue(queue)).checkpoint
        letters = [letter for letter in self._letters(queue) if wanted in {None, letter.seq}]
        parked = row is not None and row.parked is not None and seq in {None, row.parked.seq}
        if not letters and not parked:
            raise NotParked(self.name, queue, seq)
        for done, letter in enumerate(letters):
            if not self._redrive(letter):
                return done
        return len(letters) + (self._force(queue, afresh=True) if parked else 0)

    def discard(self, queue: str, seq: int, reason: str) -> None:
        """Give up for good on a message that is dead, or on the one a queue is parked at; the queue then goes on.

        A queue that is parked because its tables are damaged has no message to give up: repair the tables.
        """
        self._register()
        check_seq(seq)
        if not isinstance(reason, str) or not reason or not is_text(reason) or len(reason.encode()) > MAX_REASON:
            raise InvalidInput(f"a reason is text of 1 to {MAX_REASON} bytes")
        row = self._desk.control.standing(self.name, check_queue(queue)).checkpoint
        letter = next((letter for letter in self._letters(queue) if letter.seq == seq), None)
        if letter is not None:
            done = self._desk.control.settle(self.name, letter, replace(letter, discarded=reason))
        elif row is not None and row.parked is not None and row.parked.seq == seq and not row.parked.damaged:
            done = self._pass_over(row, row.parked, reason)
        else:
            raise NotParked(self.name, queue, seq)
        if not done:
            raise CheckpointConflict(self.name, queue)

    def _pass_over(self, row: Checkpoint, parked: Parked, reason: str) -> bool:
        desk, now = self._desk, self._desk.clock()
        new = Checkpoint(row.consumer, row.queue, parked.seq, row.version + 1, desk.new_run(), now)
        letter = DeadLetter(row.queue, parked.seq, parked.error, parked.attempts, now, discarded=reason)
        if not desk.control.commit(row, new, dead=letter).put(new):
            return False
        with suppress(StreamSortError):
            # Should no wake go out, the sweep finds a queue that lags and sleeps.
            desk.waker.wake(row.queue, 0.0)
        return True

    def _take_turns(self, line: deque[Delivery], time_left: Callable[[], float] | None) -> None:
        reserve = min(LONGEST_RESERVE, RESERVED_SHARE * time_left()) if time_left else 0.0
        longest = 0.0
        while line:
            delivery = line.popleft()
            began = self._pace.monotonic()
            goes_on = delivery.turn()
            longest = max(longest, self._pace.monotonic() - began)
            if goes_on:
                line.append(delivery)
                if len(line) == 1 and delivery.tries_again:
                    self._pace.sleep(RETRY_PAUSE)
            if time_left and time_left() < max(reserve, 2 * longest):
                break
        for delivery in line:
            delivery.hand_over()

    def _force(self, queue: str, *, afresh: bool) -> int:
        self._register()
        delivery = Delivery(self._desk, Wake(check_queue(queue)), forced=True, afresh=afresh)
        self._take_turns(deque([delivery]), None)
        if delivery.served.error is not None:
            raise delivery.served.error
        return delivery.served.delivered

    def _redrive(self, letter: DeadLetter) -> bool:
        queue, seq = letter.queue, letter.seq
        items = self._desk.sorter.stores.items.page(queue, seq - 1, seq, 1).items
        if not items:
            raise MissingItems(queue, [range(seq, seq + 1)])
        batch = Batch(queue, seq - 1, seq, (items[0].document,), (seq,), letter.attempts + 1)
        verdict = verdict_of(self._desk.handler, batch)
        error = verdict.error
        settled = False
        if error is None:
            try:
                settled = self._desk.control.settle(self.name, letter, None, batch.transaction.effects)
            except (EffectRefused, TransactionTooLarge) as refused:
                error = refused
        if error is not None:
            again = replace(letter, attempts=letter.attempts + 1, error=told(error))
            settled = self._desk.control.settle(self.name, letter, again)
        if not settled:
            raise CheckpointConflict(self.name, queue)
        return error is None

    def _letters(self, queue: str) -> list[DeadLetter]:
        return self._desk.control.dead_letters_of(self.name, queue)

    def _parked(self) -> Iterator[Parked]:
        page = self._desk.control.parked(self.name)
        yield from page.parked
        while page.next is not None:
            page = self._desk.control.parked(self.name, None, page.next)
            yield from page.parked

    def _dead_letters(self) -> Iterator[DeadLetter]:
        page = self._desk.control.dead_letters(self.name)
        yield from page.letters
        while page.next is not None:
            page = self._desk.control.dead_letters(self.name, page.next)
            yield from page.letters

    def _register(self) -> None:
        start = self._registrar.register(self.name, self._desk.terms.start)
        if start != self._desk.terms.start:
            self._desk = replace(self._desk, terms=replace(self._desk.terms, start=start))
