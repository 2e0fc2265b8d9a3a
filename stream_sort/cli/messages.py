"""`stream-sort put | read | tail`: messages in, and out again in order."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import FAILED, Json, json_line, print_json, say, tell
from stream_sort.core.message import check_queue
from stream_sort.errors import InvalidInput, QueueNotFound, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.cli.loading import Loaded
    from stream_sort.core.records import Cursor

EARLIEST, LATEST = "earliest", "latest"

JsonLines = Annotated[bool, typer.Option("--json", help="Messages are JSON lines in any case.")]


def add_commands(app: typer.Typer) -> None:
    """Make them commands of the command line."""
    for command in COMMANDS:
        app.command()(connected(command))


def put(
    connection: Connection,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, or a JSON array; - for stdin.")],
    *,
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where refused messages go; FILE.rejects if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Put the messages of a file, and release what they make contiguous; exit code 1 if any was refused.

    Run again, it goes on: what is stored already is counted as a duplicate.

    Example: stream-sort put messages.jsonl
    """
    from stream_sort.cli.loading import Loader, Rejects, progress  # noqa: PLC0415  # as all imports of commands
    from stream_sort.cli.message_file import entries, is_file, opened  # noqa: PLC0415

    kept = rejects or Path("stdin.rejects" if file == "-" else f"{file}.rejects")
    if is_file(file, kept):
        raise InvalidInput(f"--rejects {kept}: that is the file which is put; give another")
    loader = Loader(connection.sorter, Rejects(kept))
    began = time.monotonic()
    try:
        with opened(file) as (source, size), progress(size, loader.loaded) as report:
            loader.load(entries(source, file), report)
    except KeyboardInterrupt:
        last = f". The last that was refused: {loader.rejects.last}" if loader.rejects.last else ""
        tell(f"stopped after {loader.loaded.total:,} messages; run it again to go on{last}")
        raise
    except StreamSortError:
        if loader.loaded.total:
            _show_loaded(loader.loaded, time.monotonic() - began, kept, as_json=as_json)
        raise
    _show_loaded(loader.loaded, time.monotonic() - began, kept, as_json=as_json)
    if loader.loaded.refused or loader.loaded.stalled:
        raise typer.Exit(FAILED)


def read(
    connection: Connection,
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")],
    *,
    after: Annotated[int | None, typer.Option(help="Begin after this seq.")] = None,
    through: Annotated[int | None, typer.Option(help="End with this seq; with the position if not given.")] = None,
    as_json: JsonLines = False,
) -> None:
    """Print what is released in a queue, in order, as JSON lines.

    Example: stream-sort read ada --after 41 --through 99
    """
    _ = as_json
    row = connection.sorter.stores.cursors.get(check_queue(queue))
    if row is None:
        raise QueueNotFound(queue)
    if after is None and row.floor is not None:
        tell(f"{queue}: seqs up to {row.start} are trimmed and not shown")
    for message in connection.sorter.read(queue, after, through):
        typer.echo(json_line(message))


def tail(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queues: Annotated[list[str] | None, typer.Argument(metavar="[QUEUE]", help="Which queues; else all.")] = None,
    *,
    since: Annotated[str, typer.Option(metavar="SEQ", help="earliest, latest, or the first seq to show.")] = LATEST,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How often to look.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show what is there and end.")] = False,
    as_json: JsonLines = False,
) -> None:
    """Print messages as they are released, each queue in order, as JSON lines, until Ctrl-C.

    Example: stream-sort tail ada bob --since earliest --once
    """
    from stream_sort.cli.following import Follower  # noqa: PLC0415  # as all imports of commands

    _ = as_json
    follower = Follower(connection.sorter, tuple(dict.fromkeys(queues or ())), _beginning(since))
    while True:
        for message in follower.look():
            typer.echo(json_line(message))
        if once:
            return
        time.sleep(every)


def _beginning(since: str) -> Callable[[Cursor, bool], int]:
    """After which seq a queue is shown; of one that begins while we look, nothing is left out."""
    if since == EARLIEST:
        return lambda row, _: row.start
    if since == LATEST:
        return lambda row, is_first_look: row.position if is_first_look else row.start
    try:
        first = int(since)
    except ValueError:
        raise InvalidInput(f"--since {since!r}: must be earliest, latest or a seq") from None
    return lambda _, __: first - 1


def _show_loaded(loaded: Loaded, seconds: float, rejects: Path, *, as_json: bool) -> None:
    refused = str(rejects) if loaded.refused else None
    if as_json:
        print_json(asdict(loaded) | {"seconds": round(seconds, 3), "rejects": refused})
        return
    rate = loaded.total / seconds if seconds > 0 else 0.0
    say(
        f"{loaded.accepted:,} accepted, {loaded.duplicates:,} duplicates, {loaded.conflicts:,} conflicts, "
        f"{loaded.late:,} late, {loaded.rejected:,} rejected; {loaded.released:,} released; {rate:,.0f} a second"
    )
    if refused is not None:
        tell(f"refused messages and the reasons: {refused}")
    for queue, error in loaded.stalled.items():
        tell(f"{queue}: stored, but not released yet: {error}")


COMMANDS = (put, read, tail)
