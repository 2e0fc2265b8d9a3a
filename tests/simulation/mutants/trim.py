"""Known-bad ways to trim a queue: each leaves out one step, and the simulator must say so."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stream_sort.consume.batch_reader import BatchReader
from stream_sort.consume.context import hole
from stream_sort.consume.delivery import Delivery
from stream_sort.errors import NotConsumed
from stream_sort.intake.storing import Intake
from stream_sort.model.consumption import first_checkpoint
from stream_sort.sorter import Sorter
from stream_sort.testing.simulation.variant import Variant
from stream_sort.upkeep.trimmer import Trimmer

if TYPE_CHECKING:
    from stream_sort.consume.context import ConsumerContext
    from stream_sort.model.consumption import Checkpoint, Wake
    from stream_sort.model.message import Message
    from stream_sort.model.records import Cursor
    from stream_sort.model.retries import Shift
    from stream_sort.ports import Clock, Homes
    from stream_sort.release.position_cache import Hint
    from stream_sort.sorter import Options


class _FloorLast(Trimmer):
    def _set_floor(self, row: Cursor, through: int) -> Cursor:  # noqa: ARG002  # the signature it replaces
        return row

    def _delete(self, row: Cursor, through: int) -> int:
        deleted = super()._delete(row, through)
        super()._set_floor(row, through)
        return deleted


class _Unasked(Trimmer):
    def _check_consumers(self, row: Cursor, through: int) -> None:
        """Asks nobody."""


class _AskedOnce(Trimmer):
    def _check_consumers(self, row: Cursor, through: int) -> None:
        now = self.cursors.get(row.queue)
        if now is not None and now.start < through:
            super()._check_consumers(row, through)


class _Unpinned(Trimmer):
    def _check_consumers(self, row: Cursor, through: int) -> None:
        for consumer in self.control.subscriptions.consumers() if self.control else ():
            there = self.control.checkpoints.standing(consumer.name, row.queue).checkpoint if self.control else None
            at = first_checkpoint(consumer.start, row) if there is None else there.seq
            if at < through:
                raise NotConsumed(row.queue, through, consumer.name, checkpoint=at)


class _NoProofLeft(Trimmer):
    def _set_floor(self, row: Cursor, through: int) -> Cursor:
        raised = super()._set_floor(row, through)
        return replace(raised, position=raised.position + 1)


class _BlindIntake(Intake):
    def _take_back(self, message: Message, hint: Hint) -> None:  # noqa: ARG002  # the signature it replaces
        self.items.delete(message.queue, message.seq - 1, message.seq, 1)


class _TakesBackBlindly(Sorter):
    def __init__(self, homes: Homes, options: Options, clock: Clock) -> None:
        super().__init__(homes, options, clock)
        known = self._intake
        self._intake = _BlindIntake(
            known.items, known.cursors, known.hints, known.keys, known.first_seq, known.clock, known.in_flight
        )


class _HastyReader(BatchReader):
    """Calls a range missing, and says so, without looking whether another run got on meanwhile."""

    def _check_hole(self, row: Checkpoint, missing: range) -> None:
        error = hole(row.queue, missing, self._context.queues.cursors.get(row.queue))
        self._session.served.error = error
        raise error


class _FalseAlarm(Delivery):
    """Has such a reader."""

    def __init__(self, context: ConsumerContext, wake: Wake, shift: Shift | None = None, **options: bool) -> None:
        super().__init__(context, wake, shift, **options)
        self._reader = _HastyReader(context, self._session, self._chunk, wake.position)


def _trimming(trimmer: type[Trimmer]) -> type[Sorter]:
    """A sorter that trims in another way."""

    class Trimming(Sorter):
        def trim(self, queue: str, through: int, *, control_table: str | None) -> int:
            control = None if control_table is None else self.stores.control(control_table)
            return trimmer(self.stores.items, self.stores.cursors, control).trim(queue, through)

    return Trimming


TRIM_MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Variant("floor-last", "a trim deletes first and sets the floor then", sorter=_trimming(_FloorLast)),
        Variant("unasked-consumers", "a trim does not look at consumers", sorter=_trimming(_Unasked)),
        Variant("asked-once", "consumers are not asked again once the floor is set", sorter=_trimming(_AskedOnce)),
        Variant("unpinned-start", "a consumer about to begin is trusted to see the floor", sorter=_trimming(_Unpinned)),
        Variant("no-proof-left", "a trim deletes the slot at the position, too", sorter=_trimming(_NoProofLeft)),
        Variant("overtaken-alarm", "calls missing what another run did and was trimmed", delivery=_FalseAlarm),
        Variant("taken-back-blindly", "whatever stands below the floor is taken back", sorter=_TakesBackBlindly),
    )
}
