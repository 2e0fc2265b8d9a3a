"""`stream-sort parked | dead`: queues that a consumer cannot get past for now, and messages that it gave up on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import (
    Everything,
    Json,
    Match,
    Queue,
    Seq,
    Yes,
    changes_queues,
    queues_to_change,
    shows_queues,
)
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import FailedMessages, check_no_consumers, chosen
from stream_sort.cli.output import json_line, print_json, say, tell
from stream_sort.cli.tables import tabled
from stream_sort.errors import NotParked
from stream_sort.insight.rows import Choice, chosen_queues
from stream_sort.insight.wording import counted, moment
from stream_sort.model.consumption import DeadLetter, Parked

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUE, LETTER, DISCARDED = "parked queue", "dead letter", "discarded message"

parked = typer.Typer(help="Queues on hold for a consumer, because a message failed.", no_args_is_help=True)
dead = typer.Typer(
    help="Messages that a consumer gave up on. What could not even be stored: stream-sort dead-letters.",
    no_args_is_help=True,
)

OneQueue = Annotated[str | None, typer.Argument(metavar="QUEUE", help="The queue.", show_default=False)]
OneSeq = Annotated[int | None, typer.Argument(metavar="SEQ", help="Only this message of it.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is kept with the message.", show_default=False)]
Function = Annotated[str | None, typer.Option("--function", metavar="NAME", help="The function, if not the stack's.")]


@parked.command("list")
@connected
@tabled
@shows_queues
def list_parked(connection: Connection, choice: Choice, *, as_json: Json = False) -> None:
    """Show the queues that are parked, the next to be tried first.

    Example: stream-sort parked list --consumer billing --match 'ada-*'
    """
    connection.check_names()
    found = chosen(connection.consumer().parked(), choice)
    FailedMessages(connection, QUEUE, as_json=as_json).show(found, choice.queues)


@parked.command("redrive")
@connected
@tabled
@changes_queues
def redrive_parked(
    connection: Connection, choice: Choice, *, function: Function = None, yes: Yes = False, as_json: Json = False
) -> None:
    """Try parked queues again now, each at its own place.

    A parked message has all its attempts again; a dead one goes on counting. Exit code 1 if one fails again; what the
    scheduled retry delivers meanwhile is delivered. The stack's process function does it, with its own handler or sink.

    Example: stream-sort parked redrive ada bob --stack orders --yes
    """
    if choice.queues:
        found = [one for queue in choice.queues if (one := _parked_still(connection, queue))]
    else:
        found = chosen(connection.consumer().parked(), choice)
    FailedMessages(connection, QUEUE, yes=yes, as_json=as_json).redrive(found, function)


@parked.command("discard")
@connected
def discard_parked(  # noqa: PLR0913  # each is an option
    connection: Connection, queue: Queue, seq: Seq, *, reason: Reason, yes: Yes = False, as_json: Json = False
) -> None:
    """Give up for good on the message that a queue is parked at.

    The queue then goes on. The message is on record, with the reason: see dead list --discarded.

    Example: stream-sort parked discard ada 7 --reason 'no such account' --yes
    """
    found = _parked(connection, queue, seq)
    FailedMessages(connection, QUEUE, yes=yes, as_json=as_json).discard([found], reason)


@dead.command("list")
@connected
@tabled
@shows_queues
def list_dead(
    connection: Connection,
    choice: Choice,
    *,
    discarded: Annotated[bool, typer.Option("--discarded", help="List what was discarded; one read a queue.")] = False,
    as_json: Json = False,
) -> None:
    """Show the dead letters, the oldest first.

    With --discarded, what was given up for good instead, parked messages among it, with the reason.

    Example: stream-sort dead list --consumer billing
    """
    if discarded:
        found, noun = list(_discarded(connection, choice)), DISCARDED
    else:
        found, noun = chosen(connection.consumer().dead_letters(), choice), LETTER
    FailedMessages(connection, noun, as_json=as_json).show(found, choice.queues)


@dead.command()
@connected
def show(connection: Connection, queue: Queue, seq: Seq, *, as_json: Json = False) -> None:
    """Show one dead letter, discarded or not, with its message.

    Example: stream-sort dead show ada 7
    """
    letter = _letter_on_record(connection, queue, seq)
    slot = connection.sorter.slot(queue, seq)
    message = None if slot is None else slot.document
    if as_json:
        print_json(FailedMessages(connection, LETTER).facts(letter) | {"message": message})
        return
    fate = f"dead for consumer {connection.consumer_name} since {moment(letter.since)}"
    if letter.discarded is not None:
        fate = f"discarded by consumer {connection.consumer_name}: {letter.discarded}"
    say(f"queue {queue}, seq {seq}: {fate}")
    say(f"{counted(letter.attempts, 'attempt')}; the last error: {letter.error}")
    say("its message is not stored any more" if message is None else json_line(message))


@dead.command("redrive")
@connected
@tabled
def redrive_dead(  # noqa: PLR0913  # each is an option
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
    found = _letters(connection, queues_to_change([queue] if queue else None, match, everything=everything), seq)
    FailedMessages(connection, LETTER, yes=yes, as_json=as_json).redrive(found, function)


@dead.command("discard")
@connected
def discard_dead(  # noqa: PLR0913  # each is an option
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
    found = _letters(connection, queues_to_change([queue] if queue else None, match, everything=everything), seq)
    FailedMessages(connection, LETTER, yes=yes, as_json=as_json).discard(found, reason)


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
