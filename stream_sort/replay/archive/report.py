"""What an archive run has to say of each queue, and of all. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.replay.engine.report import SOME, JobReport, some_notes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.replay.archive.due import Due
    from stream_sort.replay.archive.trim import TrimmedQueue
    from stream_sort.replay.archive.work import Written
    from stream_sort.replay.engine.plan import ReadEstimate

COLUMNS = ("queue", "rows", "tombstones", "segments", "bytes", "archived_through", "position", "held_by", "problem")
DRY_COLUMNS = tuple(name for name in COLUMNS if name not in {"tombstones", "bytes"})
COUNTS = ("rows", "tombstones", "segments", "bytes")
NOTHING_WRITTEN = "dry run: no message was read, nothing written"
NO_CONSUMERS = "no consumer is registered in the control table: all that is released counts as consumed"


@dataclass(slots=True)
class Account:
    """What became of one queue."""

    due: Due
    rows: int = 0
    tombstones: int = 0
    segments: int = 0
    size: int = 0
    through: int = 0
    trimmed: int = 0
    kept: set[int] = field(default_factory=set)
    problem: str = ""

    def __post_init__(self) -> None:
        self.through = self.due.after
        self.problem = self.due.problem

    def take(self, written: Written) -> None:
        """Count a segment."""
        if written.problem:
            self.problem = self.problem or written.problem
            return
        self.rows += len(written.held)
        self.tombstones += written.tombstones
        self.segments += 1
        self.size += written.size

    def row(self, columns: Iterable[str]) -> dict[str, Any]:
        """Return the queue's row in the report."""
        through = _held_through(self.due, self.through)
        values = (self.due.queue, self.rows, self.tombstones, self.segments, self.size, through)
        row = dict(zip(COLUMNS, (*values, self.due.position, self.due.held_by, self.problem), strict=True))
        row["trimmed"] = self.trimmed
        return {name: row[name] for name in columns}


@dataclass(slots=True)
class Accounts:
    """What became of all queues."""

    queues: dict[str, Account] = field(default_factory=dict)
    resumed: int = 0
    no_consumers: bool = False

    @classmethod
    def of(cls, dues: Iterable[Due], *, no_consumers: bool = False) -> Accounts:
        """Return the accounts of queues of which nothing is done yet."""
        return cls({due.queue: Account(due) for due in dues}, no_consumers=no_consumers)

    def take_trimmed(self, trimmed: TrimmedQueue) -> None:
        """Count what was deleted."""
        account = self.queues[trimmed.queue]
        account.trimmed += trimmed.slots
        account.kept.update(trimmed.kept)
        account.problem = account.problem or trimmed.problem

    def report(self, seconds: float = 0.0, *, trimmed: bool, cost: ReadEstimate | None = None) -> JobReport:
        """Return the report of a run, queues with problems first, then the largest; of a dry run, with its cost."""
        columns = (COLUMNS if cost is None else DRY_COLUMNS) + (("trimmed",) if trimmed else ())
        accounts = sorted(self.queues.values(), key=lambda one: (not one.problem, -one.rows, one.due.queue))
        rows = [one.row(columns) for one in accounts]
        totals: dict[str, Any] = {"queues": len(rows)}
        totals |= {name: sum(row[name] for row in rows) for name in COUNTS if name in columns}
        totals |= {"resumed_segments": self.resumed} if cost is None else {}
        totals |= {"trimmed": sum(one.trimmed for one in accounts)} if trimmed else {}
        if cost is not None:
            totals["read_units"] = None if cost.read_units is None else round(cost.read_units, 1)
        notes = ((NO_CONSUMERS,) if self.no_consumers else ()) + self._kept() + _trimmed_before(self.queues.values())
        return JobReport(
            "archive",
            complete=not any(one.problem for one in accounts),
            columns=columns,
            queues=rows,
            totals=totals,
            seconds=seconds,
            notes=notes if cost is None else (NOTHING_WRITTEN, *notes),
            facts={} if cost is None else {"dry_run": True},
        )

    def _kept(self) -> tuple[str, ...]:
        """Return what a trim has left in the table for its late messages' sake."""
        places = [(one.due.queue, seq) for one in self.queues.values() for seq in sorted(one.kept)]
        if not places:
            return ()
        told = "; ".join(f"queue {queue!r}, seq {seq}" for queue, seq in places[:SOME])
        more = f"; and {len(places) - SOME:,} more" if len(places) > SOME else ""
        if len(places) == 1:
            return (f"kept: 1 slot, whose late message came after it was archived: {told}",)
        return (f"kept: {len(places):,} slots, whose late messages came after they were archived: {told}{more}",)


def _held_through(due: Due, through: int) -> int | None:
    """Return how far the archive goes; None if it holds nothing: where it will begin is not what it holds."""
    return through if through > due.began else None


def _trimmed_before(accounts: Iterable[Account]) -> tuple[str, ...]:
    """Return what is in no segment because it was trimmed before it could be archived; a problem says more."""
    gone = [(one, range(one.due.cursor.first_seq, min(one.due.began, one.due.cursor.start) + 1)) for one in accounts]
    told = [_gone(one.due, seqs, one.through) for one, seqs in gone if seqs and not one.due.problem]
    return some_notes(told, "{} more queues that were trimmed before")


def _gone(due: Due, seqs: range, through: int) -> str:
    begins = "nothing is archived"
    if _held_through(due, through) is not None:
        begins = f"the archive begins at seq {due.began + 1}"
    what = f"seq {seqs.start} was trimmed before and is"
    if len(seqs) > 1:
        what = f"seqs {seqs.start} to {seqs[-1]} ({len(seqs):,}) were trimmed before and are"
    return f"queue {due.queue!r}: {begins}; {what} in no segment of this archive"
