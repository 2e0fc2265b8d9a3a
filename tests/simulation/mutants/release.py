"""Known-bad ways to store and to release: each breaks one rule, and the simulator must find it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import CursorLost, StoreUnavailable
from stream_sort.model.outcomes import Skip
from stream_sort.model.records import Look, Move
from stream_sort.release import advancer
from stream_sort.sorter import Sorter
from stream_sort.testing.simulation.calls import Call, Recorder
from stream_sort.testing.simulation.variant import Variant
from stream_sort.testing.simulation.world import World
from stream_sort.upkeep.queue_visit import QueueVisit
from stream_sort.upkeep.sweeper import Sweeper
from tests.simulation.search.worlds import copy_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from stream_sort.model.records import Cursor
    from stream_sort.release.position_cache import Hint


class _Stop(Exception):
    """Ends a walk before its time."""


class _StoppingWalk(advancer.Walk):
    """A walk that may be ended before its time."""

    def run(self, hint: Hint | None) -> advancer.Reach:
        try:
            return super().run(hint)
        except _Stop:
            return self._arrive()


class _ExitOnLoss(_StoppingWalk):
    def _settle(self, move: Move, end: int) -> None:
        super()._settle(move, end)
        if not move.won:
            raise _Stop


class _NoReadAfterUpdate(_StoppingWalk):
    def _settle(self, move: Move, end: int) -> None:
        super()._settle(move, end)
        if move.won:
            raise _Stop


class _OnlyTheNext(_StoppingWalk):
    def run(self, hint: Hint | None) -> advancer.Reach:
        if hint is not None and hint.cursor is not None:
            self._stand_on(hint.cursor)
        if hint is not None and self.cursor.position + 1 not in self._own:
            return self._arrive()
        return super().run(hint)


class _TrustTheHint(_StoppingWalk):
    def _peek(self) -> bool:
        head = self._service.heads.peek(self.queue, self.cursor.position + 1)
        if head.cursor is None:
            raise CursorLost(self.queue)
        return head.taken


class _LeaveWithoutMark(advancer.Walk):
    def leave(self) -> advancer.Reach:
        if not self._row_was_read and not self._read_row():
            raise CursorLost(self.queue)
        return self._reach(self.cursor.position, None, complete=False)


class _TrustAnOldMark(advancer.Walk):
    def leave(self) -> advancer.Reach:
        self._row_was_read = True
        return super().leave()


class _MarkOnce(advancer.Walk):
    def _mark_waiting(self, last: int) -> None:
        now = self._service.clock()
        if (
            self.cursor.waiting_since is None
            and last > self.cursor.position
            and self._service.cursors.set_waiting(self.cursor, now)
        ):
            self.cursor = replace(self.cursor, waiting_since=now)


class _ClearingVisit(QueueVisit):
    def _clear(self, cursor: Cursor) -> None:
        self._cursors.set_waiting(cursor, None)


class _ClearWithoutLook(Sweeper):
    visit = _ClearingVisit


class _SkipByMoving(Sorter):
    def skip(self, queue: str, seqs: int | Iterable[int], reason: str = "") -> Skip:  # noqa: ARG002  # the signature
        row = self.queues.cursor(queue)
        end = max([seqs] if isinstance(seqs, int) else seqs)
        if end > row.position:
            self.stores.cursors.move(row, end, self.clock())
        done = self.advance(queue)
        return Skip(queue, done.old, done.new, done.released)


class _ErrorsAreEmpty(Recorder):
    def ask(self, call: Call) -> Any:
        try:
            return super().ask(call)
        except StoreUnavailable:
            if call.name in {"get", "look"}:
                return None if call.name == "get" else Look((), more=False)
            raise


class _NoProof(Recorder):
    def ask(self, call: Call) -> Any:
        answer = super().ask(call)
        return replace(answer, seen=()) if isinstance(answer, Look) else answer


class _TombstonesWithoutProof(Recorder):
    def ask(self, call: Call) -> Any:
        if call.key == "items.skip":
            tombstones, now = call.args
            call = replace(call, args=(replace(tombstones, seen=None), now))
        return super().ask(call)


class _RepeatedMarks(World):
    """Marks are the time and nothing but the time: the same one may come twice."""

    def apply(self, part: Call, rng: Random | None = None) -> Any:
        if part.key == "cursors.set_waiting" and part.args[1] is not None:
            cursor, since = part.args
            part = replace(part, args=(cursor, math.copysign(self.now, since)))
        return super().apply(part, rng)


class _UnconditionalMoves(World):
    def apply(self, part: Call, rng: Random | None = None) -> Any:
        row = self.tables.cursors.get(str(part.queue)) if part.key == "cursors.move" else None
        if row is None:
            return super().apply(part, rng)
        self.tables.cursors[row.queue] = replace(row, position=part.args[1])
        return Move(won=True, cursor=self.tables.cursors[row.queue])


class _OverwritingPuts(World):
    def apply(self, part: Call, rng: Random | None = None) -> Any:
        if part.key == "items.put":
            message = part.args[0].message
            if message.seq in self.tables.queue(message.queue).slots:
                self.tables.queue(message.queue).empty(message.seq)
        return super().apply(part, rng)


class _StaleReads(World):
    """Some reads show the tables as they were before the last write."""

    def apply(self, part: Call, rng: Random | None = None) -> Any:
        if part.name in {"get", "look", "page", "arrivals"}:
            old = getattr(self, "_before", None) if rng is not None and rng.random() < 0.5 else None
            return World.apply(old or self, part, rng)
        self._before = copy_of(self)
        return super().apply(part, rng)


RELEASE_MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Variant("unconditional-move", "the cursor is written whatever it is", world=_UnconditionalMoves),
        Variant("exit-on-lost-condition", "an advance ends when its condition fails", walk=_ExitOnLoss),
        Variant("no-read-after-update", "an advance ends with its first move", walk=_NoReadAfterUpdate),
        Variant("only-the-next", "an advance is made only if seq = position + 1", walk=_OnlyTheNext),
        Variant("stale-reads", "reads are eventually consistent", world=_StaleReads),
        Variant("errors-are-empty", "a failed read is taken for an empty one", recorder=_ErrorsAreEmpty),
        Variant("skip-by-moving", "a skip moves the cursor and leaves no tombstone", sorter=_SkipByMoving),
        Variant("overwriting-puts", "a second message replaces the first", world=_OverwritingPuts),
        Variant("recreated-cursor", "the proof of a lost cursor row is ignored", recorder=_NoProof),
        Variant("unproved-tombstones", "a tombstone carries no proof of the row", recorder=_TombstonesWithoutProof),
        Variant("repeated-marks", "a waiting mark may come back as it was", world=_RepeatedMarks),
        Variant("left-without-mark", "an advance whose time is over sets no waiting mark", walk=_LeaveWithoutMark),
        Variant(
            "trusted-mark", "a mark that was read before the message was stored is relied on", walk=_TrustAnOldMark
        ),
        Variant("mark-tried-once", "a refused waiting mark is not tried again", walk=_MarkOnce),
        Variant("clear-without-look", "a sweep clears a mark and does not look again", sweeper=_ClearWithoutLook),
        Variant("trusted-hint", "a remembered position is not checked against the row", walk=_TrustTheHint),
    )
}
