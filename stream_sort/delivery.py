"""Service: one queue on its way to one consumer. Delivers (checkpoint, position] chunk by chunk, parks what fails.

The tables say what is due, nothing else: a wake only says where to look.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.core.batch import Batch
from stream_sort.core.chunks import ChunkSize
from stream_sort.core.consumption import (
    Checkpoint,
    DeadLetter,
    Served,
    attempts_before,
    first_checkpoint,
    parked_by,
)
from stream_sort.core.message import MIN_SEQ
from stream_sort.core.ordering import run_through
from stream_sort.errors import (
    CheckpointConflict,
    CursorLost,
    EffectRefused,
    HandlerProblem,
    MissingItems,
    PartlyDone,
    StreamSortError,
    TransactionTooLarge,
)
from stream_sort.verdict import verdict_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.core.batch import Effect
    from stream_sort.core.consumption import Parked, Standing, Wake
    from stream_sort.core.records import Item
    from stream_sort.desk import Desk

TRIES_IN_PLACE = 2
# An SQS message may come a little before the clock of this machine says so.
EARLY = 1.0


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
        self._chunk = ChunkSize(desk.terms.batch_size)
        self._tries = 0
        # What went wrong since the last commit: the error, the first message it kept back, the attempts it may take.
        self._trouble: tuple[Exception, int, float] | None = None
        self._position = MIN_SEQ - 1
        self._row: Checkpoint | None = None
        self._is_stored = False
        self.served = Served(wake.queue)

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
        """Leave the rest to a new wake.

        A queue in trouble is parked instead: the new run would spend its time on the same trouble, and so for ever.
        """
        try:
            if self._trouble is not None:
                self._park(self._standing_row(), *self._trouble)
            if self._goes_on:
                self._desk.waker.wake(self._wake.queue, 0.0)
                self._end("handed over")
        except StreamSortError as error:
            self._end("failed", error)

    def _work(self) -> bool:
        # Arriving is no work by itself: a run whose time is short from the start must get on, too.
        if self._row is None and not self._arrive():
            return False
        if self._position <= self._standing_row().seq:
            return self._look_past()
        return self._deliver(self._standing_row()) if self._begin(self._standing_row()) else self._goes_on

    def _arrive(self) -> bool:
        hint = self._wake.position
        standing = self._standing(None if hint is None else hint + 1)
        if standing.cursor is None:
            return False
        row = self._standing_row()
        if self._is_parked(row):
            return self._end("waiting")
        if row.parked is not None:
            self._chunk.focus(row.seq, row.parked.seq)
        if self._position <= row.seq and self._position == hint:
            return self._go_past(taken=bool(standing.taken))
        return True

    def _begin(self, row: Checkpoint) -> bool:
        """Make the checkpoint when something is due for the first time: until then the queue may open elsewhere."""
        if self._is_stored:
            return True
        made = self._desk.control.create(row)
        self._row, self._is_stored = made.checkpoint, made.checkpoint is not None
        if self._is_parked(self._standing_row()):
            return self._end("waiting")
        return made.put(row)

    def _standing(self, slot: int | None) -> Standing:
        """What the tables say now. The row of a lost cursor is not the beginning of a queue."""
        queue = self._wake.queue
        standing = self._desk.control.standing(self._terms.name, queue, slot)
        if standing.checkpoint is not None:
            self._row, self._is_stored = standing.checkpoint, True
        elif standing.cursor is not None:
            first = first_checkpoint(self._terms.start, standing.cursor)
            self._row, self._is_stored = Checkpoint(self._terms.name, queue, first, run=self._run), False
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
            return self._rest(self._standing_row())
        before = self._position
        self._position = self._desk.sorter.reach(self._wake.queue).cursor.position
        return self._position > before

    def _rest(self, row: Checkpoint) -> bool:
        """Nothing is due. A queue that was parked for a lost cursor is so no longer; then look again, as ever."""
        return row.parked is not None and (self._commit(row.seq) or self._goes_on)

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
        items = self._desk.sorter.stores.items.page(queue, after, self._position, self._chunk.size).items
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
            self._chunk.size = verdict.done - batch.after
            known = HandlerProblem(f"the handler did a batch up to seq {verdict.done}; that part is to come by itself")
            self._trouble = verdict.error or known, batch.seqs[0], math.inf
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
        self._chunk.grow(done)

    def _fail(self, error: Exception, undone: Sequence[int]) -> bool:
        """Find the message at fault by smaller and smaller chunks; try it again in place; then park."""
        row, is_found = self._standing_row(), len(undone) == 1
        self._trouble = error, undone[0], self._terms.max_attempts if is_found else math.inf
        if not is_found and isinstance(error, TransactionTooLarge):
            self._chunk.limit(undone)
            return True
        self.served.handler_failures += 1
        if not is_found and not isinstance(error, PartlyDone):
            self._chunk.halve(undone)
            return True
        self._chunk.focus(row.seq, undone[0])
        self._tries += is_found
        if self._tries < TRIES_IN_PLACE:
            return True
        return self._park(row, *self._trouble)

    def _attempts(self, row: Checkpoint, seq: int) -> int:
        return 0 if self._afresh else attempts_before(row, seq)

    def _park(self, row: Checkpoint, error: Exception, seq: int, limit: float) -> bool:
        """Set the queue aside, or the message after its last attempt, as the terms say."""
        now, attempts = self._desk.clock(), self._attempts(row, seq) + 1
        parked = parked_by(row, seq, error, attempts, now)
        self._tries, self._afresh = 0, False
        if attempts >= limit and self._terms.dead_letters:
            return self._bury(DeadLetter(row.queue, seq, parked.error, attempts, now))
        return self._set_aside(replace(parked, next_try=None) if attempts >= limit else parked)

    def _set_aside(self, parked: Parked) -> bool:
        if not self._commit(self._standing_row().seq, parked=parked):
            return self._goes_on
        self.served.parked = parked
        if parked.next_try is not None:
            self._wake_later(parked.next_try - self._desk.clock())
        return self._end("parked")

    def _bury(self, letter: DeadLetter) -> bool:
        if self._commit(letter.seq, dead=letter):
            self.served.dead.append(letter)
            self._chunk.reset()
        return self._goes_on

    def _wake_later(self, delay: float) -> None:
        try:
            self._desk.waker.wake(self._wake.queue, delay)
        except StreamSortError:
            # It is recorded as parked: the sweep wakes it when its time has come.
            return

    def _park_damaged(self, error: StreamSortError) -> bool:
        """Park a queue with a hole or without a cursor. It is tried again for ever: only a repair gets it past."""
        row = self._row
        if row is None:
            return self._end("failed", error)
        if self._is_parked(row):
            return self._end("waiting")
        self.served.error = error
        seq = row.seq + 1
        attempts = attempts_before(row, seq, damaged=True) + 1
        try:
            return self._set_aside(replace(parked_by(row, seq, error, attempts, self._desk.clock()), damaged=True))
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
        if commit.put(new):
            self._row, self._trouble = new, None
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
