"""`stream-sort dead-letters`: what could not be stored. What a consumer gave up on is under `stream-sort dead`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.cli.arguments import DryRun, Json, Yes
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.output import FAILED, Styled, confirm, json_line, print_json, say, tell
from stream_sort.cli.refused import LOOK, Kept, RefusedSource, every, named, sources_of
from stream_sort.cli.refused_redrive import LEFT, Redrive, RefusedTry
from stream_sort.cli.tables import show_rows, tabled
from stream_sort.errors import InvalidInput
from stream_sort.insight.checkup.resources import WORK, hidden_now
from stream_sort.insight.wording import counted, moment, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

app = typer.Typer(
    help="What could not be stored, from any source. What a consumer gave up on: stream-sort dead.",
    no_args_is_help=True,
)

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="As `list` shows them.", show_default=False)]
SomeIds = Annotated[list[str], typer.Argument(metavar="ID", help="As `list` shows them.", show_default=False)]
QueueUrl = Annotated[
    str | None, typer.Option("--queue-url", metavar="URL", help="Only this SQS queue, such as your own.")
]
Bucket = Annotated[str | None, typer.Option("--bucket", metavar="NAME", help="Only this S3 bucket, even an old one.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many to show at most.")]


@app.command("list")
@connected
@tabled
def list_refused(
    connection: Connection,
    *,
    queue_url: QueueUrl = None,
    bucket: Bucket = None,
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """Show what could not be stored, and why.

    Looks into the queue EnqueueDeadLetters, the bucket with what Lambda gave up on of Kinesis, and the places that it
    gave up on in the tables' streams. What is looked at is hidden from others meanwhile, for a minute at most. What
    others have hidden is only counted.

    Example: stream-sort dead-letters list --stack orders
    """
    with sources_of(connection, queue_url, bucket) as sources:
        hidden = _hidden(sources)
        # Not the events: each may be of megabytes.
        found = [_facts(one, connection) for _, one in islice(every(sources, LOOK), limit + 1)]
    shown = found[:limit]
    rows = [(one["id"], one["source"], moment(one["since"]), one["messages"], one["reason"]) for one in shown]
    nothing = f"nothing {'can be seen' if hidden else 'is kept'} in {_names(sources)}"
    show_rows(shown, ("id", "kept in", "since", "messages", "reason"), rows, as_json=as_json, nothing=nothing)
    _report_hidden(hidden)
    if len(found) > limit:
        tell(f"there are more than {limit:,}; --limit shows more of them")


@app.command()
@connected
def show(
    connection: Connection, ids: SomeIds, *, queue_url: QueueUrl = None, bucket: Bucket = None, as_json: Json = False
) -> None:
    """Show some of them whole.

    The reason, and the messages or, if there are none, the body as it was kept.

    Example: stream-sort dead-letters show 5fea7756-0ea4-451a-a703-a558b933e274 --stack orders
    """
    with sources_of(connection, queue_url, bucket) as sources:
        found = [one for _, one in _named(connection, sources, ids, LOOK)]
    if as_json:
        print_json([_whole(one, connection) for one in found])
        return
    for one in found:
        told = _facts(one, connection)
        say(f"{one.id}: {told['what']}, in {one.source} since {moment(one.since)}")
        say(f"reason: {told['reason']}")
        if told["problem"]:
            say(f"cannot be stored as it is: {told['problem']}")
        for message in one.event.messages:
            say(json_line(message))
        if not one.event.messages:
            say(one.body)


@app.command()
@connected
@tabled
def redrive(  # noqa: PLR0913  # each is an option
    connection: Connection,
    ids: Ids = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    dry_run: DryRun = False,
    queue_url: QueueUrl = None,
    bucket: Bucket = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Store what could not be stored before.

    Takes off whatever is wrapped around it, puts its messages, and deletes it from its queue or bucket once all of them
    are stored: accepted, duplicate or late. What is not, such as a conflict, is left, with the reason; then the exit
    code is 1. Places in the tables' streams hold no message: their queues are advanced or woken. Ctrl-C loses
    nothing: what was stored and not yet deleted is a duplicate the next time.

    Example: stream-sort dead-letters redrive --all --stack orders --yes
    """
    if bool(ids) == everything:
        see = connection.command("dead-letters", "list")
        raise InvalidInput(f"which of them? Give their ids, as {see} shows them, or --all")
    redrive = Redrive(connection)
    with sources_of(connection, queue_url, bucket) as sources:
        found = _named(connection, sources, ids, WORK) if ids else every(sources, WORK)
        hidden = 0 if ids else _hidden(sources)
        if dry_run:
            _show_tried([redrive.check(one) for _, one in found], hidden, as_json=as_json)
            return
        which = some_of(ids) if ids else "all that is kept"
        confirm(f"Redrive {which} in {_names(sources)}. What is stored then is deleted there.", yes)
        tried: list[RefusedTry] = []
        try:
            for some in redrive.try_all(found):
                tried += some
            for source in sources:
                source.tidy()
        except BaseException:
            # What was done is shown, whatever ended it.
            if tried:
                _show(tried, as_json=as_json)
            raise
        # Before the end, which shows again what is left: its failure is only a warning.
        _show_tried(tried, hidden, as_json=as_json)


@app.command()
@connected
def discard(  # noqa: PLR0913  # each is an option
    connection: Connection,
    ids: SomeIds,
    *,
    queue_url: QueueUrl = None,
    bucket: Bucket = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete some of them for good.

    Only for what can never be stored, and was looked at: it is nowhere else. Each is printed before it is deleted. What
    could not be deleted is listed; then the exit code is 1.

    Example: stream-sort dead-letters discard 5fea7756-0ea4-451a-a703-a558b933e274 --stack orders --yes
    """
    with sources_of(connection, queue_url, bucket) as sources:
        found = list(_named(connection, sources, ids, WORK))
        for _, one in found:
            tell(f"{one.id}: {_facts(one, connection)['reason']}")
        confirm(f"Delete {counted(len(found), 'dead letter')} for good.", yes)
        if as_json:
            print_json([_whole(one, connection) for _, one in found])
        kept = [one.id for source, one in found if not _discarded(source, one, as_json=as_json)]
        for source in sources:
            source.tidy()
    if kept:
        raise typer.Exit(FAILED)


def _discarded(source: RefusedSource, one: Kept, *, as_json: bool) -> bool:
    """Delete one for good, once it is printed: whoever could not print it must not delete it."""
    if not as_json:
        say(f"{one.id}: {one.body}")
    if kept := source.delete([one]):
        tell(f"not discarded: {one.id}: {kept[one.id]}")
    elif not as_json:
        say(f"discarded: {one.id}")
    return not kept


def _named(
    connection: Connection, sources: Sequence[RefusedSource], ids: Sequence[str], hide: int
) -> Iterator[tuple[RefusedSource, Kept]]:
    """Yield those of these ids; where one is not there, what is hidden is told, too."""
    hidden = _hidden(sources)
    try:
        yield from named(sources, ids, hide, connection.command("dead-letters", "list"))
    except InvalidInput:
        _report_hidden(hidden)
        raise


def _hidden(sources: Sequence[RefusedSource]) -> int:
    return sum(source.elsewhere() for source in sources)


def _report_hidden(count: int) -> None:
    if count:
        tell(hidden_now(count))


def _facts(one: Kept, connection: Connection) -> dict[str, Any]:
    """Return one of them as JSON, without what it holds."""
    event = one.event
    problem = event.problem(connection.sorter.options.keys)
    return {
        "id": one.id,
        "source": one.source,
        "what": str(event.wrapping),
        "since": one.since,
        "messages": len(event.messages),
        "reason": event.reason or problem or "not recorded; see the log of enqueue",
        "problem": problem,
        "place": event.place,
    }


def _whole(one: Kept, connection: Connection) -> dict[str, Any]:
    return _facts(one, connection) | {"content": one.event.messages, "body": one.body}


def _names(sources: Sequence[RefusedSource]) -> str:
    return " and ".join(source.name for source in sources)


def _show_tried(tried: list[RefusedTry], hidden: int, *, as_json: bool) -> None:
    """Show what came of it; exit code 1 if something is left."""
    if tried or as_json:
        _show(tried, as_json=as_json)
    else:
        say("nothing can be redriven now" if hidden else "there is nothing to redrive")
    _report_hidden(hidden)
    if any(one.outcome == LEFT for one in tried):
        raise typer.Exit(FAILED)


def _show(tried: list[RefusedTry], *, as_json: bool) -> None:
    columns = ("id", "outcome", "messages", "accepted", "duplicates", "late", "error")
    show_rows(tried, columns, map(_row, tried), as_json=as_json)


def _row(one: RefusedTry) -> tuple[str | int | Styled, ...]:
    outcome = Styled(one.outcome, "red" if one.error else "green")
    return one.id, outcome, one.messages, one.accepted, one.duplicates, one.late, one.error
