"""Known-bad consumers: each breaks one rule, and the simulator must say so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.wakes import WakeReader
from stream_sort.consume.batch_reader import BatchReader
from stream_sort.consume.crash_guard import CrashGuard
from stream_sort.consume.delivery import Delivery
from stream_sort.consume.parking import Parking
from stream_sort.consume.registration import Registration
from stream_sort.errors import CursorLost, HandlerProblem, StreamSortError
from stream_sort.model.consumption import Wake
from stream_sort.model.records import Cursor
from stream_sort.model.retries import Shift, is_blameless, text_of
from stream_sort.testing.simulation.variant import Variant
from stream_sort.testing.simulation.world import World

if TYPE_CHECKING:
    from random import Random

    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.batch import Batch
    from stream_sort.model.consumption import Checkpoint
    from stream_sort.model.slots import Entry
    from stream_sort.testing.simulation.calls import Call


@dataclass(frozen=True, slots=True)
class _ImageWake(Wake):
    """A wake that brings the old position along."""

    old: int | None = None


class _ImageReader(WakeReader):
    """Believes the images of a record."""

    def _from_stream(self, record: dict[str, Any]) -> Wake:
        wake = super()._from_stream(record)
        old = record["dynamodb"].get("OldImage")
        return _ImageWake(wake.queue, wake.position, wake.records, int(old["seq"]["N"]) if old else None)


class _ImageRangeReader(BatchReader):
    """Takes what a record says was released for what is due."""

    old: int | None = None

    def _arrive(self) -> None:
        super()._arrive()
        session = self._session
        if self.old is not None and self._hint is not None and session.row is not None and not session.is_over:
            session.row, session.position = replace(session.row, seq=self.old), self._hint


class _OldImageRange(Delivery):
    """Delivers what the record says was released."""

    def __init__(self, context: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(context, wake, shift, **options)
        self._reader = _ImageRangeReader(context, self._session, self._chunk, wake.position)
        self._reader.old = getattr(wake, "old", None)


class _UnconditionalCheckpoints(World):
    """Writes a checkpoint whatever stands there."""

    def apply(self, part: Call, rng: Random | None = None) -> Any:
        if part.key == "checkpoints.commit":
            old = part.args[0]
            there = self.tables.controls["control"].checkpoints.get((old.consumer, old.queue), old)
            part = replace(part, args=(there, *part.args[1:]))
        return super().apply(part, rng)


class _ReturnsAnew(World):
    """Registers a retired consumer that comes back as if it were new."""

    def apply(self, part: Call, rng: Random | None = None) -> Any:
        if part.key == "subscriptions.register" and part.args[0].name in {
            name for name, one in self.control.consumers.items() if one.is_retired
        }:
            del self.control.consumers[part.args[0].name]
        return super().apply(part, rng)


class _CheckpointFirst(Delivery):
    """Commits before the handler did anything."""

    def fetch(self) -> Batch | None:
        batch = super().fetch()
        if batch is not None:
            self._session.commit(batch.through, batch.transaction.effects)
        return batch

    def ack(self, *_: Any, **__: Any) -> None:
        """Everything is committed by now."""

    def fail(self, *_: Any) -> None:
        """As above."""


class _GoesOn(Delivery):
    """Passes over a message that failed."""

    def _fail(self, batch: Batch, error: Exception, done: int) -> None:  # noqa: ARG002  # as there
        self._session.commit(batch.seqs[-1])


class _RecreatesCursor(Delivery):
    """Takes a lost cursor row for a queue that has not begun."""

    def _next_batch(self) -> Batch | None:
        try:
            return super()._next_batch()
        except CursorLost as error:
            first = self._context.queues.first_seq
            self._context.queues.cursors.create(Cursor(error.queue, first - 1, first))
            return super()._next_batch()


class _Careless(CrashGuard):
    """Notes nothing before a message is tried."""

    def take(self, row: Checkpoint, first: Entry, seqs: tuple[int, ...], attempts: int) -> bool:  # noqa: ARG002  # as there
        return True


class _NeverNotes(Delivery):
    """Does not count the processes that died of a message."""

    def __init__(self, context: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(context, wake, shift, **options)
        self._guard = _Careless(context, self._session, shift or Shift(), afresh=options.get("afresh", False))


class _BlamingParking(Parking):
    """Takes every failure for the message's own."""

    def park(self, error: Exception, seq: int, limit: float) -> None:
        self.tries += is_blameless(error)
        super().park(HandlerProblem(text_of(error)), seq, limit)


class _BlamesOutages(Delivery):
    """Uses up the attempts of messages while what the handler needs is out of order."""

    def __init__(self, context: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(context, wake, shift, **options)
        self._parking = _BlamingParking(context, self._session, self._chunk, afresh=options.get("afresh", False))


class _LetsBugsThrough(Delivery):
    """Names errors of ours only; anything else ends the whole run."""

    def _recover(self, error: Exception) -> None:
        if not isinstance(error, StreamSortError):
            raise error
        super()._recover(error)


class _RegistersOnce(Registration):
    """Reads a registration once a process, and never again."""

    def register(self, name: str, start: str) -> str:
        known = self._known.get(name)
        return super().register(name, start) if known is None else known.start


class _SweepRegisters(Registration):
    """Brings back who was retired, though nothing is delivered."""

    def introduce(self, name: str, start: str) -> None:
        self.register(name, start)


CONSUMER_MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Variant("old-image-range", "delivers (OldImage, NewImage]", delivery=_OldImageRange, reader=_ImageReader),
        Variant("unconditional-checkpoint", "commits without a condition", world=_UnconditionalCheckpoints),
        Variant("checkpoint-first", "commits before the effect", delivery=_CheckpointFirst),
        Variant("goes-on", "goes on after a failure", delivery=_GoesOn),
        Variant("blames-outages", "an outage uses up attempts", delivery=_BlamesOutages),
        Variant("never-notes", "dies of a message, uncounted", delivery=_NeverNotes),
        Variant("bug-ends-run", "a bug in one queue ends the run", delivery=_LetsBugsThrough),
        Variant("returns-anew", "a retired one comes back as new", world=_ReturnsAnew),
        Variant("registers-once", "does not see that it was retired", registration=_RegistersOnce),
        Variant("sweep-registers", "a sweep brings back the retired", registration=_SweepRegisters),
        Variant("consumer-recreates-cursor", "makes a lost cursor anew", delivery=_RecreatesCursor),
    )
}
