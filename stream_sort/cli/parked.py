"""`stream-sort parked`: queues that a consumer cannot get past for now."""

from __future__ import annotations

import typer

from stream_sort.cli.arguments import Everything, Match, Queues, queues_to_change, queues_to_show
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import FailedMessages, Function, Queue, Reason, Seq, check_no_consumers, chosen
from stream_sort.cli.output import Json, Yes, tell
from stream_sort.cli.tables import tabled
from stream_sort.errors import NotParked
from stream_sort.model.consumption import Parked

NOUN = "parked queue"

app = typer.Typer(help="Queues that a consumer cannot get past for now.", no_args_is_help=True)


@app.command("list")
@connected
@tabled
def list_parked(connection: Connection, queues: Queues = None, *, match: Match = None, as_json: Json = False) -> None:
    """Show the queues that are parked, the next to be tried first.

    Example: stream-sort parked list --consumer billing --match 'ada-*'
    """
    choice = queues_to_show(queues, match)
    found = chosen(connection.consumer().parked(), choice)
    FailedMessages(connection, NOUN, as_json=as_json).show(found, choice.queues)


@app.command()
@connected
@tabled
def redrive(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queues: Queues = None,
    *,
    match: Match = None,
    everything: Everything = False,
    function: Function = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Try parked queues again now, each at its own place.

    A parked message has all its attempts again; a dead one goes on counting. Exit code 1 if one fails again; what the
    scheduled retry delivers meanwhile is delivered. The stack's process function does it, with its own handler or sink.

    Example: stream-sort parked redrive ada bob --stack orders --yes
    """
    choice = queues_to_change(queues, match, everything=everything)
    if choice.queues:
        found = [one for queue in choice.queues if (one := _parked_still(connection, queue))]
    else:
        found = chosen(connection.consumer().parked(), choice)
    FailedMessages(connection, NOUN, yes=yes, as_json=as_json).redrive(found, function)


@app.command()
@connected
def discard(  # noqa: PLR0913  # each is an option
    connection: Connection, queue: Queue, seq: Seq, *, reason: Reason, yes: Yes = False, as_json: Json = False
) -> None:
    """Give up for good on the message that a queue is parked at.

    The queue then goes on. The message is on record, with the reason: see dead list --discarded.

    Example: stream-sort parked discard ada 7 --reason 'no such account' --yes
    """
    found = _parked(connection, queue, seq)
    FailedMessages(connection, NOUN, yes=yes, as_json=as_json).discard([found], reason)


def _parked_still(connection: Connection, queue: str) -> Parked | None:
    """Return where a queue is parked; None if the consumer got past it, which the scheduled retry may have done."""
    try:
        return _parked(connection, queue)
    except NotParked:
        there = connection.control_store.checkpoints.standing(connection.consumer_name, queue).checkpoint
        if there is None:
            raise
        tell(f"{queue}: not parked: consumer {connection.consumer_name} has done all through seq {there.seq}")
        return None


def _parked(connection: Connection, queue: str, seq: int | None = None) -> Parked:
    """Return where a queue is parked, as it stands now."""
    consumer = connection.consumer()
    for one in consumer.stuck(queue, seq):
        if isinstance(one, Parked):
            return one
    check_no_consumers(connection, [queue])
    raise NotParked(consumer.name, queue, seq)
