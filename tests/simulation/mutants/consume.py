"""Known-bad consumers: each breaks one rule, and the simulator must say so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.aws_lambda.wakes import WakeReader
from stream_sort.consume.crash_guard import CrashGuard
from stream_sort.consume.delivery import Delivery
from stream_sort.consume.handler import call_handler
from stream_sort.consume.parking import Parking
from stream_sort.consume.registration import Registration
from stream_sort.errors import CursorLost, HandlerProblem, StreamSortError
from stream_sort.model.consumption import Wake, is_blameless, told
from stream_sort.model.precaution import Shift
from stream_sort.model.records import Cursor
from stream_sort.testing.simulation.variant import Variant
from stream_sort.testing.simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence
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


class _OldImageRange(Delivery):
    """Delivers what the record says was released."""

    def _arrive(self) -> bool:
        goes_on, place = super()._arrive(), self._place
        old = getattr(self._wake, "old", None)
        if old is None or place.row is None or self._wake.position is None or not place.goes_on:
            return goes_on
        place.row, place.position = replace(place.row, seq=old), self._wake.position
        return True


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

    def _settle(self, batch: Batch) -> bool:
        self._place.commit(batch.through, batch.transaction.effects)
        call_handler(self._context.handler, batch)
        return self._place.goes_on


class _GoesOn(Delivery):
    """Passes over a message that failed."""

    def _fail(self, error: Exception, undone: Sequence[int], *, alone: bool) -> bool:  # noqa: ARG002  # as there
        self._place.commit(undone[-1])
        return self._place.goes_on


class _RecreatesCursor(Delivery):
    """Takes a lost cursor row for a queue that has not begun."""

    def _work(self) -> bool:
        try:
            return super()._work()
        except CursorLost as error:
            first = self._context.queues.first_seq
            self._context.queues.cursors.create(Cursor(error.queue, first - 1, first))
            return super()._work()


class _Careless(CrashGuard):
    """Notes nothing before a message is tried."""

    def take(self, row: Checkpoint, first: Entry, seqs: tuple[int, ...], attempts: int) -> bool:  # noqa: ARG002  # as there
        return True


class _NeverNotes(Delivery):
    """Does not count the processes that died of a message."""

    def __init__(self, desk: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(desk, wake, shift, **options)
        self._caution = _Careless(desk, self._place, shift or Shift(), afresh=options.get("afresh", False))


class _BlamingParking(Parking):
    """Takes every failure for the message's own."""

    def park(self, error: Exception, seq: int, limit: float) -> bool:
        self.tries += is_blameless(error)
        return super().park(HandlerProblem(told(error)), seq, limit)


class _BlamesOutages(Delivery):
    """Uses up the attempts of messages while what the handler needs is out of order."""

    def __init__(self, desk: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(desk, wake, shift, **options)
        self._parking = _BlamingParking(desk, self._place, self._chunk, afresh=options.get("afresh", False))


class _LetsBugsThrough(Delivery):
    """Names errors of ours only; anything else ends the whole run."""

    def _recover(self, error: Exception) -> bool:
        if not isinstance(error, StreamSortError):
            raise error
        return super()._recover(error)


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
