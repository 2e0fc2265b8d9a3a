"""`stream-sort doctor`: checks a stack end to end, and says what to do about what it finds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import Json, Match, duration_of
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import FAILED, console, print_json, visible
from stream_sort.errors import TableNotFound
from stream_sort.insight.checkup.aws import Aws
from stream_sort.insight.checkup.examination import CheckupTerms, Examined, examine
from stream_sort.local.settlement import STACK
from stream_sort.model.message import KeyNames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.text import Text

    from stream_sort.insight.checkup.finding import Checkup, Finding

STYLES = {"OK": "green", "WARN": "yellow", "FAIL": "bold red", "not checked": "dim"}
LEVEL_WIDTH, AREA_WIDTH = 13, 14
USUAL_GAP_AGE = 3_600.0


@connected
def doctor(
    connection: Connection,
    *,
    match: Match = None,
    old_gap: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How old a gap may get, such as 1h; by default as the alarm.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check tables, functions, mappings, roles, schedules, alarms and queues; exit code 1 if one of them fails.

    Changes nothing, and does not scan the items table: it reads two slots of each queue. What you may not read is said
    and left out. Without a stack, only what tables tell is checked.

    Example: stream-sort doctor --stack orders
    """
    wanted = None if old_gap is None else duration_of(old_gap, "--old-gap")
    usual = float(connection.stack.parameters.get("GapAgeAlarm") or USUAL_GAP_AGE)
    found = examine(examined_by(connection), CheckupTerms(match or "*", usual if wanted is None else wanted))
    if as_json:
        print_json({"findings": found.findings, "counts": found.counts})
    else:
        _show(found)
    if found.failed:
        raise typer.Exit(FAILED)


def examined_by(connection: Connection) -> Examined:
    """Return what a connection leads to, for a checkup."""
    from stream_sort.stores.dynamodb import tables  # noqa: PLC0415  # loads boto3

    settings = connection.settings
    names = tables.TableNames(
        settings.items_table, settings.cursor_table, KeyNames(settings.queue_key, settings.seq_key)
    )
    wanted = {"items": tables.items_table(names), "cursor": tables.cursor_table(names)}
    if connection.control is not None:
        wanted["control"] = tables.control_table(connection.control)
    return Examined(
        aws_of(connection), wanted, tables.OPTIONAL_INDEXES, partial(_described, connection), lambda: connection.sources
    )


def aws_of(connection: Connection) -> Aws:
    """Return the AWS of a connection, and what its stack says of itself."""
    from stream_sort.aws.asking import AwsReader  # noqa: PLC0415  # loads boto3

    place, stack = connection.place, connection.stack
    reader, is_local = AwsReader(place), place.key is not None
    return Aws(
        reader.ask,
        reader.command,
        connection.command,
        lambda: place.where,
        stack=STACK if is_local else stack.name,
        is_local=is_local,
        parameters=stack.parameters,
        outputs=stack.outputs,
    )


def _described(connection: Connection, table: str) -> Mapping[str, Any] | None:
    """Describe a table, None if there is none. Asked as a sorter asks, in whose words AWS is out of reach."""
    from stream_sort.stores.dynamodb.calls import Calls  # noqa: PLC0415  # loads boto3

    settings = connection.settings
    calls = Calls(connection.place.dynamodb(settings), settings.deadline)
    try:
        described: Mapping[str, Any] = calls("describe_table", table, TableName=table).body["Table"]
    except TableNotFound:
        return None
    return described


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
