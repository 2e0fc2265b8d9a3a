"""`stream-sort put | read | tail`: messages in, and out again in order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import Every, Json, Queue, duration_of
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.loading import Loader, progress
from stream_sort.cli.message_file import Rejects, entries, opened
from stream_sort.cli.output import FAILED, json_line, print_json, say, tell
from stream_sort.errors import InvalidInput, QueueNotFound, StreamSortError
from stream_sort.insight.following import Follower
from stream_sort.insight.rows import require_known
from stream_sort.insight.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.insight.sources import Sources
    from stream_sort.model.records import Cursor

EARLIEST, LATEST = "earliest", "latest"
SHORTEST_PAUSE = 0.1

JsonLines = Annotated[bool, typer.Option("--json", help="Messages are JSON lines in any case.")]


@connected
def put(
    connection: Connection,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines, or a JSON array; - for stdin.")],
    *,
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For refused messages; else FILE.rejects.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Put the messages of a file, and release what they make contiguous; exit code 1 if any was refused.

    Run again, it goes on: what is stored already is counted as a duplicate. What is refused from stdin, and is nowhere
    else, never replaces a file: the next free name is taken, such as stdin-2.rejects. If put stops early, what it has
    read from stdin and not stored is kept there as well.

    Example: stream-sort put messages.jsonl
    """
    kept = Rejects.of(file, rejects)
    loader = Loader(connection.sorter, kept)
    began = monotonic()
    try:
        with opened(file) as (source, size), progress(size, loader.loaded) as report:
            loader.load(entries(source, file), report)
    except KeyboardInterrupt:
        last = f". The last that was refused: {loader.rejects.last}" if loader.rejects.last else ""
        # Of what was in hand nobody knows how much is stored.
        tell(f"stopped after at least {counted(loader.loaded.total, 'message')}{loader.how_to_go_on}{last}")
        raise
    except StreamSortError:
        if loader.loaded.total:
            _show_loaded(connection, loader, monotonic() - began, as_json=as_json)
        raise
    _show_loaded(connection, loader, monotonic() - began, as_json=as_json)
    if not loader.loaded.total:
        tell(f"{'stdin' if file == '-' else file} holds no message")
    if loader.loaded.refused or loader.loaded.stalled:
        raise typer.Exit(FAILED)


@connected
def read(
    connection: Connection,
    queue: Queue,
    *,
    after: Annotated[int | None, typer.Option(help="Begin after this seq.")] = None,
    through: Annotated[int | None, typer.Option(help="End with this seq; with the position if not given.")] = None,
    as_json: JsonLines = False,
) -> None:
    """Print what is released in a queue, in order, as JSON lines.

    Example: stream-sort read ada --after 41 --through 99
    """
    _ = as_json
    messages = connection.sorter.read(queue, after, through)
    row = connection.sources.cursors.get(queue)
    if after is None and row is not None and row.floor is not None:
        _report_trim(queue, row.start)
    for message in messages:
        typer.echo(json_line(message))


@connected
def tail(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queues: Annotated[list[str] | None, typer.Argument(metavar="[QUEUE]", help="Which queues; else all.")] = None,
    *,
    since: Annotated[str, typer.Option(metavar="SEQ", help="earliest, latest, or the first seq to show.")] = LATEST,
    every: Every = "1s",
    once: Annotated[bool, typer.Option("--once", help="Show what is there and end.")] = False,
    as_json: JsonLines = False,
) -> None:
    """Print messages as they are released, each queue in order, as JSON lines, until Ctrl-C.

    Example: stream-sort tail ada bob --since earliest --once
    """
    _ = as_json
    names = tuple(dict.fromkeys(queues or ()))
    begin, pause = _beginning(since), duration_of(every, "--every", least=SHORTEST_PAUSE)
    for name in names:
        _expect(connection.sources, name, once=once)
    follower = Follower(connection.sources, connection.sorter.read, names, begin, _report_trim)
    pending = _announcement(names, since)
    while True:
        for message in follower.look():
            typer.echo(json_line(message))
        if once:
            return
        if pending:
            tell(pending)
            pending = ""
        sleep(pause)


def _report_trim(queue: str, through: int) -> None:
    tell(f"{queue}: seqs up to {through} are trimmed and not shown")


def _announcement(names: tuple[str, ...], since: str) -> str:
    begin = {LATEST: "released from now on", EARLIEST: "from the first one on"}.get(since, f"from seq {since} on")
    return f"{', '.join(names) or 'all queues'}: messages {begin}; Ctrl-C ends it"


def _expect(sources: Sources, queue: str, *, once: bool) -> None:
    """Check that a queue is there: the name may be a slip of the finger, or it may begin while we look."""
    try:
        require_known(sources, queue)
    except QueueNotFound:
        if once:
            raise
        tell(f"{queue}: there is no such queue yet; it is shown once it begins")


def _beginning(since: str) -> Callable[[Cursor, bool], int]:
    """Return after which seq a queue is shown; of one that begins while we look, nothing is left out."""
    if since == EARLIEST:
        return lambda row, _: row.start
    if since == LATEST:
        return lambda row, is_first_look: row.position if is_first_look else row.start
    try:
        first = int(since)
    except ValueError:
        raise InvalidInput(f"--since {since!r}: must be earliest, latest or a seq") from None
    return lambda _, __: first - 1


def _show_loaded(connection: Connection, loader: Loader, seconds: float, *, as_json: bool) -> None:
    loaded, first = loader.loaded, loader.rejects.first
    refused = str(loader.rejects.path) if first else None
    if as_json:
        print_json(asdict(loaded) | {"seconds": round(seconds, 3), "rejects": refused})
        return
    rate = loaded.total / seconds if seconds > 0 else 0.0
    say(
        f"{loaded.accepted:,} accepted, {counted(loaded.duplicates, 'duplicate')}, "
        f"{counted(loaded.conflicts, 'conflict')}, "
        f"{loaded.late:,} late, {loaded.rejected:,} rejected; {loaded.released:,} released; {rate:,.0f} a second"
    )
    if loaded.first_conflicts:
        more = loaded.conflicts - len(loaded.first_conflicts)
        named = "; ".join(map(str, loaded.first_conflicts)) + (f" and {more:,} more" if more else "")
        plural = "" if loaded.conflicts == 1 else "s"
        tell(f"conflict{plural}, another message is stored there and stays: {named}")
    if loaded.late:
        kept = connection.command("late", "list")
        tell(f"late: their seqs were skipped; they are kept, and never delivered: see {kept}")
    if first:
        tell(f"refused messages and the reasons: {refused}; the first, {first.unit} {first.place}: {first.reason}")
    for queue, error in loaded.stalled.items():
        tell(f"{queue}: stored, but not released yet: {error}")
