"""Known-bad sweeps: each breaks a rule of gap policies, or lets one queue stop the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import InternalError
from stream_sort.model.records import Cursor, Page
from stream_sort.model.slots import Slot
from stream_sort.release.gap_age import GapWalk
from stream_sort.testing.simulation.variant import Variant
from stream_sort.upkeep.queue_visit import QueueVisit
from stream_sort.upkeep.sweeper import Sweeper
from stream_sort.upkeep.visits import Visits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.gap_policy import GapPolicy
    from stream_sort.model.gaps import Gap


class _YoungerItems:
    """Items whose messages seem to have arrived when the cursor last moved, if they are older."""

    def __init__(self, items: Any, moved_at: float) -> None:
        self._items = items
        self._moved_at = moved_at

    def arrivals(self, *args: Any) -> Page:
        page = self._items.arrivals(*args)
        return Page(tuple(map(self._younger, page.slots)), page.more)

    def _younger(self, slot: Slot) -> Slot:
        times = [max(entry.arrived_at or 0.0, self._moved_at) for entry in slot.entries]
        return Slot(slot.queue, [replace(one, arrived_at=at) for one, at in zip(slot.entries, times, strict=True)])


class _FirstGapWalk(GapWalk):
    def due(self) -> Iterator[list[Gap]]:
        first = next(super().due(), None)
        if first is not None:
            yield first[:1]


class _RestartingVisit(QueueVisit):
    def _walk(self, cursor: Cursor, policy: GapPolicy) -> GapWalk:
        items: Any = _YoungerItems(self._items, cursor.moved_at or 0.0)
        # The clock of a gap begins when the cursor comes to it: no other one can be due.
        return _FirstGapWalk(items, cursor, self._now, skip_after=policy.skip_after, max_gap=self._max_gap)


class _RestartedClock(Sweeper):
    visit = _RestartingVisit


class _OneGapVisit(QueueVisit):
    def _walk(self, cursor: Cursor, policy: GapPolicy) -> GapWalk:
        return _FirstGapWalk(self._items, cursor, self._now, skip_after=policy.skip_after, max_gap=self._max_gap)

    def _give_up(self, cursor: Cursor, walk: GapWalk, policy: GapPolicy) -> bool:
        return False if self.done.events else super()._give_up(cursor, walk, policy)


class _FirstGapOnly(Sweeper):
    visit = _OneGapVisit


class _AllAsOldWalk(GapWalk):
    def due(self) -> Iterator[list[Gap]]:
        is_any = False
        for gaps in super().due():
            is_any = True
            yield gaps
        if is_any and self.left is not None:
            yield [self.left]


class _ImpatientVisit(QueueVisit):
    def _walk(self, cursor: Cursor, policy: GapPolicy) -> GapWalk:
        return _AllAsOldWalk(self._items, cursor, self._now, skip_after=policy.skip_after, max_gap=self._max_gap)


class _AsOldAsTheFirst(Sweeper):
    visit = _ImpatientVisit


class _BlindVisit(QueueVisit):
    def _is_unchanged(self, cursor: Cursor) -> bool:  # noqa: ARG002  # the signature
        return True


class _FillsBlindly(Sweeper):
    visit = _BlindVisit


class _FragileVisits(Visits):
    def attempt(self, visit: QueueVisit) -> bool:
        was_made = super().attempt(visit)
        if isinstance(visit.done.error, InternalError) and visit.done.error.__cause__ is not None:
            raise visit.done.error.__cause__
        return was_made


class _Fragile(Sweeper):
    visits = _FragileVisits


GAP_MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Variant("restarted-clock", "every move of the cursor makes the next gap young", sweeper=_RestartedClock),
        Variant("first-gap-only", "a sweep skips one gap of a queue", sweeper=_FirstGapOnly),
        Variant("as-old-as-the-first", "a gap is skipped with the one before it", sweeper=_AsOldAsTheFirst),
        Variant("fills-blindly", "a sweep fills a gap though what waited beyond is withdrawn", sweeper=_FillsBlindly),
        Variant("one-queue-ends-the-sweep", "a sweep ends with an error that nobody foresaw", sweeper=_Fragile),
    )
}
