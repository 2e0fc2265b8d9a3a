"""What an archive run has to say of each queue, and of all. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.replay.engine.report import SOME, JobReport, some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.replay.archive.due import Due
    from stream_sort.replay.archive.trim import TrimmedQueue
    from stream_sort.replay.archive.work import Written
    from stream_sort.replay.engine.plan import ReadEstimate

COLUMNS = ("queue", "rows", "tombstones", "segments", "bytes", "archived_through", "position", "held_by", "problem")
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

    def row(self, *, trimmed: bool) -> dict[str, Any]:
        """Return the queue's row in the report."""
        through = _held_through(self.due, self.through)
        values = (self.due.queue, self.rows, self.tombstones, self.segments, self.size, through)
        row = dict(zip(COLUMNS, (*values, self.due.position, self.due.held_by, self.problem), strict=True))
        return row | ({"trimmed": self.trimmed} if trimmed else {})


@dataclass(slots=True)
class Accounts:
    """What became of all queues."""

    queues: dict[str, Account] = field(default_factory=dict)
    resumed: int = 0
    no_consumers: bool = False

    @classmethod
    def of(cls, dues: Iterable[Due]) -> Accounts:
        """Return the accounts of queues of which nothing is done yet."""
        return cls({due.queue: Account(due) for due in dues})

    def take_trimmed(self, trimmed: TrimmedQueue) -> None:
        """Count what was deleted."""
        account = self.queues[trimmed.queue]
        account.trimmed += trimmed.slots
        account.kept.update(trimmed.kept)
        account.problem = account.problem or trimmed.problem

    def report(self, seconds: float, *, trimmed: bool) -> JobReport:
        """Return the report of a run, queues with problems first, then the largest."""
        accounts = sorted(self.queues.values(), key=lambda one: (not one.problem, -one.rows, one.due.queue))
        totals: dict[str, Any] = {"queues": len(accounts)}
        totals |= {name: sum(getattr(one, name) for one in accounts) for name in ("rows", "tombstones", "segments")}
        totals |= {"bytes": sum(one.size for one in accounts), "resumed_segments": self.resumed}
        totals |= {"trimmed": sum(one.trimmed for one in accounts)} if trimmed else {}
        return JobReport(
            "archive",
            complete=not any(one.problem for one in accounts),
            columns=COLUMNS + (("trimmed",) if trimmed else ()),
            queues=[one.row(trimmed=trimmed) for one in accounts],
            totals=totals,
            seconds=seconds,
            notes=((NO_CONSUMERS,) if self.no_consumers else ()) + self._kept() + self._trimmed_before(),
        )

    def _trimmed_before(self) -> tuple[str, ...]:
        through = {one.due.queue: one.through for one in self.queues.values()}
        return _trimmed_before((one.due for one in self.queues.values()), through)

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


def planned(
    dues: Iterable[Due],
    segments: Mapping[str, int],
    cost: ReadEstimate,
    trimmed: Mapping[str, int] | None = None,
    *,
    no_consumers: bool,
) -> JobReport:
    """Return the report of a run that was not made; `trimmed` is how many slots it would delete, if it would."""
    dues = list(dues)
    rows = [
        {
            "queue": due.queue,
            "rows": len(due.range) if due.queue in segments else 0,
            "segments": segments.get(due.queue, 0),
            "archived_through": _held_through(due, due.after),
            "position": due.position,
            "held_by": due.held_by,
            "problem": due.problem,
            **({} if trimmed is None else {"trimmed": trimmed.get(due.queue, 0)}),
        }
        for due in dues
    ]
    trims = () if trimmed is None else ("trimmed",)
    totals: dict[str, Any] = {name: sum(row[name] for row in rows) for name in ("rows", "segments", *trims)}
    units = None if cost.read_units is None else round(cost.read_units, 1)
    notes = ((NO_CONSUMERS,) if no_consumers else ()) + _trimmed_before(dues, {due.queue: due.after for due in dues})
    return JobReport(
        "archive",
        complete=not any(row["problem"] for row in rows),
        columns=("queue", "rows", "segments", "archived_through", "position", "held_by", "problem", *trims),
        queues=sorted(rows, key=lambda row: (not row["problem"], -row["rows"], row["queue"])),
        totals={"queues": len(rows), **totals, "read_units": units},
        notes=("dry run: no message was read, nothing written", *notes),
        facts={"dry_run": True},
    )


def _held_through(due: Due, through: int) -> int | None:
    """Return how far the archive goes; None if it holds nothing: where it will begin is not what it holds."""
    return through if through > due.began else None


def _trimmed_before(dues: Iterable[Due], through: Mapping[str, int]) -> tuple[str, ...]:
    """Return what is in no segment because it was trimmed before it could be archived; a queue's problem says more."""
    gone = [(due, range(due.cursor.first_seq, min(due.began, due.cursor.start) + 1)) for due in dues]
    told = [_gone(due, seqs, through[due.queue]) for due, seqs in gone if seqs and not due.problem]
    return some_of(told, "{} more queues that were trimmed before")


def _gone(due: Due, seqs: range, through: int) -> str:
    begins = "nothing is archived"
    if _held_through(due, through) is not None:
        begins = f"the archive begins at seq {due.began + 1}"
    what = f"seq {seqs.start} was trimmed before and is"
    if len(seqs) > 1:
        what = f"seqs {seqs.start} to {seqs[-1]} ({len(seqs):,}) were trimmed before and are"
    return f"queue {due.queue!r}: {begins}; {what} in no segment of this archive"
