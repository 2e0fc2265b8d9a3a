"""What commands say: tables, JSON and errors, the same way everywhere. Control characters are shown, not obeyed."""

from __future__ import annotations

import json
import re
import shlex
import sys
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from stream_sort.core.json_text import dumps
from stream_sort.core.policy import GapPolicy
from stream_sort.errors import InvalidInput, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
# What moves a terminal's cursor, changes its state, breaks the line or turns the direction of the text.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
# A pipe has no width: nothing is folded there, a line is a row.
PIPE_WIDTH = 100_000

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


class Styled(NamedTuple):
    """Text of a table's cell with a style of rich's."""

    text: str
    style: str


Cell = str | int | float | Styled | None


def visible(text: object) -> str:
    r"""A text as it may go to a terminal: what a terminal would obey stands there as \x1b or \u202e."""
    return UNSAFE.sub(lambda match: _escaped(match[0]), str(text))


def shell_word(text: str) -> str:
    """A word as a shell takes it, whatever is in it."""
    if UNSAFE.search(text) is None:
        return shlex.quote(text)
    return "$'" + visible(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def json_line(value: Any) -> str:
    """A value as one line of JSON that a terminal may show."""
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", dumps(jsonable(value)))


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    text = json.dumps(json.loads(dumps(jsonable(value))), indent=2, ensure_ascii=False)
    typer.echo("\n".join(UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", line) for line in text.split("\n")))


def jsonable(value: Any) -> Any:
    """Values of ours as JSON has them: a range as {"from", "through"}, a dataclass as its fields."""
    match value:
        case GapPolicy():
            return str(value)
        case range():
            return {"from": value.start, "through": value.stop - 1}
        case dict():
            return {str(name): jsonable(one) for name, one in value.items()}
        case list() | tuple():
            return [jsonable(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    return value


def say(text: str) -> None:
    """One line of what was asked for."""
    typer.echo(visible(text))


def tell(text: str) -> None:
    """One line beside it, on stderr: progress, warnings, what will be done."""
    typer.echo(visible(text), err=True)


def fail(text: str) -> None:
    """The one line of an error."""
    tell(f"stream-sort: {' '.join(text.split())}")


def confirm(text: str, yes: bool) -> None:  # noqa: FBT001  # the value of --yes
    """Say what will be done and ask; ends the command if the answer is no, or nobody answers."""
    if yes:
        tell(text)
        return
    try:
        if typer.confirm(f"{visible(text)}\nGo on?", err=True):
            return
    except typer.Abort:
        typer.echo("", err=True)
    fail("nothing was changed; --yes goes on without asking")
    raise typer.Exit(FAILED)


@contextmanager
def plain_errors() -> Iterator[None]:
    """An error is one line on stderr and exit code 1, 2 if what was given cannot be used; Ctrl-C is 130."""
    try:
        yield
    except StreamSortError as error:
        fail(str(error))
        raise typer.Exit(BAD_USAGE if isinstance(error, InvalidInput) else FAILED) from None
    except KeyboardInterrupt:
        typer.echo("", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        # Known by its module, so that nothing of AWS is loaded for it.
        if not type(error).__module__.startswith("botocore"):
            raise
        fail(f"AWS: {error}")
        raise typer.Exit(FAILED) from None


def console(*, stderr: bool = False) -> Console:
    """Where tables go: colour only on a terminal and without NO_COLOR, which rich sees to."""
    from rich.console import Console  # noqa: PLC0415  # as all of rich: only who prints a table pays for it

    stream = sys.stderr if stderr else sys.stdout
    return Console(highlight=False, stderr=stderr, width=None if stream.isatty() else PIPE_WIDTH)


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print a table; numbers to the right."""
    console().print(make_table(columns, rows))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table of rich's, of texts that are no markup."""
    from rich import box  # noqa: PLC0415  # as above
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    listed = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(columns):
        is_number = any(isinstance(row[at], int | float) for row in listed)
        table.add_column(Text(visible(name)), justify="right" if is_number else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text(*_cell(cell)) for cell in row))
    return table


def _cell(cell: Cell) -> tuple[str, str]:
    match cell:
        case Styled():
            return visible(cell.text), cell.style
        case int():
            return f"{cell:,}", ""
        case float():
            return f"{cell:,.1f}", ""
    return visible("" if cell is None else cell), ""


def _escaped(character: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    code = ord(character)
    return named.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")  # noqa: PLR2004  # Latin-1
