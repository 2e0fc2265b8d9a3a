"""Puts the messages of a file and keeps count: outcomes, what was refused and why, how fast."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from stream_sort.cli.output import console, json_line
from stream_sort.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from stream_sort.cli.message_file import Entry
    from stream_sort.sorter import Sorter

CONFLICT = "conflict: another message is stored at this seq and stays"
COUNTS = ("accepted", "duplicates", "conflicts", "late", "rejected")


@dataclass(slots=True)
class Loaded:
    """What became of a file so far."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    late: int = 0
    rejected: int = 0
    released: int = 0
    stalled: dict[str, str] = field(default_factory=dict)

    @property
    def refused(self) -> int:
        """How many are in the file of rejects."""
        return self.conflicts + self.rejected

    @property
    def total(self) -> int:
        """How many were taken."""
        return sum(getattr(self, name) for name in COUNTS)


class Rejects:
    """The file of what was refused, a JSON line each: where it stood, why, and what it was. None is made in vain."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = False

    def add(self, place: int, reason: str, document: Any) -> None:
        """Note one; a file that is there from another run is written over."""
        try:
            with self._path.open("a" if self._begun else "w", encoding="utf-8") as file:
                file.write(json_line({"line": place, "reason": reason, "message": document}) + "\n")
        except OSError as error:
            raise InvalidInput(f"--rejects {self._path}: {error.strerror}") from error
        self._begun = True


@dataclass(frozen=True, slots=True)
class Loader:
    """Puts entries, a window at a time."""

    sorter: Sorter
    rejects: Rejects
    loaded: Loaded = field(default_factory=Loaded)

    def load(self, entries: Iterable[Entry], report: Callable[[int], None]) -> None:
        """Put them all; `report` hears how many bytes of the file were dealt with."""
        each = iter(entries)
        while window := list(islice(each, self.sorter.options.window)):
            self._put([entry for entry in window if not entry.error])
            for entry in window:
                if entry.error:
                    self.loaded.rejected += 1
                    self.rejects.add(entry.place, entry.error, entry.document)
            report(sum(entry.size for entry in window))

    def _put(self, window: list[Entry]) -> None:
        # The lists of a result hold the very objects that were given.
        places = {id(entry.document): entry.place for entry in window}
        result = self.sorter.put_many(entry.document for entry in window)
        loaded = self.loaded
        loaded.accepted += result.accepted
        loaded.duplicates += len(result.duplicates)
        loaded.conflicts += len(result.conflicts)
        loaded.late += len(result.late)
        loaded.rejected += len(result.rejected)
        loaded.released += result.released
        loaded.stalled |= {queue: str(error) for queue, error in result.stalled}
        for document in result.conflicts:
            self.rejects.add(places.get(id(document), 0), CONFLICT, document)
        for document, error in result.rejected:
            self.rejects.add(places.get(id(document), 0), str(error), document)


@contextmanager
def progress(total: int | None, loaded: Loaded) -> Iterator[Callable[[int], None]]:
    """A bar with the rate on stderr, if that is a terminal; the function that moves it on."""
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
