"""Tables on the screen: as wide as the terminal, 120 columns in a pipe, or all of it with --wide."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import option, with_options
from stream_sort.cli.output import WIDE, Styled, console, print_json, say, visible
from stream_sort.formats.columns import PIPE_WIDTH, Column, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import Console, RenderableType
    from rich.table import Table

    from stream_sort.cli.output import Cell

# What rich puts between two columns of such a table, and at both of its sides.
BETWEEN, SIDES = 3, 2
# Columns of seqs: without separators, as commands take them.
SEQS = {"seq", "from", "through", "position", "highest", "checkpoint", "reset to"}
WIDE_OPTION = option(
    "wide", Annotated[bool, typer.Option("--wide", help="Cut no column, however wide the table is.")], default=False
)


def tabled(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that prints a table the option --wide; its tables and its console then know of it."""

    @wraps(command)
    def run(*connection: Any, wide: bool = False, **given: Any) -> None:
        before = WIDE.set(wide)
        try:
            command(*connection, **given)
        finally:
            WIDE.reset(before)

    return with_options(run, command, {}, [WIDE_OPTION])


def show_rows(
    facts: Any, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, as_json: bool, nothing: str = ""
) -> None:
    """Print what was asked for: as JSON, for programs, or as a table; or that there is nothing."""
    listed = list(rows)
    if as_json:
        print_json(facts)
    elif listed or not nothing:
        show_table(columns, listed)
    else:
        say(nothing)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table that fits the screen; numbers to the right."""
    screen = console()
    screen.print(fitted(columns, rows, screen))


def fitted(columns: Sequence[str], rows: Iterable[Sequence[Cell]], screen: Console) -> RenderableType:
    """Return a table that fits the screen, or 120 columns where that is a pipe; it says which columns it leaves out.

    The first column is taken for names: cut in the middle. Numbers are to the right, and are never cut.
    """
    from rich.console import Group  # noqa: PLC0415  # as all of rich: only who prints a table pays
    from rich.text import Text  # noqa: PLC0415

    listed = [list(row) for row in rows]
    whole = [
        Column(visible(name), [_text(row[at], is_seq=name in SEQS) for row in listed], is_name=at == 0)
        for at, name in enumerate(columns)
    ]
    widths = [column.natural for column in whole]
    if not WIDE.get():
        widths = fit(whole, (screen.width if screen.is_terminal else PIPE_WIDTH) - SIDES, BETWEEN)
    table = _table({at: whole[at].cut(width) for at, width in enumerate(widths) if width}, listed)
    left_out = [column.title for column, width in zip(whole, widths, strict=True) if not width]
    if not left_out:
        return table
    return Group(table, Text(f"not shown, as the screen is too narrow: {', '.join(left_out)}; see --wide, or --json"))


def _table(columns: Mapping[int, Column], rows: Sequence[Sequence[Cell]]) -> Table:
    """Return a table of rich's, of texts that are no markup."""
    from rich import box  # noqa: PLC0415  # as above
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in columns.items():
        is_number = any(isinstance(row[at], int | float) for row in rows)
        table.add_column(Text(column.title), justify="right" if is_number else "left", no_wrap=True)
    for number, row in enumerate(rows):
        table.add_row(*(Text(column.cells[number], _style(row[at])) for at, column in columns.items()))
    return table


def _text(cell: Cell, *, is_seq: bool) -> str:
    match cell:
        case Styled():
            return visible(cell.text)
        case int():
            return f"{cell}" if is_seq else f"{cell:,}"
        case float():
            return f"{cell:,.1f}"
    return visible("" if cell is None else cell)


def _style(cell: Cell) -> str:
    return cell.style if isinstance(cell, Styled) else ""
