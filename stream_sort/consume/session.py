"""One consumer in one queue: what it read of the tables, and how it moves on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stream_sort.errors import CheckpointConflict, CursorLost, StoreUnavailable
from stream_sort.model.consumption import Checkpoint, Commit, Outcome, Served, first_checkpoint
from stream_sort.model.message import MIN_SEQ
from stream_sort.model.retries import is_crash_guard
from stream_sort.ports.time_limit import time_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.batch import Effect
    from stream_sort.model.consumption import DeadLetter, Parked, Standing
    from stream_sort.model.records import Cursor

# An SQS message may come a little before the clock of this machine says so.
EARLY = 1.0


@dataclass(frozen=True, slots=True)
class Write:
    """A row to be put, and what is done once it stands: so many messages delivered, one given up."""

    row: Checkpoint
    delivered: int = 0
    dead: DeadLetter | None = None


class Session:
    """A checkpoint row as it was read, and the position; every change is on condition that nobody else made one.

    A `forced` one does not mind that the queue is parked; one that `persists` goes on from where another run left it.
    """

    def __init__(self, context: ConsumerContext, queue: str, *, persists: bool, forced: bool) -> None:
        self._context = context
        self._run = context.new_run()
        # Whether the row stands in the table, or is only where this consumer would begin.
        self.is_stored = False
        self._persists = persists
        self._forced = forced
        self.row: Checkpoint | None = None
        self.position = MIN_SEQ - 1
        self.moved_at = 0.0
        # What went wrong since the last commit: the error, the first message it kept back, the attempts it may take.
        self.trouble: tuple[Exception, int, float] | None = None
        # Writes of ours that were not answered, since the last answer: one of them may stand, or yet be written.
        self.in_doubt: list[Write] = []
        self.served = Served(queue)
        self.is_over = False

    def look(self, slot: int | None) -> Standing:
        """Read what the tables say now. The row of a lost cursor is not the beginning of a queue."""
        queue, name = self.served.queue, self._context.terms.name
        standing = self._context.checkpoints.standing(name, queue, slot)
        if self.row is None and standing.cursor is None and standing.checkpoint is not None:
            # One answer is not one moment: a queue that just begins may have got its row after that was read, and its
            # checkpoint before. Whoever reads after the checkpoint was seen finds the row, or it is lost.
            standing = self._context.checkpoints.standing(name, queue, slot)
        if standing.checkpoint is not None:
            self.row, self.is_stored = standing.checkpoint, True
        if standing.cursor is not None:
            self.is_stored = standing.checkpoint is not None
            self.see(standing.cursor)
        elif self.row is not None:
            raise CursorLost(queue, known_position=self.row.seq)
        return standing

    def see(self, cursor: Cursor) -> None:
        """Take over where a queue stands; one that this consumer has not begun may have been opened elsewhere since."""
        if not self.is_stored:
            first = first_checkpoint(self._context.terms.start, cursor)
            self.row = Checkpoint(self._context.terms.name, cursor.queue, first, run=self._run)
        self.position, self.moved_at = cursor.position, cursor.moved_at or 0.0

    def begin(self) -> bool:
        """Make the checkpoint when something is due for the first time: until then the queue may open elsewhere.

        Return False if somebody else made it first: look again. It notes the time: that there is a row which nobody
        committed since is how a death at the first message shows.
        """
        if self.is_stored:
            return True
        row = replace(self.standing_row(), committed_at=self._context.clock())
        made = self._context.checkpoints.create(row)
        self.row, self.is_stored = made.checkpoint, made.checkpoint is not None
        return not self.must_wait() and made.put(row)

    def must_wait(self) -> bool:
        """End the run if the queue is parked, and its time has not come; return whether it is."""
        parked = self.standing_row().parked
        if parked is None or self._forced:
            return False
        # Nobody is sent for when a crash guard ends: it holds to the last moment.
        early = 0.0 if is_crash_guard(parked) else EARLY
        is_early = parked.next_try is None or self._context.clock() + early < parked.next_try
        if is_early:
            self.end(Outcome.WAITING)
        return is_early

    def commit(
        self,
        seq: int,
        effects: Sequence[Effect] = (),
        *,
        delivered: int = 0,
        dead: DeadLetter | None = None,
        parked: Parked | None = None,
    ) -> bool:
        """Move on, on condition that nobody else did; a write of our own that was sent twice is ours.

        Return False if somebody else did: `is_over` then says if that ends this run. `delivered` messages, and the one
        that is `dead`, are counted once the row stands. An unanswered write of ours that is found, and that got nobody
        on, is replaced.
        """
        old = self.standing_row()
        write = Write(old.moved(seq, self._run, self._context.clock(), parked), delivered, dead)
        commit = self._put(old, write, effects)
        if commit.put(write.row):
            self._count(write)
            self.row, self.trouble, self.in_doubt = write.row, None, []
            return True
        there = commit.checkpoint
        own = None if there is None or there.seq != old.seq else self._own(there)
        if own is not None:
            # It stands until it is replaced, and what is known of the message is what was known before it.
            self.row, self.in_doubt = replace(own.row, parked=old.parked), [own]
            return self.commit(seq, effects, delivered=delivered, dead=dead, parked=parked)
        self.give_way(there)
        return False

    def _put(self, old: Checkpoint, write: Write, effects: Sequence[Effect]) -> Commit:
        """Write a row; if there is no answer, once more.

        If the first one was written, the second finds it and is that; if it is under way still, it finds the second and
        changes nothing. Where it fails in whatever way, later writes go by another name: what was written may yet be
        found, be it by a try within one call, and must not pass for theirs.
        """
        try:
            try:
                return self._context.checkpoints.commit(old, write.row, effects, write.dead)
            except StoreUnavailable:
                with time_limit(lambda: 0.0):
                    return self._context.checkpoints.commit(old, write.row, effects, write.dead)
        except Exception:
            self.in_doubt.append(write)
            self._run = self._context.new_run()
            raise

    def give_way(self, there: Checkpoint | None) -> None:
        """Let another run that moved on win: end, or, if this one persists, go on from the row as it stands.

        So does a run that finds an unanswered write of its own, and counts what it did: nobody else is at work on what
        is left. What went wrong here counts no more: it may be done.
        """
        own = None if there is None else self._own(there)
        if own is not None:
            self._count(own)
        self.row, self.is_stored, self.trouble, self.in_doubt = there, there is not None, None, []
        if there is None or not (self._persists or own):
            self.end(Outcome.OVERTAKEN, CheckpointConflict(self._context.terms.name, self.served.queue))
        else:
            self.must_wait()

    def finds_its_write(self) -> bool:
        """Look once more after a write that was not answered; return True if it stands and got the run on.

        What got nobody on, such as a queue that was parked, stays a failure: who comes next sees it.
        """
        if not self.in_doubt:
            return False
        there = self._context.checkpoints.standing(self._context.terms.name, self.served.queue).checkpoint
        if there is None or there.seq == self.standing_row().seq or self._own(there) is None:
            return False
        self.give_way(there)
        return True

    def standing_row(self) -> Checkpoint:
        """Return the row; only of a queue that was looked at, and has one."""
        if self.row is None:
            raise CheckpointConflict(self._context.terms.name, self.served.queue)
        return self.row

    def end(self, outcome: Outcome, error: Exception | None = None) -> None:
        """Do no more in this run."""
        self.is_over = True
        self.served.ended = outcome
        self.served.error = error or self.served.error

    def _own(self, there: Checkpoint) -> Write | None:
        """Return the unanswered write of ours that a row is, if it is one."""
        return next((write for write in self.in_doubt if there.is_write_of(write.row)), None)

    def _count(self, write: Write) -> None:
        self.served.delivered += write.delivered
        if write.dead is not None:
            self.served.dead.append(write.dead)
