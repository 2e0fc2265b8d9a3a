"""Gaps as values: which seqs are missing, and since when a message waits beyond them. Knows no store and no clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from stream_sort.model.gap_policy import MAX_GAP

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Gap:
    """A run of missing seqs, and when the oldest message beyond it arrived, in seconds since the epoch.

    `withdrawals` is the number of the queue's last withdrawal when this was measured: the oldest message may be one
    that was withdrawn since. `stray` is the seq behind a gap too long to be skipped that lies beyond this one and was
    found before it. `through` is the last seq that was looked at, None if all that was stored was: beyond it may lie
    what makes the gap older.
    """

    seqs: range
    since: float
    withdrawals: int = 0
    stray: int | None = None
    through: int | None = None

    def holds(self, other: Gap) -> bool:
        """Return True if all seqs of another gap are missing in this one."""
        return self.seqs.start <= other.seqs.start and other.seqs.stop <= self.seqs.stop


class GapEventKind(StrEnum):
    """What a sweep saw happen to a gap."""

    FOUND = "found"
    CLOSED = "closed"
    GIVEN_UP = "given_up"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class GapEvent:
    """One gap of a queue and what became of it; `age` is in seconds.

    `found`: a sweep sees for the first time that the queue waits at this gap. `closed`: a gap that was found is there
    no more, because its messages came, somebody skipped them, or withdrew what waited. `given_up`: a sweep skipped
    it, as the policy says; told again where a sweep failed, died or ran out of time after that.
    `too_long`: it is due, but longer than a sweep may skip by itself.
    """

    kind: GapEventKind
    queue: str
    seqs: range
    age: float = 0.0


def stray_of(gaps: Iterable[range]) -> int | None:
    """Return the lowest seq that stands behind a gap so long that it is likely a mistake, such as a time; or None."""
    return next((gap.stop for gap in gaps if length(gap) > MAX_GAP), None)


def runs_of(seqs: Iterable[int]) -> list[range]:
    """Return the runs of contiguous seqs in some that ascend."""
    return joined(range(seq, seq + 1) for seq in seqs)


def joined(runs: Iterable[range]) -> list[range]:
    """Return ascending runs with those made one that follow each other without a gap."""
    whole: list[range] = []
    for run in runs:
        if whole and whole[-1].stop == run.start:
            whole[-1] = range(whole[-1].start, run.stop)
        else:
            whole.append(run)
    return whole


def rest_of(seqs: range, taken: list[range]) -> list[range]:
    """Return what is left of some seqs without runs of them, which ascend; of any length."""
    starts = [seqs.start, *(run.stop for run in taken)]
    stops = [*(run.start for run in taken), seqs.stop]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def length(seqs: range) -> int:
    """Return how many seqs a range of step 1 holds. Not len(), which raises OverflowError from 2**63 on."""
    return max(0, seqs.stop - seqs.start)
