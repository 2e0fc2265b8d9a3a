"""`stream-sort report`: the state of a stack as one HTML page that needs no network and runs no script."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from stream_sort.cli.arguments import Json, Match, duration_of
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import print_json, say, tell
from stream_sort.cli.page.elements import GENERATOR
from stream_sort.cli.page.page import page_of, traffic_text
from stream_sort.errors import InvalidInput
from stream_sort.insight.report import Findings, ReportBounds, gather
from stream_sort.insight.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
STDOUT = "-"
# The name of who made a page stands in its first bytes.
BEGINNING = 1_000


@connected
def report(  # noqa: PLR0913  # each is an option
    connection: Connection,
    *,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The file; - for stdout.")] = "report.html",
    match: Match = None,
    queues: Annotated[int, typer.Option(min=0, max=100, help="How many queues to look at closely, the worst.")] = 12,
    messages: Annotated[int, typer.Option(min=1, max=5_000, help="How many of the newest messages of each.")] = 200,
    rows: Annotated[int, typer.Option(min=1, help="How many queues to list, the worst.")] = 500,
    period: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="What to count: 30m, 6h or 7d; else what recent messages span."),
    ] = None,
    reads: Annotated[int, typer.Option(min=1, max=100_000, help="Most reads for counting; each has 1,000.")] = 500,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is not a report.")] = False,
    as_json: Json = False,
) -> None:
    """Write the state of all queues as one HTML page: verdict, tables, arrival and release, gaps, lag.

    Arrival and release are counts of all messages of the period; where the reads do not suffice, the page says so. It
    loads nothing and runs nothing; open it, mail it, print it.

    Example: stream-sort report -o report.html
    """
    if out != STDOUT:
        _check_target(Path(out), force=force)
    elif as_json:
        raise InvalidInput("-o - prints the page, --json prints what was written; give one of them")
    bounds = ReportBounds(queues, messages, rows, None if period is None else duration_of(period, "--period"), reads)
    settings = connection.settings
    where = f"{connection.stack.name or ''} {settings.items_table} · {settings.cursor_table}".strip()
    found = gather(connection.sources, match or "*", bounds)
    _deliver(page_of(found, where, connection.command), out, found, as_json=as_json)


def _deliver(page: str, out: str, found: Findings, *, as_json: bool) -> None:
    if out == STDOUT:
        typer.echo(page.encode(), nl=False)
        tell(_summary(found))
        return
    size = _put_page(Path(out), page)
    if as_json:
        told = {"report": str(Path(out).resolve()), "bytes": size, "headline": found.verdict.headline}
        looked = {"looked_at_closely": len(found.histories), "requests": found.overview.requests}
        print_json(told | {"verdict": found.verdict, "period": _period(found)} | looked)
    else:
        say(_summary(found))
        for name, due in found.overview.not_begun.items():
            say(f"consumer {name} has not begun: {due}")
        say(traffic_text(found))
        say(f"{out}: {size / 1000:,.0f} KB; open it in a browser")


def _summary(found: Findings) -> str:
    verdict = found.verdict
    dead = f"{verdict.dead:,} with dead letters, " if verdict.dead else ""
    doubtful = sum(line.in_doubt for line in found.overview.lines)
    perhaps = f", {doubtful:,} in doubt" if doubtful else ""
    return (
        f"{verdict.headline}: {verdict.parked:,} parked, {dead}{verdict.waiting:,} waiting for a seq, "
        f"{verdict.behind:,} not all consumed{perhaps} ({counted(found.overview.requests, 'request')})"
    )


def _period(found: Findings) -> dict[str, float | int | bool]:
    """Return what was counted, for programs; `complete_since` is where the counts begin to be complete."""
    traffic = found.traffic
    told = dict(zip(("arrived", "released", "skipped"), traffic.totals, strict=True))
    whole = {"complete": traffic.is_complete, "complete_since": traffic.complete_since}
    return {"begin": traffic.begin, "end": traffic.end, **told, **whole}


def _check_target(path: Path, *, force: bool) -> None:
    """Raise InvalidInput if a page cannot, or should not, be put there."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it, such as {path / 'report.html'}")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent}; make it, or name another with -o")
    if path.is_file() and not force and not _is_ours(path):
        raise InvalidInput(
            f"{path} is not a report of stream-sort; name another file with -o, or replace it with --force"
        )


def _put_page(path: Path, page: str) -> int:
    """Write the page and return its size; whoever opens the file meanwhile sees the old page or the new one."""
    written = page.encode()
    _usable(path, lambda: _put(path, written))
    return len(written)


def _put(path: Path, written: bytes) -> None:
    if path.exists() and not path.is_file():
        # A pipe or a device: there is nothing to be replaced.
        path.write_bytes(written)
        return
    # What a link leads to is replaced, not the link.
    path = path.resolve()
    beside = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        beside.write_bytes(written)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    def beginning() -> bytes:
        with path.open("rb") as file:
            return file.read(BEGINNING)

    return GENERATOR.encode() in _usable(path, beginning)


def _usable(path: Path, act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}; name another file with -o") from error
