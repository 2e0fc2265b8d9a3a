"""`stream-sort report`: the state of a stack as one HTML page that needs no network and runs no script."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import Match  # noqa: TC001  # typer reads it
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import Json, print_json, say, tell
from stream_sort.errors import InvalidInput, SettingsError
from stream_sort.insight.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.insight.report import Findings
    from stream_sort.insight.wording import CommandText

STDOUT = "-"


@connected
def report(  # noqa: PLR0913  # each is an option
    connection: Connection,
    *,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Where to; - for stdout.")] = "report.html",
    match: Match = None,
    queues: Annotated[int, typer.Option(min=0, max=100, help="How many queues to look at closely, the worst.")] = 12,
    messages: Annotated[int, typer.Option(min=1, max=5_000, help="How many of the newest messages of each.")] = 200,
    rows: Annotated[int, typer.Option(min=1, help="How many queues to list, the worst.")] = 500,
    period: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="What to count: the last 30m, 6h or 7d. By default what recent messages fit."
        ),
    ] = None,
    reads: Annotated[
        int, typer.Option(min=1, max=100_000, help="How many reads to count it in, of 1,000 messages each, at most.")
    ] = 500,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is no report.")] = False,
    as_json: Json = False,
) -> None:
    """Write the state of all queues as one HTML page: verdict, tables, arrival and release, gaps, lag.

    Arrival and release are counts of all messages of the period; where the reads do not suffice, the page says so. It
    loads nothing and runs nothing; open it, mail it, print it. Needs the extra report.

    Example: stream-sort report -o report.html
    """
    from stream_sort.cli.arguments import duration_of  # noqa: PLC0415  # as all imports of commands
    from stream_sort.cli.page.target import check_target  # noqa: PLC0415
    from stream_sort.insight.report import ReportBounds, gather  # noqa: PLC0415

    page_of = _page_of()
    if out != STDOUT:
        check_target(Path(out), force=force)
    elif as_json:
        raise InvalidInput("-o - prints the page, --json prints what was written; give one of them")
    bounds = ReportBounds(queues, messages, rows, None if period is None else duration_of(period, "--period"), reads)
    settings = connection.settings
    where = f"{connection.stack.name or ''} {settings.items_table} · {settings.cursor_table}".strip()
    found = gather(connection.sources, match or "*", bounds)
    _deliver(page_of(found, where, connection.command), out, found, as_json=as_json)


def _deliver(page: str, out: str, found: Findings, *, as_json: bool) -> None:
    from stream_sort.cli.page.target import put_page  # noqa: PLC0415  # as all imports of commands
    from stream_sort.cli.page.wording import traffic_text  # noqa: PLC0415

    if out == STDOUT:
        typer.echo(page.encode(), nl=False)
        tell(_summary(found))
        return
    size = put_page(Path(out), page)
    if as_json:
        told = {"report": str(Path(out).resolve()), "bytes": size, "headline": found.verdict.headline}
        looked = {"looked_at_closely": len(found.histories), "requests": found.overview.requests}
        print_json(told | {"verdict": found.verdict, "period": _period(found)} | looked)
    else:
        say(_summary(found))
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


def _page_of() -> Callable[[Findings, str, CommandText], str]:
    """Return what draws the page; SettingsError without the extra that it needs."""
    # Matplotlib would tell of its caches and of files in the user's home, some of it while it is loaded.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        from stream_sort.cli.page.page import page_of  # noqa: PLC0415  # matplotlib takes a second to load
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise SettingsError(
            "report needs matplotlib: pip install '.[cli,report]' in its folder, or make setup there"
        ) from error
    return page_of
