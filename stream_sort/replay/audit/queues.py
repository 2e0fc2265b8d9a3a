"""What an audit knows of one queue: what is stored, and where its cursor and its consumers are. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


@dataclass(slots=True)
class QueueAudit:
    """One queue. `runs` are pairs of first and last seq, ascending, with a gap between each two.

    `position` and `first_seq` are those of its cursor row, None without one; `cursor_lost` where there was one, and
    `unbegun` where there never was: then they are what the first one will say. `trimmed_through` is how far its
    messages were archived and then deleted; `no_slot` counts items in no slot; `checkpoints` are seqs by consumer.
    `error` says why the queue could not be looked at, or not whole.
    """

    queue: str
    runs: list[tuple[int, int]] = field(default_factory=list)
    rows: int = 0
    tombstones: int = 0
    late: int = 0
    conflicts: int = 0
    position: int | None = None
    first_seq: int | None = None
    trimmed_through: int | None = None
    cursor_lost: bool = False
    unbegun: bool = False
    no_slot: int = 0
    stuck: bool = False
    checkpoints: dict[str, int] = field(default_factory=dict)
    error: str = ""

    @property
    def seqs(self) -> int:
        """How many seqs are there, each counted once."""
        return sum(last - first + 1 for first, last in self.runs)

    @property
    def messages(self) -> int:
        """How many messages are there: tombstones and what came twice do not count."""
        return self.seqs - self.tombstones

    @property
    def duplicates(self) -> int:
        """How many slots came again."""
        return self.rows - self.seqs

    @property
    def first(self) -> int | None:
        """The lowest seq."""
        return self.runs[0][0] if self.runs else None

    @property
    def last(self) -> int | None:
        """The highest seq."""
        return self.runs[-1][1] if self.runs else None

    def gaps(self) -> list[range]:
        """Return all missing seqs from where the queue must begin to its position or its highest seq."""
        return list(self._gaps())

    def holds(self, seq: int) -> bool:
        """Return whether a slot is taken."""
        return any(first <= seq <= last for first, last in self.runs)

    def lag(self) -> dict[str, int]:
        """Return, by consumer, how many seqs are released and not yet done; below 0 for one ahead of the position."""
        if self.position is None:
            return {}
        return {name: self.position - seq for name, seq in sorted(self.checkpoints.items())}

    def _gaps(self) -> Iterator[range]:
        expected = self._start()
        for first, last in self.runs:
            if expected is not None and first > expected:
                yield range(expected, first)
            expected = last + 1 if expected is None else max(expected, last + 1)
        if self.position is not None and expected is not None and expected <= self.position:
            yield range(expected, self.position + 1)

    def _start(self) -> int | None:
        """Return the lowest seq that must be there; None for wherever the first one is."""
        if self.first_seq is None:
            return None
        return self.first_seq if self.trimmed_through is None else max(self.first_seq, self.trimmed_through + 1)


def queues_of(runs: pa.RecordBatch) -> dict[str, QueueAudit]:
    """Return the queues that joined runs, sorted, tell of."""
    found: dict[str, QueueAudit] = {}
    for queue, first, last, rows, tombstones, late in zip(
        *(column.to_pylist() for column in runs.columns), strict=True
    ):
        told = found.get(queue)
        if told is None:
            told = found[queue] = QueueAudit(queue)
        told.runs.append((first, last))
        told.rows += rows
        told.tombstones += tombstones
        told.late += late
    return found
