"""What became of a queue over time, from the times at which its newest messages arrived. Pure: reads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class TimedSeq(NamedTuple):
    """A stored seq and when it arrived, or was skipped."""

    seq: int
    at: float
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class ReportGap:
    """Seqs that were missing though later ones were there; `end` is None while they still are.

    `count` is how many: fewer than `first` to `last` if several gaps are told as one.
    """

    first: int
    last: int
    count: int
    begin: float
    end: float | None
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """The newest slots of a queue, ascending: those up to `position` are released, the others wait.

    `untimed` is how many more have no usable time of arrival.
    """

    queue: str
    position: int
    slots: tuple[TimedSeq, ...]
    untimed: int = 0

    @property
    def waiting(self) -> list[TimedSeq]:
        """Return those that are stored but not released."""
        return [slot for slot in self.slots if slot.seq > self.position]

    @property
    def released(self) -> list[TimedSeq]:
        """Return the released ones, each with the time of its release: it and all before it had arrived."""
        found: list[TimedSeq] = []
        for slot in self.slots:
            if slot.seq <= self.position:
                found.append(slot._replace(at=max(slot.at, found[-1].at) if found else slot.at))
        return found

    @property
    def gaps(self) -> list[ReportGap]:
        """Return every gap that shows in these slots, closed or not, ascending."""
        return sorted([*_closed(self.slots), *self._open()], key=lambda gap: gap.first)

    def _open(self) -> Iterator[ReportGap]:
        """Yield those beyond which a message is there: nobody waits for what is missing before a skip alone."""
        known = [TimedSeq(self.position, 0.0), *self.waiting]
        since = float("inf")
        for high, low in pairwise(reversed(known)):
            since = since if high.skipped else min(since, high.at)
            if high.seq > low.seq + 1 and since < float("inf"):
                yield ReportGap(low.seq + 1, high.seq - 1, high.seq - low.seq - 1, since, None)


def merged(gaps: Iterable[ReportGap], apart: float) -> list[ReportGap]:
    """Return the same with those of a kind told as one that overlap in time, or are not even so many seconds apart."""
    found: list[ReportGap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.end is None, gap.skipped, gap.begin)):
        before = found[-1] if found else None
        if before is None or not _meet(before, gap, apart):
            found.append(gap)
            continue
        first, last = min(before.first, gap.first), max(before.last, gap.last)
        end = None if before.end is None or gap.end is None else max(before.end, gap.end)
        found[-1] = ReportGap(first, last, before.count + gap.count, before.begin, end, gap.skipped)
    return found


def _meet(before: ReportGap, gap: ReportGap, apart: float) -> bool:
    if (before.end is None, before.skipped) != (gap.end is None, gap.skipped):
        return False
    return before.end is None or gap.begin <= before.end + apart


def _closed(slots: Sequence[TimedSeq]) -> Iterator[ReportGap]:
    """Neighbours that were missing since the same moment are one gap; what was skipped always is one."""
    gap: ReportGap | None = None
    earliest: float | None = None
    for slot in reversed(slots):
        begin = _missing_since(slot, earliest)
        if gap and (gap.first, gap.begin, gap.skipped) != (slot.seq + 1, begin, slot.skipped):
            yield gap
            gap = None
        if begin is not None:
            last, end = (slot.seq, slot.at) if gap is None else (gap.last, max(slot.at, gap.end or slot.at))
            gap = ReportGap(slot.seq, last, last - slot.seq + 1, begin, end, slot.skipped)
        if not slot.skipped:
            earliest = slot.at if earliest is None else min(earliest, slot.at)
    if gap:
        yield gap


def _missing_since(slot: TimedSeq, earliest: float | None) -> float | None:
    """Return when the first message beyond a slot came, if before it; a skip that none waited for has no length."""
    if earliest is not None and earliest < slot.at:
        return earliest
    return slot.at if slot.skipped else None
