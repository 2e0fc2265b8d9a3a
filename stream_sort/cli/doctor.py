"""`stream-sort doctor`: checks a stack end to end, and says what to do about what it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.choice import Match  # noqa: TC001  # typer reads it
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.moments import duration_of
from stream_sort.cli.output import FAILED, Json, console, print_json, visible

if TYPE_CHECKING:
    from rich.text import Text

    from stream_sort.cli.checkup.finding import Checkup, Finding

STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red", "not checked": "dim"}
LEVEL_WIDTH, AREA_WIDTH = 13, 14
USUAL_GAP_AGE = 3_600.0


def add_commands(app: typer.Typer) -> None:
    """Make it a command of the command line."""
    app.command()(connected(doctor))


def doctor(
    connection: Connection,
    *,
    match: Match = None,
    old_gap: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="How long a gap may be open, such as 1h; else as the stack's alarm has it."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check tables, functions, mappings, roles, schedules, alarms and queues; exit code 1 if one of them fails.

    Changes nothing, and does not scan the items table: it reads two slots of each queue. What you may not read is said
    and left out. Without a stack, only what tables tell is checked.

    Example: stream-sort doctor --stack orders
    """
    from stream_sort.cli.checkup.examination import CheckupTerms, examine  # noqa: PLC0415  # as all imports of commands

    wanted = None if old_gap is None else duration_of(old_gap, "--old-gap")
    usual = float(connection.stack.parameters.get("GapAgeAlarm") or USUAL_GAP_AGE)
    found = examine(connection, CheckupTerms(match or "*", usual if wanted is None else wanted))
    if as_json:
        print_json({"findings": found.findings, "counts": found.counts})
    else:
        _show(found)
    if found.failed:
        raise typer.Exit(FAILED)


def _show(found: Checkup) -> None:
    screen = console()
    for one in found.findings:
        # Not folded: a command that is cut in two cannot be copied.
        screen.print(_line(one), soft_wrap=True)
    screen.print(found.summary, markup=False)


def _line(one: Finding) -> Text:
    from rich.text import Text  # noqa: PLC0415  # as all imports of commands

    text = Text(f"{one.level:<{LEVEL_WIDTH}}", style=STYLES[one.level])
    text.append(f"{one.area:<{AREA_WIDTH}}{visible(one.text)}", style="default")
    if one.remedy:
        text.append(f"\n{' ' * LEVEL_WIDTH}-> {visible(one.remedy)}", style="default")
    return text
