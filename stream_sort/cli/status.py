"""`stream-sort status`: all queues as a table, the worst first; once, or again and again in place."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from stream_sort.cli.arguments import Every, Json, duration_of, shows_queues
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import WIDE, Cell, Styled, console, json_line, print_json, visible
from stream_sort.cli.tables import fitted, tabled
from stream_sort.errors import InvalidInput
from stream_sort.insight.overview import Overview, QueueLine, look
from stream_sort.insight.rows import Choice, require_known
from stream_sort.insight.wording import age, counted, policy_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType


SHORTEST_PAUSE = 0.2


class Extras(NamedTuple):
    """Columns that a table has only where there is something to show."""

    deep: bool
    dead: bool
    rated: bool


@connected
@tabled
@shows_queues
def status(  # noqa: PLR0913  # each is an option
    connection: Connection,
    choice: Choice,
    *,
    limit: Annotated[int, typer.Option(min=0, help="How many queues to show, the worst; 0 for all.")] = 40,
    deep: Annotated[bool, typer.Option("--deep", help="Read the items table, too. One read a queue.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Repeat until Ctrl-C, with rates.")] = False,
    every: Every = "2s",
    as_json: Json = False,
) -> None:
    """Show what every queue is doing, or some, the worst first.

    Those that are parked, then those that wait for a seq, then those with dead letters, then those that are behind.
    Reads each cursor row, checkpoint and dead letter once. Of the items table, it reads a few slots of queues that have
    moved since they began to wait, 100 at most; with --deep the ends of all queues.

    Example: stream-sort status --match "app-*"
    """
    pause = duration_of(every, "--every", least=SHORTEST_PAUSE)
    for queue in choice.queues:
        require_known(connection.sources, queue)
    looks = _looks(connection, choice, deep=deep, every=pause if watch else None)
    if as_json:
        for now in looks:
            _print_lines(now, one_line=watch)
        return
    screen = console()
    if not watch or not screen.is_terminal:
        for now in looks:
            screen.print(_table(now, limit, screen, deep=deep))
        return
    if WIDE.get():
        raise InvalidInput("--watch fits the terminal; leave --wide out, or send the output to a file or a pipe")
    from rich.live import Live  # noqa: PLC0415  # as all imports of commands

    with Live(console=screen, auto_refresh=False, screen=False) as live:
        for now in looks:
            most = min(limit or screen.height, max(1, screen.height - 5))
            live.update(_table(now, most, screen, deep=deep, summary_first=True), refresh=True)


def _looks(connection: Connection, choice: Choice, *, deep: bool, every: float | None) -> Iterator[Overview]:
    before: Overview | None = None
    while True:
        now = look(connection.sources, choice, deep=deep)
        if before is None:
            # Behind the look, which may have met them itself.
            connection.check_names()
        yield now.rated(before)
        before = now
        if every is None:
            return
        sleep(every)


def _print_lines(now: Overview, *, one_line: bool) -> None:
    if one_line:
        typer.echo(json_line(now))
    else:
        print_json(now)


def _table(now: Overview, limit: int, screen: Console, *, deep: bool, summary_first: bool = False) -> RenderableType:
    """Return all that is shown; with the summary first, a small screen cuts off what is least in trouble."""
    from rich.console import Group  # noqa: PLC0415  # as all imports of commands
    from rich.text import Text  # noqa: PLC0415

    lines = now.lines[:limit] if limit else now.lines
    extras = Extras(deep, any(line.dead for line in lines), any(line.rate is not None for line in lines))
    columns = ["queue", "position", *(["highest", "waiting"] if deep else []), "gap age", "policy", "parked"]
    columns += ["dead"] if extras.dead else []
    columns += [f"lag {name}" for name in now.consumers] + (["per second"] if extras.rated else [])
    more = len(now.lines) - len(lines)
    told = now.summary + (f"; {more:,} more {'is' if more == 1 else 'are'} not shown, see --limit" if more else "")
    if doubtful := sum(line.in_doubt for line in now.lines):
        told += (
            f"\n?: {doubtful:,} have moved since they began to wait, and may wait no more. The items of "
            f"{counted(now.settled, 'such queue')}, the longest waits first, were read; --deep reads those of all"
        )
    for line in lines:
        if line.error is not None:
            told += f"\n{line.queue}: {line.error}"
    for name, due in now.not_begun.items():
        told += f"\nconsumer {name} has not begun: {due}"
    for name, error in now.unreadable.items():
        told += f"\nconsumer {name} is left out: {error}"
    rows = [_row(line, now, extras) for line in lines]
    parts = [fitted(columns, rows, screen), Text("\n".join(map(visible, told.split("\n"))))]
    return Group(*(reversed(parts) if summary_first else parts))


def _row(line: QueueLine, now: Overview, extras: Extras) -> list[Cell]:
    style = "red" if line.parked or line.dead or line.error else "yellow" if line.waits else ""
    parked = ", ".join(f"{name} at {one.seq}" for name, one in line.parked.items())
    cells: list[Cell] = [Styled(line.queue, style), line.position]
    cells += [line.highest, line.waiting] if extras.deep else []
    waited = "" if line.gap_age is None else age(line.gap_age) + ("?" if line.in_doubt else "")
    cells += [Styled(waited, style), policy_text(line.policy)]
    cells.append(Styled(parked, style))
    dead = ", ".join(f"{name}: {count:,}" for name, count in line.dead.items())
    cells += [Styled(dead, style)] if extras.dead else []
    cells += [line.lag.get(name, 0) for name in now.consumers]
    return [*cells, line.rate] if extras.rated else cells
