"""The options and arguments that several commands have, and how what people type is read."""

from __future__ import annotations

import inspect
import re
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.errors import InvalidInput, shown
from stream_sort.insight.rows import Choice
from stream_sort.model.durations import seconds_in, seconds_of
from stream_sort.model.message import check_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

SEQS = re.compile(r"(-?[0-9]{1,20})(?:(?:-|\.\.)(-?[0-9]{1,20}))?")

Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.", show_default=False)]
Seq = Annotated[int, typer.Argument(metavar="SEQ", help="The place of the message in it.", show_default=False)]
Queues = Annotated[list[str] | None, typer.Argument(metavar="QUEUE", help="The queues.")]
Match = Annotated[str | None, typer.Option("--match", metavar="PATTERN", help="Queues by a pattern: 'ada-*'.")]
Everything = Annotated[bool, typer.Option("--all", help="All queues.")]
NoConsumers = Annotated[bool, typer.Option("--no-consumers", help="No control table: nobody consumes these queues.")]
Every = Annotated[str, typer.Option(metavar="DURATION", help="How often to look: 500ms, 5s, 1m.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Return an option that a decorator adds to commands."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


NAMED = inspect.Parameter("queues", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Queues)
MATCHED, ALL = option("match", Match), option("everything", Everything, default=False)


def with_options(
    run: Callable[..., None],
    command: Callable[..., None],
    instead: Mapping[str, Sequence[inspect.Parameter]],
    beside: Iterable[inspect.Parameter] = (),
) -> Callable[..., None]:
    """Give `run` the options of a command: some in place of its parameters of these names, some beside them."""
    own = inspect.signature(command, eval_str=True)
    kept = [one for name, parameter in own.parameters.items() for one in instead.get(name, (parameter,))]
    parameters = [*kept, *beside]
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def changes_queues(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command name the queues that it changes, one way or the other; it gets them as `choice`."""

    @wraps(command)
    def run(connection: Any, *, queues: Any, match: Any, everything: Any, **given: Any) -> None:
        command(connection, queues_to_change(queues, match, everything=everything), **given)

    return with_options(run, command, {"choice": (NAMED, MATCHED, ALL)})


def shows_queues(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command name the queues that it shows, else all; it gets them as `choice`."""

    @wraps(command)
    def run(connection: Any, *, queues: Any, match: Any, **given: Any) -> None:
        command(connection, queues_to_show(queues, match), **given)

    return with_options(run, command, {"choice": (NAMED, MATCHED)})


def queues_to_change(queues: Sequence[str] | None, match: str | None, *, everything: bool) -> Choice:
    """Return the queues that a command is to change: named, by a pattern, or all; exactly one of the three."""
    if bool(queues) + (match is not None) + everything != 1:
        raise InvalidInput("which queues? Give names, --match PATTERN or --all: one of the three")
    return Choice(tuple(dict.fromkeys(map(check_queue, queues or ()))), match)


def queues_to_show(queues: Sequence[str] | None, match: str | None) -> Choice:
    """Return the queues that a command is to show: all, if none are named."""
    return queues_to_change(queues, match, everything=not queues and match is None)


def seqs_of(text: str) -> range:
    """Return the seqs of an argument, such as 7 or 2-5; InvalidInput if it is none."""
    match = SEQS.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text!r} is not a seq; give one, such as 7, or a range, such as 2-5")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise InvalidInput(f"{text!r} ends before it begins")
    return range(first, last + 1)


def timestamp_of(text: str) -> float:
    """Return the seconds since the epoch of an ISO-8601 time; it must name its time zone, which nobody could guess."""
    try:
        told = datetime.fromisoformat(text)
        if told.tzinfo is not None:
            return told.timestamp()
    except (ValueError, OverflowError):
        problem = f"{shown(text)} is not a time; write it as 2026-11-01T12:00Z or 2026-11-01T12:00+01:00"
        if seconds_in(text):
            problem += f"; for a time span: --by-duration {text}"
        raise InvalidInput(problem) from None
    whole = told.isoformat(timespec="auto" if told.second or told.microsecond else "minutes")
    raise InvalidInput(f"{shown(text)} has no time zone; write it as {whole}Z for UTC, or with an offset as +01:00")


def duration_of(text: str, option: str, *, least: float = 0.0) -> float:
    """Return the seconds of an option's value, such as 90s, 15m or 2h; InvalidInput if it is none, or too short."""
    try:
        seconds = seconds_of(text)
    except InvalidInput as error:
        raise InvalidInput(f"{option} {error}") from None
    if seconds < least:
        raise InvalidInput(f"{option} {shown(text)} is too short; give at least {least * 1_000:g}ms")
    return seconds


def amount_in(unit: float, text: str, option: str) -> float:
    """Return an option's value in a unit of its own: a plain number is in that, a duration is turned into it."""
    try:
        return float(text)
    except ValueError:
        return duration_of(text, option) / unit
