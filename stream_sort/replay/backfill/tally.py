"""What became of a queue's range in a job: counted, kept in the ledger, added up for the report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import shown
from stream_sort.replay.ranges import Range, is_stored_number, range_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.replay.origins.export.order import Doubles

NOT_DONE = "not done"
MOST_CONFLICTING = 20


@dataclass(frozen=True, slots=True)
class RangeTally:
    """How far `(after, through]` of a queue was done: everything up to `done`.

    `rows` are messages that reached the target, `outside` are slots that arrived at another time than was asked for.
    `conflicts` are slots that differed from the one in their place, and lost; `conflicting` are the seqs of some.
    `failed` says why it got no further, `again` how often it was begun anew.
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
    conflicts: int = 0
    conflicting: tuple[int, ...] = ()
    again: int = 0

    @classmethod
    def of(cls, wanted: Range) -> RangeTally:
        """Return the tally of a range of which nothing is done yet."""
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
        """Return the tally as JSON."""
        holes = [[hole.after, hole.through] for hole in self.missing]
        *counts, _, failed, conflicts, seqs, again = (getattr(self, name) for name in self.__dataclass_fields__)
        return [*counts, holes, failed, conflicts, list(seqs), again]

    @classmethod
    def from_wire(cls, wire: list[Any]) -> RangeTally:
        """Return the tally that `wire` gave."""
        # A job that an earlier version began does not tell how often.
        queue, after, through, done, rows, tombstones, outside, holes, failed, conflicts, seqs, *told = wire
        (again,) = told or (0,)
        range_of(queue, after, through)
        range_of(queue, after, done)
        missing = tuple(range_of(queue, *hole) for hole in holes)
        counts = rows, tombstones, outside
        if not all(map(is_stored_number, (*counts, conflicts, *seqs, again))):
            raise ValueError(f"{shown(wire)} does not count")
        return cls(queue, after, through, done, *counts, missing, failed, conflicts, tuple(seqs), again)

    def with_conflicts(self, before: RangeTally, slots: object) -> RangeTally:
        """Return the tally with the conflicts that `slots`, read on from `before`, met so far; only exports do."""
        doubles: Doubles | None = getattr(slots, "doubles", None)
        if doubles is None or not doubles.lost[self.queue]:
            return self
        # What was read ahead, or is read a second time, is counted by whoever does it; told apart while all are named.
        seqs = [seq for queue, seq in doubles.examples if queue == self.queue and before.done < seq <= self.done]
        are_named = len(doubles.examples) == doubles.conflicts
        found = before.conflicts + (len(seqs) if are_named else doubles.lost[self.queue])
        some = sorted({*before.conflicting, *seqs})[:MOST_CONFLICTING]
        return replace(self, conflicts=found, conflicting=tuple(some))


def added_up(tallies: Iterable[RangeTally]) -> list[RangeTally]:
    """Return one tally for each queue, of all its ranges; sorted by name."""
    whole: dict[str, RangeTally] = {}
    for one in sorted(tallies, key=lambda tally: (tally.queue, tally.after)):
        before = whole.get(one.queue)
        whole[one.queue] = one if before is None else _sum(before, one)
    return list(whole.values())


def _sum(one: RangeTally, next_one: RangeTally) -> RangeTally:
    summed = ("rows", "tombstones", "outside", "missing", "conflicts", "conflicting")
    sums = {name: getattr(one, name) + getattr(next_one, name) for name in summed}
    sums["conflicting"] = sums["conflicting"][:MOST_CONFLICTING]
    failed = _why(one.failed, next_one.failed)
    return replace(one, through=next_one.through, done=next_one.done, failed=failed, **sums)


def _why(one: str, other: str) -> str:
    """Return why a queue failed: what stopped it says more than what was left undone because of it."""
    if one in {"", NOT_DONE}:
        return other or one
    return one
