"""What a job has to say at its end: one row for each queue, worst first, as a plain table and as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.errors import SettingsError, shown
from stream_sort.formats.columns import PIPE_WIDTH, Column, cut_end, fit, text_width
from stream_sort.formats.terminal_text import visible, visible_json
from stream_sort.replay.files.storage import Storage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

MOST_QUEUES = 30
WIDEST = 48
MOST_PROBLEMS = 5
BETWEEN = 2
# As wide as a table may be with --wide.
WHOLE = 1_000_000


@dataclass(frozen=True, slots=True)
class JobReport:
    """The outcome of a job. `queues` are rows by column name, worst first; `facts` stand in the JSON only."""

    job: str
    complete: bool
    columns: tuple[str, ...]
    queues: Sequence[Mapping[str, Any]]
    totals: Mapping[str, Any]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def text(self, width: int = PIPE_WIDTH, most: int = MOST_QUEUES) -> str:
        """Return the report for people: the worst queues as a table that wide at most, totals, notes, the verdict."""
        lines = table(self.columns, self.queues[:most], width) if self.queues else []
        if len(self.queues) > most:
            lines.append(f"and {len(self.queues) - most:,} more")
        lines += self._clipped_problems(most)
        told = ", ".join(f"{name.replace('_', ' ')} {shown_cell(value)}" for name, value in self.totals.items())
        lines += ["", told, *map(visible, self.notes)]
        lines.append(f"{self.job}: {self._verdict()}")
        return "\n".join(lines).lstrip("\n") + "\n"

    def _clipped_problems(self, most: int) -> list[str]:
        """Return the problems that their cells cut short, whole: they end with what to do."""
        told = ((row["queue"], row.get("problem") or "") for row in self.queues[:most])
        long = [f"queue {queue!r}: {problem}" for queue, problem in told if len(problem) > WIDEST]
        return ["", *map(visible, long[:MOST_PROBLEMS])] if long else []

    def _verdict(self) -> str:
        if self.facts.get("dry_run"):
            return "a run would " + ("be complete, as far as is known now" if self.complete else "NOT be complete")
        return f"{'complete' if self.complete else 'NOT complete'} ({self.seconds:.1f} s)"

    def document(self) -> dict[str, Any]:
        """Return the report for programs, every queue in it."""
        return {
            "job": self.job,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
            "totals": dict(self.totals),
            **self.facts,
            "notes": list(self.notes),
            "queues": [dict(row) for row in self.queues],
        }

    def write(self, path: str, source: InAws) -> None:
        """Write the JSON to a file, on this machine or on S3, whole or not at all."""
        write_report(self.document(), path, source)


class InAws(Protocol):
    """Whatever says where in AWS it is."""

    @property
    def region(self) -> str | None:
        """The region, if not that of the environment."""

    @property
    def endpoint_url(self) -> str | None:
        """The endpoint, if not AWS's own."""


def write_report(document: Mapping[str, Any], path: str, source: InAws) -> None:
    """Write a report as JSON; S3 is reached as the job's source is."""
    folder, _, name = path.rpartition("/")
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    where = folder or ("/" if path.startswith("/") else ".")
    Storage(where, endpoint_url=source.endpoint_url, region=source.region).write(name, text.encode())


def shown_json(document: Mapping[str, Any]) -> str:
    """Return a report as JSON that a terminal may show."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return "\n".join(map(visible_json, text.split("\n"))) + "\n"


def check_report_file(path: str | None, option: str = "--report") -> None:
    """Raise before hours of work if the report could not be written at the end."""
    if not path or "://" in path:
        return
    if not is_there(path, option, _is_in_a_folder):
        raise SettingsError(f"{option} {path}: its folder is not there, or cannot be written to")
    if is_there(path, option, Path.is_dir):
        raise SettingsError(f"{option} {path} is a folder; name a file")


def _is_in_a_folder(path: Path) -> bool:
    return os.access(path.resolve().parent, os.W_OK)


def is_there(path: str, option: str, ask: Callable[[Path], bool]) -> bool:
    """Return whether a path is what is asked, such as Path.is_dir; SettingsError for a name that nothing can have."""
    try:
        return ask(Path(path))
    except OSError as error:
        raise SettingsError(f"{option} {shown(path)}: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"{option} {shown(path)}: no file can have that name") from None


def width_of(given: argparse.Namespace) -> int:
    """Return how wide a table may be: as the terminal, 120 columns in a pipe, anything with --wide."""
    if given.wide:
        return WHOLE
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def table(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], width: int = PIPE_WIDTH) -> list[str]:
    """Return rows under their column names, numbers to the right, as lines of text no longer than `width`.

    Names and texts are cut. Columns that do not fit even so are left out, and named in a line of their own.
    """
    whole = [
        Column(name.replace("_", " "), [_cell(row.get(name)) for row in rows], is_name=name == "queue")
        for name in columns
    ]
    widths = fit(whole, width, BETWEEN)
    numeric = [all(_is_number(row.get(name)) for row in rows) for name in columns]
    shown = [
        (column.cut(most), most, right) for column, most, right in zip(whole, widths, numeric, strict=True) if most
    ]
    lines = [_line([(column.title, most, right) for column, most, right in shown])]
    lines.append(_line([("-" * most, most, right) for _, most, right in shown]))
    lines += [_line([(column.cells[at], most, right) for column, most, right in shown]) for at in range(len(rows))]
    left_out = [column.title for column, most in zip(whole, widths, strict=True) if not most]
    return (
        [*lines, f"not shown, for want of width: {', '.join(left_out)}; see --wide, or --json"] if left_out else lines
    )


def shown_cell(value: object) -> str:
    """Return a value as it stands in a line: short, numbers with separators."""
    return cut_end(_cell(value), WIDEST)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_gap, value)) or "-"
    return visible(value)


def _gap(pair: Any) -> str:
    """Seqs from and to as they stand in a cell; anything else as it is."""
    if not isinstance(pair, list | tuple):
        return visible(pair)
    return f"{pair[0]}" if pair[0] == pair[-1] else f"{pair[0]}-{pair[-1]}"


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _line(cells: Sequence[tuple[str, int, bool]]) -> str:
    padded = ((" " * (width - text_width(cell)), cell, right) for cell, width, right in cells)
    return (" " * BETWEEN).join(space + cell if right else cell + space for space, cell, right in padded).rstrip()
