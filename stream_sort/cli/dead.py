"""`stream-sort dead`: messages that a consumer gave up on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import Everything, Match, Queues, queues_to_change, queues_to_show
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import FailedMessages, Function, Queue, Reason, Seq, check_no_consumers, chosen
from stream_sort.cli.output import Json, Yes, json_line, print_json, say
from stream_sort.cli.tables import tabled
from stream_sort.errors import NotParked
from stream_sort.insight.rows import chosen_queues
from stream_sort.insight.wording import counted, moment
from stream_sort.model.consumption import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.insight.rows import Choice

NOUN, DISCARDED = "dead letter", "discarded message"

HELP = "Messages that a consumer gave up on. What could not even be stored: stream-sort dead-letters."

app = typer.Typer(help=HELP, no_args_is_help=True)

OneQueue = Annotated[str | None, typer.Argument(metavar="QUEUE", help="The queue.", show_default=False)]
OneSeq = Annotated[int | None, typer.Argument(metavar="SEQ", help="Only this message of it.", show_default=False)]


@app.command("list")
@connected
@tabled
def list_dead(
    connection: Connection,
    queues: Queues = None,
    *,
    match: Match = None,
    discarded: Annotated[
        bool, typer.Option("--discarded", help="What was given up for good, and why; a read a queue.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the dead letters, the oldest first.

    With --discarded, what was given up for good instead, parked messages among it, with the reason.

    Example: stream-sort dead list --consumer billing
    """
    choice = queues_to_show(queues, match)
    if discarded:
        found, noun = list(_discarded(connection, choice)), DISCARDED
    else:
        found, noun = chosen(connection.consumer().dead_letters(), choice), NOUN
    FailedMessages(connection, noun, as_json=as_json).show(found, choice.queues)


@app.command()
@connected
def show(connection: Connection, queue: Queue, seq: Seq, *, as_json: Json = False) -> None:
    """Show one dead letter, discarded or not, with its message.

    Example: stream-sort dead show ada 7
    """
    letter = _letter_on_record(connection, queue, seq)
    slot = connection.sorter.slot(queue, seq)
    message = None if slot is None else slot.document
    if as_json:
        print_json(FailedMessages(connection, NOUN).facts(letter) | {"message": message})
        return
    fate = f"dead for consumer {connection.consumer_name} since {moment(letter.since)}"
    if letter.discarded is not None:
        fate = f"discarded by consumer {connection.consumer_name}: {letter.discarded}"
    say(f"queue {queue}, seq {seq}: {fate}")
    say(f"{counted(letter.attempts, 'attempt')}; the last error: {letter.error}")
    say("its message is not stored any more" if message is None else json_line(message))


@app.command()
@connected
@tabled
def redrive(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: OneQueue = None,
    seq: OneSeq = None,
    *,
    match: Match = None,
    everything: Everything = False,
    function: Function = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Try dead letters again, lowest seq first.

    Exit code 1 if one fails again. The stack's process function does it, with its own handler or sink.

    Example: stream-sort dead redrive ada 7 --stack orders --yes
    """
    choice = queues_to_change([queue] if queue else None, match, everything=everything)
    FailedMessages(connection, NOUN, yes=yes, as_json=as_json).redrive(_letters(connection, choice, seq), function)


@app.command()
@connected
def discard(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: OneQueue = None,
    seq: OneSeq = None,
    *,
    reason: Reason,
    match: Match = None,
    everything: Everything = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give up on dead letters for good.

    They are kept for the record, with the reason: see dead list --discarded.

    Example: stream-sort dead discard ada 7 --reason 'no such account' --yes
    """
    choice = queues_to_change([queue] if queue else None, match, everything=everything)
    FailedMessages(connection, NOUN, yes=yes, as_json=as_json).discard(_letters(connection, choice, seq), reason)


def _letters(connection: Connection, choice: Choice, seq: int | None) -> list[DeadLetter]:
    """Return the dead letters that are meant, lowest seq first in each queue."""
    if choice.queues:
        return _letters_at(connection, choice.queues[0], seq)
    return sorted(chosen(connection.consumer().dead_letters(), choice), key=lambda one: (one.queue, one.seq))


def _discarded(connection: Connection, choice: Choice) -> Iterator[DeadLetter]:
    """Yield those of the queues that are named, or of all that match: no list has them all."""
    consumer = connection.consumer()
    for queue in chosen_queues(connection.sources, choice):
        yield from consumer.discarded(queue)


def _letter_on_record(connection: Connection, queue: str, seq: int) -> DeadLetter:
    """Return the dead letter at a seq, as it stands now or as it was discarded."""
    try:
        return _letters_at(connection, queue, seq)[0]
    except NotParked:
        for one in connection.consumer().discarded(queue):
            if one.seq == seq:
                return one
        raise


def _letters_at(connection: Connection, queue: str, seq: int | None) -> list[DeadLetter]:
    """Return those of a queue, or at one seq of it, as they stand now."""
    consumer = connection.consumer()
    found = [one for one in consumer.stuck(queue, seq) if isinstance(one, DeadLetter)]
    if not found:
        check_no_consumers(connection, [queue])
        raise NotParked(consumer.name, queue, seq)
    return found
