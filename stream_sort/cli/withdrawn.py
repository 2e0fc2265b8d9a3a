"""`stream-sort withdrawn`: messages that were taken out of their slots; kept, never delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import Match, Queues, queues_to_show
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import Queue  # noqa: TC001  # typer reads annotations when it runs
from stream_sort.cli.output import Json, json_line, print_json, say
from stream_sort.cli.tables import show_table, tabled
from stream_sort.errors import InvalidInput
from stream_sort.insight.rows import Choice, cursor_rows
from stream_sort.insight.wording import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.withdrawal import Withdrawal

app = typer.Typer(help="Messages that were taken out of their slots.", no_args_is_help=True)

Number = Annotated[
    int, typer.Argument(metavar="NUMBER", help="Its number, as list shows it; or its seq.", show_default=False)
]


@app.command("list")
@connected
@tabled
def list_withdrawn(
    connection: Connection, queues: Queues = None, *, match: Match = None, as_json: Json = False
) -> None:
    """Show what was withdrawn from some queues, or from all.

    Reads each cursor row once, and the items table for the queues from which something was withdrawn.

    Example: stream-sort withdrawn list ada
    """
    found = list(_withdrawn(connection, queues_to_show(queues, match)))
    if as_json:
        print_json([_told(one) for one in found])
    elif found:
        columns = ("queue", "number", "seq", "withdrawn", "reason", "message")
        show_table(
            columns,
            ((one.queue, one.number, one.seq, moment(one.at), one.reason, json_line(one.message)) for one in found),
        )
    else:
        say("nothing was withdrawn")


@app.command()
@connected
def show(connection: Connection, queue: Queue, number: Number, *, as_json: Json = False) -> None:
    """Show one withdrawn message, as it was stored, and why it was withdrawn.

    A number that is no withdrawal's is taken for a seq.

    Example: stream-sort withdrawn show ada 1
    """
    one = _chosen(connection, queue, number)
    if as_json:
        print_json(_told(one))
        return
    say(f"queue {queue}, seq {one.seq}: withdrawn at {moment(one.at)} ({one.reason}); it is kept and never delivered")
    say(json_line(one.message))


def _chosen(connection: Connection, queue: str, number: int) -> Withdrawal:
    """Return the withdrawal of that number, else the only one of that seq."""
    kept = list(connection.sorter.withdrawn(queue))
    found = [one for one in kept if one.number == number] or [one for one in kept if one.seq == number]
    if not found:
        raise InvalidInput(f"queue {queue!r} has no withdrawal {number}; see {connection.command('withdrawn', 'list')}")
    if len(found) > 1:
        numbers = " and ".join(str(one.number) for one in found)
        raise InvalidInput(
            f"seq {number} of queue {queue!r} was withdrawn more than once: as number {numbers}; give one of these"
        )
    return found[0]


def _withdrawn(connection: Connection, choice: Choice) -> Iterator[Withdrawal]:
    for queue in choice.queues:
        yield from connection.sorter.withdrawn(queue)
    if not choice.queues:
        for row in cursor_rows(connection.sources):
            if row.withdrawals and choice.takes(row.queue):
                yield from connection.sorter.withdrawn(row.queue)


def _told(one: Withdrawal) -> dict[str, Any]:
    return {
        "queue": one.queue,
        "number": one.number,
        "seq": one.seq,
        "reason": one.reason,
        "at": one.at,
        "message": one.message,
    }
