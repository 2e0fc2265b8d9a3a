"""What a job has to say at its end: one row for each queue, worst first, as a plain table and as JSON."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.formats.columns import PIPE_WIDTH, Column, cut_end, fit, text_width
from stream_sort.formats.terminal_text import visible, visible_json
from stream_sort.replay.files.storage import Storage

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

MOST_QUEUES = 30
WIDEST = 48
MOST_PROBLEMS = 5
# Notes of one kind that are said.
SOME = 5
BETWEEN = 2
# As wide as a table may be with --wide.
WHOLE = 1_000_000


@dataclass(frozen=True, slots=True)
class JobReport:
    """The outcome of a job. `queues` are rows by column name, worst first; `facts` stand in the JSON only.

    `complete` is None where nothing was to be done. `head` is said before the totals. `wire` is the JSON of a job
    whose users know another form; `worst` is said of the worst queue where people get no more than a line.
    """

    job: str
    complete: bool | None
    columns: tuple[str, ...]
    queues: Sequence[Mapping[str, Any]]
    totals: Mapping[str, Any]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    head: tuple[str, ...] = ()
    wire: Mapping[str, Any] | None = None
    worst: str = ""

    def text(self, width: int = PIPE_WIDTH, most: int = MOST_QUEUES) -> str:
        """Return the report for people: the worst queues as a table that wide at most, totals, notes, the verdict."""
        lines = table(self.columns, self.queues[:most], width) if self.queues else []
        if len(self.queues) > most:
            lines.append(f"and {len(self.queues) - most:,} more")
        lines += self._clipped_problems(most)
        told = ", ".join(f"{name.replace('_', ' ')} {shown_cell(value)}" for name, value in self.totals.items())
        lines += ["", *map(visible, self.head), told, *map(visible, self.notes), *self._verdict()]
        return "\n".join(lines).lstrip("\n") + "\n"

    def document(self) -> dict[str, Any]:
        """Return the report for programs, every queue in it."""
        if self.wire is not None:
            return {"job": self.job, **self.wire}
        return {
            "job": self.job,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
            "totals": dict(self.totals),
            **self.facts,
            "notes": list(self.notes),
            "queues": [dict(row) for row in self.queues],
        }

    def shown(self, given: argparse.Namespace) -> str:
        """Return the report as it is printed: as text, or as JSON that a terminal may show."""
        if not given.json:
            return self.text(_width_of(given))
        text = json.dumps(self.document(), indent=2, ensure_ascii=False)
        return "\n".join(map(visible_json, text.split("\n"))) + "\n"

    def write(self, path: str, given: argparse.Namespace) -> None:
        """Write the JSON to a file, whole or not at all; S3 is reached as the job's source is."""
        folder, _, name = path.rpartition("/")
        text = json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n"
        where = folder or ("/" if path.startswith("/") else ".")
        Storage(where, endpoint_url=given.endpoint_url, region=given.region).write(name, text.encode())

    def _clipped_problems(self, most: int) -> list[str]:
        """Return the problems that their cells cut short, whole: they end with what to do."""
        told = ((row["queue"], row.get("problem") or "") for row in self.queues[:most])
        long = [f"queue {queue!r}: {problem}" for queue, problem in told if len(problem) > WIDEST]
        return ["", *map(visible, long[:MOST_PROBLEMS])] if long else []

    def _verdict(self) -> list[str]:
        if self.complete is None:
            return []
        if self.facts.get("dry_run"):
            known = "a run would " + ("be complete, as far as is known now" if self.complete else "NOT be complete")
            return [f"{self.job}: {known}"]
        return [f"{self.job}: {'complete' if self.complete else 'NOT complete'} ({self.seconds:.1f} s)"]


def some_notes(told: Sequence[str], more: str, most: int = SOME) -> tuple[str, ...]:
    """Return a few notes, and how many others there are: `more` says of what, with a place for the number."""
    return (*told[:most], f"and {more.format(f'{len(told) - most:,}')}") if len(told) > most else tuple(told)


def _width_of(given: argparse.Namespace) -> int:
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
