"""Slots and their entries: what the items table holds of a queue. The only place that knows how many seqs one fills."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at one seq: a message, or a tombstone with perhaps a late message beside it."""

    seq: int
    document: dict[str, Any] = field(default_factory=dict)
    arrived_at: float | None = None
    skipped: str | None = None
    late: dict[str, Any] | None = None

    @property
    def is_tombstone(self) -> bool:
        """Return True if the seq was skipped: it counts as present and is never delivered."""
        return self.skipped is not None


@dataclass(frozen=True, slots=True)
class Slot:
    """One item of the items table. Its entries fill the seqs `first` to `last`; its key is the first of them.

    A put and a skip fill one seq. `seen` is what it is for an Arrival; it is shown by `arrivals_below` only.
    """

    queue: str
    entries: Sequence[Entry]
    seen: int | None = None

    @property
    def first(self) -> int:
        """Return the lowest seq that it fills."""
        return self.entries[0].seq

    @property
    def last(self) -> int:
        """Return the highest seq that it fills."""
        return self.entries[-1].seq

    @property
    def seqs(self) -> range:
        """Return all seqs that it fills."""
        return range(self.first, self.last + 1)

    def at(self, seq: int) -> Entry:
        """Return the entry at a seq that it fills."""
        return self.entries[seq - self.first]


def expand(slots: Iterable[Slot], after: int | None = None, through: int | None = None) -> Iterator[Entry]:
    """Yield the entries of slots, in order; only those of `(after, through]` where that is given."""
    for slot in slots:
        for entry in slot.entries:
            if (after is None or entry.seq > after) and (through is None or entry.seq <= through):
                yield entry
