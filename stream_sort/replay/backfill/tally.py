"""What became of a queue's range in a job: counted, kept in the ledger, added up for the report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.replay.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable

NOT_DONE = "not done"


@dataclass(frozen=True, slots=True)
class Tally:
    """How far `(after, through]` of a queue was done: everything up to `done`.

    `rows` are messages that reached the target, `outside` are slots that arrived at another time than was asked for.
    `failed` says why it got no further.
    """

    queue: str
    after: int
    through: int
    done: int
    rows: int = 0
    tombstones: int = 0
    outside: int = 0
    missing: tuple[Range, ...] = ()
    failed: str = ""

    @classmethod
    def of(cls, wanted: Range) -> Tally:
        """Nothing is done yet."""
        return cls(wanted.queue, wanted.after, wanted.through, wanted.after)

    @property
    def lost(self) -> int:
        """How many seqs are missing."""
        return sum(map(len, self.missing))

    @property
    def is_whole(self) -> bool:
        """Whether every seq is accounted for by a slot."""
        return not self.failed and self.rows + self.tombstones + self.outside == self.through - self.after

    @property
    def is_done(self) -> bool:
        """Whether every seq is accounted for by a slot or a known hole."""
        slots = self.rows + self.tombstones + self.outside
        return not self.failed and slots + self.lost == self.through - self.after

    def wire(self) -> list[Any]:
        """The tally as JSON."""
        holes = [[hole.after, hole.through] for hole in self.missing]
        counts = [self.rows, self.tombstones, self.outside]
        return [self.queue, self.after, self.through, self.done, *counts, holes, self.failed]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> Tally:
        """The tally that `wire` gave."""
        queue, after, through, done, rows, tombstones, outside, holes, failed = wire
        missing = tuple(Range(queue, *hole) for hole in holes)
        return cls(queue, after, through, done, rows, tombstones, outside, missing, failed)


def added_up(tallies: Iterable[Tally]) -> list[Tally]:
    """One tally for each queue, of all its ranges; sorted by name."""
    whole: dict[str, Tally] = {}
    for one in sorted(tallies, key=lambda tally: (tally.queue, tally.after)):
        before = whole.get(one.queue)
        whole[one.queue] = one if before is None else _sum(before, one)
    return list(whole.values())


def _sum(one: Tally, next_one: Tally) -> Tally:
    return replace(
        one,
        through=next_one.through,
        done=next_one.done,
        rows=one.rows + next_one.rows,
        tombstones=one.tombstones + next_one.tombstones,
        outside=one.outside + next_one.outside,
        missing=one.missing + next_one.missing,
        failed=_why(one.failed, next_one.failed),
    )


def _why(one: str, other: str) -> str:
    """What stopped a queue says more than what was left undone because of it."""
    if one in {"", NOT_DONE}:
        return other or one
    return one
