"""`stream-sort late | withdraw | withdrawn`: messages that came too late or have a wrong seq: kept, never delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import Json, Queue, Seq, Yes, seqs_of, shows_queues
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import FAILED, answer, confirm, json_line, print_error, print_json, say
from stream_sort.cli.tables import show_rows, tabled
from stream_sort.errors import InvalidInput, NotWithdrawn
from stream_sort.insight.rows import Choice, chosen_queues, cursor_rows, require_known
from stream_sort.insight.wording import counted, moment, named_seqs
from stream_sort.model.slots import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.model.withdrawal import Withdrawal
    from stream_sort.ports import ItemStore
    from stream_sort.sorter import Sorter

late = typer.Typer(help="Messages that came after their seqs were skipped.", no_args_is_help=True)
withdrawn = typer.Typer(help="Messages that were taken out of their slots.", no_args_is_help=True)

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="Its number, see list; or its seq.", show_default=False)]
Search = Annotated[int, typer.Option("--search", min=1, metavar="N", help="How many slots to search, highest first.")]
# So many messages, and no more, may be strays.
MOST = 10_000
SHOWN = 200


@late.command("list")
@connected
@tabled
@shows_queues
def list_late(connection: Connection, choice: Choice, *, search: Search = 10_000, as_json: Json = False) -> None:
    """Show the late messages of some queues, or of all.

    At least one request a queue.

    Example: stream-sort late list ada --search 100000
    """
    for queue in choice.queues:
        require_known(connection.sources, queue)
    names = chosen_queues(connection.sources, choice)
    found = [(queue, one) for queue in names for one in connection.sorter.late(queue, search)]
    facts = [{"queue": queue, "seq": one.seq, "reason": one.reason, "message": one.message} for queue, one in found]
    rows = [(queue, one.seq, one.reason, json_line(one.message)) for queue, one in found]
    nothing = f"no late messages among the highest {search:,} slots of each queue"
    show_rows(facts, ("queue", "seq", "skipped because", "message"), rows, as_json=as_json, nothing=nothing)


@late.command("show")
@connected
def show_late(connection: Connection, queue: Queue, seq: Seq, *, as_json: Json = False) -> None:
    """Show one late message, and why its seq was skipped.

    Example: stream-sort late show ada 7
    """
    slot = connection.sorter.slot(queue, seq)
    if slot is None or slot.late is None:
        there = "nothing" if slot is None else "a tombstone only" if slot.is_tombstone else "a message that is not late"
        raise InvalidInput(f"queue {queue!r}, seq {seq}: there is {there}; see {connection.command('late', 'list')}")
    text = f"queue {queue}, seq {seq}: came after it was skipped ({slot.skipped}); it is kept and never delivered"
    facts = {"queue": queue, "seq": seq, "reason": slot.skipped, "message": slot.late}
    answer(facts, text, json_line(slot.late), as_json=as_json)


@connected
def withdraw(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: Queue,
    seqs: Annotated[list[str], typer.Argument(metavar="SEQS", help="Such as 7, or all stored in 2-5.")],
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Kept with each message.")] = "withdrawn by hand",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take messages with a wrong seq, such as a time, out of their slots; each is kept with the reason.

    Only what is not released, and could not be: the seq before it must be missing. Of a run the lowest goes first; the
    first message that cannot be withdrawn ends the command. See them with `withdrawn list`.

    Example: stream-sort withdraw ada 1700000000000 --reason "a time in place of a seq" --yes
    """
    sorter, ranges = connection.sorter, [seqs_of(text) for text in seqs]
    require_known(connection.sources, queue)
    wanted = sorted(set(_stored(connection.sources.items, queue, ranges)))
    if not wanted:
        # For its error, which says what is there instead.
        wanted = [ranges[0].start]
    confirm(_taking_out(sorter, queue, wanted), yes)
    done: list[Withdrawal] = []
    refused: NotWithdrawn | None = None
    for seq in wanted:
        try:
            done.append(sorter.withdraw(queue, seq, reason))
        except NotWithdrawn as error:
            refused = error
            break
        if not as_json:
            say(f"{queue}: seq {seq} withdrawn, kept as number {done[-1].number}")
    if as_json:
        print_json({"queue": queue, "withdrawn": done, "error": None if refused is None else str(refused)})
    if refused is not None:
        print_error(str(refused))
        raise typer.Exit(FAILED)


@withdrawn.command("list")
@connected
@tabled
@shows_queues
def list_withdrawn(connection: Connection, choice: Choice, *, as_json: Json = False) -> None:
    """Show what was withdrawn from some queues, or from all.

    Reads each cursor row once, and the items table for the queues from which something was withdrawn.

    Example: stream-sort withdrawn list ada
    """
    found = list(_withdrawn(connection, choice))
    columns = ("queue", "number", "seq", "withdrawn", "reason", "message")
    rows = [(one.queue, one.number, one.seq, moment(one.at), one.reason, json_line(one.message)) for one in found]
    show_rows([_facts(one) for one in found], columns, rows, as_json=as_json, nothing="nothing was withdrawn")


@withdrawn.command("show")
@connected
def show_withdrawn(connection: Connection, queue: Queue, number: Number, *, as_json: Json = False) -> None:
    """Show one withdrawn message, as it was stored, and why it was withdrawn.

    A number that is no withdrawal's is taken for a seq.

    Example: stream-sort withdrawn show ada 1
    """
    one = _chosen(connection, queue, number)
    text = f"queue {queue}, seq {one.seq}: withdrawn at {moment(one.at)} ({one.reason}); it is kept and never delivered"
    answer(_facts(one), text, json_line(one.message), as_json=as_json)


def _stored(items: ItemStore, queue: str, ranges: list[range]) -> Iterator[int]:
    """Yield the seqs of these ranges at which something is stored; InvalidInput if they are too many."""
    count = 0
    for part in ranges:
        after, more = part.start - 1, True
        while more and after < part.stop - 1:
            page = items.page(queue, after, part.stop - 1, 1_000)
            for entry in expand(page.slots):
                count += 1
                yield entry.seq
            if count > MOST:
                raise InvalidInput(
                    f"{named_seqs(ranges)}: more than {MOST:,} messages are stored there; withdraw takes out a few"
                )
            more = page.more
            after = page.slots[-1].last if page.slots else after


def _taking_out(sorter: Sorter, queue: str, wanted: list[int]) -> str:
    what = f"seq {wanted[0]}" if len(wanted) == 1 else f"{counted(len(wanted), 'message')} from seq {wanted[0]} on"
    slot = sorter.slot(queue, wanted[0])
    shown = "" if slot is None or slot.is_tombstone else f": {json_line(slot.document)[:SHOWN]}"
    return f"{queue}: withdraw {what}; the queue is released through {sorter.position(queue)}{shown}"


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


def _facts(one: Withdrawal) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("queue", "number", "seq", "reason", "at", "message")}
