"""Puts the messages of a file and keeps count: outcomes, what was refused and why, how fast."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING

from stream_sort.cli.message_file import ELEMENT, LINE, FileEntry, RefusedEntry, Rejects, problem_of
from stream_sort.cli.output import console, tell
from stream_sort.errors import StoreUnavailable
from stream_sort.insight.wording import NAMED, counted
from stream_sort.model.outcomes import Status
from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stream_sort.errors import StreamSortError
    from stream_sort.sorter import Sorter

UNDECIDED = "put stopped before it was known to be stored: put it again"
CONFLICT = "conflict: another message is stored at this seq and stays"
COUNTS = ("accepted", "duplicates", "conflicts", "late", "rejected")


@dataclass(frozen=True, slots=True)
class Conflict:
    """A message that was refused because another one has its seq; `unit` is what its place in the file counts."""

    queue: str
    seq: int
    place: int
    unit: str

    def __str__(self) -> str:
        return f"queue {self.queue}, seq {self.seq} ({self.unit} {self.place})"


@dataclass(slots=True)
class Loaded:
    """What became of a file so far; `first_conflicts` names the first few."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    late: int = 0
    rejected: int = 0
    released: int = 0
    stalled: dict[str, str] = field(default_factory=dict)
    first_conflicts: list[Conflict] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """Return how many are in the file of rejects."""
        return self.conflicts + self.rejected

    @property
    def total(self) -> int:
        """Return how many were taken."""
        return sum(getattr(self, name) for name in COUNTS)


@dataclass(frozen=True, slots=True)
class Loader:
    """Puts entries, a window at a time."""

    sorter: Sorter
    rejects: Rejects
    loaded: Loaded = field(default_factory=Loaded)

    def load(self, entries: Iterable[FileEntry], report: Callable[[int], None]) -> None:
        """Put them all; `report` hears how many bytes of the file were dealt with.

        StoreUnavailable ends it once nothing of a window could be stored: those after it would fare no better.
        Whatever ends it, what was read and cannot be read again is kept with the rejects.
        """
        each = iter(entries)
        in_hand: list[FileEntry] = []
        try:
            # The first alone: where nobody answers, it is told at once.
            length = 1
            while self._take(islice(each, length), in_hand):
                length = self.sorter.options.window
                self._load(in_hand)
                report(sum(entry.size for entry in in_hand))
                in_hand.clear()
        finally:
            if in_hand and self.rejects.keeps:
                self._keep(in_hand, each)
        self.rejects.end()

    def _take(self, entries: Iterable[FileEntry], in_hand: list[FileEntry]) -> bool:
        """Read entries one by one: an interrupt leaves in hand what was read."""
        for entry in entries:
            in_hand.append(self._checked(entry))  # noqa: PERF401  # a list of its own would be lost
        return bool(in_hand)

    def _load(self, window: list[FileEntry]) -> None:
        refused = self._put([entry for entry in window if not entry.error])
        bad = [RefusedEntry(entry.place, entry.error, entry.document, entry.unit) for entry in window if entry.error]
        self.loaded.rejected += len(bad)
        self.rejects.add([*refused, *bad])

    def _keep(self, in_hand: list[FileEntry], each: Iterator[FileEntry]) -> None:
        """Keep what was read and may not be stored; of an array all was read."""
        is_array = in_hand[0].unit == ELEMENT
        left = [*in_hand, *map(self._checked, each)] if is_array else in_hand
        self.rejects.add(
            RefusedEntry(entry.place, entry.error or UNDECIDED, entry.document, entry.unit) for entry in left
        )
        unread = "" if is_array else f"; what follows {LINE} {left[-1].place} was not read"
        tell(
            f"{counted(len(left), 'message')} read but not known to be stored: kept in {self.rejects.path}; to put: "
            f"jq -c .message {quote(str(self.rejects.path))} | {program()} put -{unread}"
        )

    @property
    def how_to_go_on(self) -> str:
        """Say how a run that was stopped goes on; empty if what was read says it."""
        return "" if self.rejects.keeps else "; run it again to go on"

    def _checked(self, entry: FileEntry) -> FileEntry:
        problem = entry.error or problem_of(entry.document, self.sorter.options.keys)
        return replace(entry, error=problem) if problem else entry

    def _put(self, window: list[FileEntry]) -> list[RefusedEntry]:
        result = self.sorter.put_many(entry.document for entry in window)
        loaded = self.loaded
        unreachable = [error for _, error in result.rejected if isinstance(error, StoreUnavailable)]
        if window and len(unreachable) == len(window):
            raise StoreUnavailable(
                f"stopped after {counted(loaded.total, 'message')}{self.how_to_go_on}. {unreachable[0]}"
            )
        loaded.accepted += result.accepted
        loaded.duplicates += len(result.duplicates)
        loaded.conflicts += len(result.conflicts)
        loaded.late += len(result.late)
        loaded.rejected += len(result.rejected)
        loaded.released += result.released
        loaded.stalled |= {queue: str(error) for queue, error in result.stalled}
        pairs = list(zip(window, result.outcomes, strict=True))
        self._name([entry for entry, outcome in pairs if outcome is Status.CONFLICT])
        return [
            RefusedEntry(entry.place, _why(outcome), entry.document, entry.unit)
            for entry, outcome in pairs
            if outcome is Status.CONFLICT or not isinstance(outcome, Status)
        ]

    def _name(self, conflicts: list[FileEntry]) -> None:
        keys, known = self.sorter.options.keys, self.loaded.first_conflicts
        for entry in conflicts[: NAMED - len(known)]:
            known.append(Conflict(entry.document[keys.queue], entry.document[keys.seq], entry.place, entry.unit))


def _why(outcome: Status | StreamSortError) -> str:
    """Say why a message was refused."""
    return CONFLICT if isinstance(outcome, Status) else str(outcome)


@contextmanager
def progress(total: int | None, loaded: Loaded) -> Iterator[Callable[[int], None]]:
    """Show a bar with the rate on stderr, if that is a terminal; yield the function that moves it on."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("put", total=total, told="")

        def report(size: int) -> None:
            spent = bar.tasks[0].elapsed or 1.0
            bar.update(task, advance=size, told=f"{loaded.total:,} messages, {loaded.total / spent:,.0f}/s")

        yield report
