"""`stream-sort open | recover`: where a queue starts, and its cursor row when that is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import Json, NoConsumers, Queue, Yes
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import answer, confirm

if TYPE_CHECKING:
    from stream_sort.upkeep.recoverer import Recovery

FirstSeq = Annotated[int, typer.Option("--first-seq", metavar="SEQ", help="The first there will be.")]
Position = Annotated[int | None, typer.Option("--position", metavar="SEQ", help="Where it was, if no consumer knows.")]


@connected
def open_queue(
    connection: Connection, queue: Queue, *, first_seq: FirstSeq, yes: Yes = False, as_json: Json = False
) -> None:
    """Let a queue start elsewhere, before anything is released in it; refuses to leave a stored message behind.

    What comes for a lower seq afterwards is refused.

    Example: stream-sort open ada --first-seq 1000 --yes
    """
    confirm(f"{queue}: start at seq {first_seq}; messages for lower seqs are refused from then on", yes)
    done = connection.sorter.open(queue, first_seq=first_seq)
    facts = {"queue": queue, "first_seq": first_seq, "released": len(done), "position": done.new}
    text = f"{queue}: starts at seq {first_seq}; {len(done):,} released, position {done.new}"
    answer(facts, text, as_json=as_json)


@connected
def recover(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: Queue,
    *,
    position: Position = None,
    no_consumers: NoConsumers = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Put back the lost cursor row of a queue where its furthest consumer stands, and release what follows.

    Moves no row that is there. Refuses to pass over what a consumer has not done. The queue's own gap policy was on the
    row: set it again, see stream-sort policy.

    Example: stream-sort recover ada --yes
    """
    control = connection.control_unless(no_consumers)
    sorter = connection.sorter
    planned = sorter.recover(queue, control_table=control, position=position, dry_run=True)
    confirm(_plan(connection, planned), yes)
    done = sorter.recover(queue, control_table=control, position=position)
    text = f"{queue}: cursor row put back at {done.restored}; released through seq {done.position}"
    answer(done, text, as_json=as_json)


def _plan(connection: Connection, planned: Recovery) -> str:
    told = f"{planned.queue}: put the cursor row back at position {planned.restored}, then release what follows"
    if planned.floor is not None:
        told += f"; all through seq {planned.floor} counts as trimmed, and is refused if it comes"
    elif planned.first_seq != connection.settings.first_seq:
        told += f"; it starts at seq {planned.first_seq}, and what is lower is refused if it comes"
    return f"{told}; its own gap policy is lost; until you set it again, the default applies: {planned.policy}"
