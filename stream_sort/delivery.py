"""Service: one queue on its way to one consumer. Delivers (checkpoint, position] chunk by chunk, parks what fails.

The tables say what is due, nothing else: a wake only says where to look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.core.batch import Batch
from stream_sort.core.consumption import (
    Checkpoint,
    DeadLetter,
    Served,
    attempts_before,
    first_checkpoint,
    parked_by,
)
from stream_sort.core.ordering import run_through
from stream_sort.errors import (
    CheckpointConflict,
    CursorLost,
    EffectRefused,
    MissingItems,
    PartlyDone,
    StreamSortError,
    TransactionTooLarge,
)
from stream_sort.verdict import verdict_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.core.batch import Effect
    from stream_sort.core.consumption import Parked, Standing, Wake
    from stream_sort.core.records import Item
    from stream_sort.ports import Clock, ControlStore, Waker
    from stream_sort.sorter import Sorter
    from stream_sort.verdict import Handler

TRIES_IN_PLACE = 2
# An SQS message may come a little before the clock of this machine says so.
EARLY = 1.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How a consumer delivers."""

    name: str
    batch_size: int = 100
    max_attempts: int = 5
    dead_letters: bool = False
    start: str = "earliest"


@dataclass(frozen=True, slots=True)
class Desk:
    """What every delivery of a consumer works with; `new_run` names a run as no other one is named."""

    terms: Terms
    sorter: Sorter
    control: ControlStore
    handler: Handler
    waker: Waker
    clock: Clock
    new_run: Callable[[], str]


class Delivery:
    """One queue under way: `turn` after `turn` until there is nothing left to do.

    `forced` goes on although the queue is parked, and from where another run left it; `afresh` forgets the
    attempts before.
    """

    def __init__(self, desk: Desk, wake: Wake, *, forced: bool = False, afresh: bool = False) -> None:
        self._desk = desk
        self._terms = desk.terms
        self._wake = wake
        self._forced = forced
        self._afresh = afresh
        self._run = desk.new_run()
        self._size = self._most = desk.terms.batch_size
        self._tries = 0
        self._suspect: float = -math.inf
        self._position = 0
        self._row: Checkpoint | None = None
        self.served = Served(wake.queue)

    @property
    def wake(self) -> Wake:
        """Why this delivery was begun."""
        return self._wake

    @property
    def tries_again(self) -> bool:
        """Whether the next turn repeats what just failed."""
        return self._tries > 0

    def turn(self) -> bool:
        """Do one piece of work, one chunk at most; False when nothing is left to do now."""
        try:
            return self._work()
        except (MissingItems, CursorLost) as error:
            return self._park_damaged(error)
        except StreamSortError as error:
            return self._end("failed", error)

    def hand_over(self) -> None:
        """Leave the rest to a new wake."""
        try:
            self._desk.waker.wake(self._wake.queue, 0.0)
        except StreamSortError as error:
            self._end("failed", error)
        else:
            self._end("handed over")

    def _work(self) -> bool:
        if self._row is None:
            return self._arrive()
        if self._position > self._row.seq:
            return self._deliver(self._row)
        return self._look_past()

    def _arrive(self) -> bool:
        hint = self._wake.position
        standing = self._standing(None if hint is None else hint + 1)
        if standing.cursor is None:
            return False
        if standing.checkpoint is None:
            first = first_checkpoint(self._terms.start, standing.cursor)
            made = self._desk.control.create(Checkpoint(self._terms.name, self._wake.queue, first, run=self._run))
            self._row = made.checkpoint
        if self._row is None or self._is_parked(self._row):
            return self._end("waiting")
        if self._position <= self._row.seq and self._position == hint:
            return self._go_past(taken=bool(standing.taken))
        return True

    def _standing(self, slot: int | None) -> Standing:
        """What the tables say now. The row of a lost cursor is not the beginning of a queue."""
        queue = self._wake.queue
        standing = self._desk.control.standing(self._terms.name, queue, slot)
        self._row = standing.checkpoint or self._row
        if standing.cursor is not None:
            self._position = standing.cursor.position
        elif self._row is not None:
            raise CursorLost(queue, known_position=self._row.seq)
        return standing

    def _is_parked(self, row: Checkpoint) -> bool:
        if row.parked is None or self._forced:
            return False
        return row.parked.next_try is None or self._desk.clock() + EARLY < row.parked.next_try

    def _look_past(self) -> bool:
        """Read again after the last commit: whoever lost a commit to us relies on this."""
        seen = self._position
        standing = self._standing(seen + 1)
        if self._is_parked(self._standing_row()):
            return self._end("waiting")
        return self._position != seen or self._go_past(taken=bool(standing.taken))

    def _go_past(self, *, taken: bool) -> bool:
        """Advance if something stands behind the position: its writer may have died."""
        if not taken:
            return False
        before = self._position
        self._position = self._desk.sorter.reach(self._wake.queue).cursor.position
        return self._position > before

    def _deliver(self, row: Checkpoint) -> bool:
        chunk = self._read(row.seq)
        through = chunk[-1].seq
        messages = [item for item in chunk if not item.is_tombstone]
        if not messages:
            self._commit(through)
            return self._goes_on
        batch = Batch(
            queue=row.queue,
            after=row.seq,
            through=through,
            messages=tuple(item.document for item in messages),
            seqs=tuple(item.seq for item in messages),
            attempt=self._attempts(row, messages[0].seq) + self._tries + 1,
        )
        return self._settle(batch)

    def _read(self, after: int) -> Sequence[Item]:
        """The next chunk, whole: a hole in a released range is never passed over."""
        queue = self._wake.queue
        items = self._desk.sorter.stores.items.page(queue, after, self._position, self._size).items
        end = run_through(after, [item.seq for item in items])
        if end == after:
            found = items[0].seq if items else self._position + 1
            raise MissingItems(queue, [range(after + 1, found)])
        return items[: end - after]

    def _settle(self, batch: Batch) -> bool:
        """Call the handler, commit what it did, and see to what it did not do."""
        verdict = verdict_of(self._desk.handler, batch)
        effects = batch.transaction.effects
        if verdict.done > batch.after and verdict.done < batch.through and effects:
            # Which effects belong to the finished part is not known: deliver that part again, by itself.
            self._size = verdict.done - batch.after
            return True
        error, done = verdict.error, verdict.done
        if done > batch.after:
            try:
                if self._commit(done, effects):
                    self._count(batch, done)
            except (EffectRefused, TransactionTooLarge) as refused:
                error, done = refused, batch.after
        if error is None or not self._goes_on:
            return self._goes_on
        return self._fail(error, [seq for seq in batch.seqs if seq > done])

    def _count(self, batch: Batch, done: int) -> None:
        self.served.delivered += sum(seq <= done for seq in batch.seqs)
        self._tries = 0
        if done >= self._suspect:
            self._size = min(self._most, self._size * 2)

    def _fail(self, error: Exception, undone: Sequence[int]) -> bool:
        """Find the message at fault by smaller and smaller chunks; try it again in place; then park."""
        self.served.handler_failures += 1
        self._suspect = undone[-1]
        if len(undone) > 1:
            if isinstance(error, TransactionTooLarge):
                self._most = len(undone) // 2
            self._size = 1 if isinstance(error, PartlyDone) else len(undone) // 2
            return True
        self._size = 1
        self._tries += 1
        if self._tries < TRIES_IN_PLACE:
            return True
        return self._park(self._standing_row(), error, undone[0], self._terms.max_attempts)

    def _attempts(self, row: Checkpoint, seq: int) -> int:
        return 0 if self._afresh else attempts_before(row, seq)

    def _park(self, row: Checkpoint, error: Exception, seq: int, limit: float) -> bool:
        """Set the queue aside, or the message after its last attempt, as the terms say."""
        now, attempts = self._desk.clock(), self._attempts(row, seq) + 1
        parked = parked_by(row, seq, error, attempts, now)
        self._tries, self._afresh = 0, False
        if attempts >= limit and self._terms.dead_letters:
            return self._bury(DeadLetter(row.queue, seq, parked.error, attempts, now))
        if attempts >= limit:
            parked = replace(parked, next_try=None)
        if not self._commit(row.seq, parked=parked):
            return self._goes_on
        self.served.parked = parked
        if parked.next_try is not None:
            self._wake_later(parked.next_try - now)
        return self._end("parked")

    def _bury(self, letter: DeadLetter) -> bool:
        if self._commit(letter.seq, dead=letter):
            self.served.dead.append(letter)
            self._size = self._most
        return self._goes_on

    def _wake_later(self, delay: float) -> None:
        try:
            self._desk.waker.wake(self._wake.queue, delay)
        except StreamSortError:
            # It is recorded as parked: the sweep wakes it when its time has come.
            return

    def _park_damaged(self, error: StreamSortError) -> bool:
        """Park a queue with a hole or without a cursor. It is tried again for ever: only a repair gets it past."""
        self.served.error = error
        if self._row is None:
            return self._end("failed", error)
        try:
            return self._park(self._row, error, self._row.seq + 1, math.inf)
        except StreamSortError as failure:
            return self._end("failed", failure)

    def _commit(
        self,
        seq: int,
        effects: Sequence[Effect] = (),
        *,
        dead: DeadLetter | None = None,
        parked: Parked | None = None,
    ) -> bool:
        """Move on, on condition that nobody else did; a write of our own that was sent twice is ours."""
        old = self._standing_row()
        new = Checkpoint(old.consumer, old.queue, seq, old.version + 1, self._run, self._desk.clock(), parked)
        commit = self._desk.control.commit(old, new, effects, dead)
        there = commit.checkpoint
        if commit.won or (there is not None and (there.version, there.run) == (new.version, new.run)):
            self._row = new
            return True
        if there is None or not self._forced:
            self._end("overtaken", CheckpointConflict(old.consumer, old.queue))
        self._row = there
        return False

    def _standing_row(self) -> Checkpoint:
        if self._row is None:
            raise CheckpointConflict(self._terms.name, self._wake.queue)
        return self._row

    @property
    def _goes_on(self) -> bool:
        return self.served.ended == "done"

    def _end(self, how: str, error: Exception | None = None) -> bool:
        self.served.ended = how
        self.served.error = error or self.served.error
        return False
