"""`stream-sort late`: messages that came after their seqs were skipped; kept, never delivered."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stream_sort.cli.arguments import Match, Queues, queues_to_show
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import Queue, Seq  # noqa: TC001  # typer reads annotations when it runs
from stream_sort.cli.output import Json, json_line, print_json, say
from stream_sort.cli.tables import show_table, tabled
from stream_sort.errors import InvalidInput
from stream_sort.insight.rows import chosen_queues, require_known

app = typer.Typer(help="Messages that came after their seqs were skipped.", no_args_is_help=True)

Search = Annotated[
    int, typer.Option("--search", min=1, metavar="N", help="How many slots to search, from the highest down.")
]


@app.command("list")
@connected
@tabled
def list_late(
    connection: Connection,
    queues: Queues = None,
    *,
    match: Match = None,
    search: Search = 10_000,
    as_json: Json = False,
) -> None:
    """Show the late messages of some queues, or of all.

    At least one request a queue.

    Example: stream-sort late list ada --search 100000
    """
    choice = queues_to_show(queues, match)
    for queue in choice.queues:
        require_known(connection.sources, queue)
    names = chosen_queues(connection.sources, choice)
    found = [_facts(queue, late) for queue in names for late in connection.sorter.late(queue, search)]
    if as_json:
        print_json(found)
    elif found:
        columns = ("queue", "seq", "skipped because", "message")
        show_table(columns, ((one["queue"], one["seq"], one["reason"], json_line(one["message"])) for one in found))
    else:
        say(f"no late messages among the highest {search:,} slots of each queue")


@app.command()
@connected
def show(connection: Connection, queue: Queue, seq: Seq, *, as_json: Json = False) -> None:
    """Show one late message, and why its seq was skipped.

    Example: stream-sort late show ada 7
    """
    slot = connection.sorter.slot(queue, seq)
    if slot is None or slot.late is None:
        there = "nothing" if slot is None else "a tombstone only" if slot.is_tombstone else "a message that is not late"
        raise InvalidInput(f"queue {queue!r}, seq {seq}: there is {there}; see {connection.command('late', 'list')}")
    if as_json:
        print_json({"queue": queue, "seq": seq, "reason": slot.skipped, "message": slot.late})
        return
    say(f"queue {queue}, seq {seq}: came after it was skipped ({slot.skipped}); it is kept and never delivered")
    say(json_line(slot.late))


def _facts(queue: str, late: Any) -> dict[str, Any]:
    return {"queue": queue, "seq": late.seq, "reason": late.reason, "message": late.message}
