"""`stream-sort consumers | trim`: who reads, how far each is, where it is to go on, and what nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stream_sort.cli.arguments import DryRun, Json, NoConsumers, Queue, Yes, changes_queues, duration_of, timestamp_of
from stream_sort.cli.connection import Connection, connected
from stream_sort.cli.failed_messages import check_no_consumers
from stream_sort.cli.output import FAILED, Styled, answer, confirm, print_error, print_json, say, tell
from stream_sort.cli.tables import show_table, tabled
from stream_sort.consume.resetter import ACTIVE
from stream_sort.errors import ConsumerActive, ConsumerNotFound, InvalidInput, shown
from stream_sort.insight.consumers import summary_of
from stream_sort.insight.rows import Choice, chosen_queues, cursor_rows, require_known
from stream_sort.insight.wording import counted, moment, some_of
from stream_sort.model.consumption import EARLIEST, LATEST

if TYPE_CHECKING:
    from stream_sort.insight.consumers import ConsumerSummary
    from stream_sort.model.consumption import Reset

consumers = typer.Typer(help="Who reads the queues, and how far each is.", no_args_is_help=True)

To = Annotated[str | None, typer.Option("--to", metavar="earliest|latest|SEQ", help="Where to go on; SEQ comes next.")]
By = Annotated[int | None, typer.Option("--by", metavar="N", help="Move by so many messages; --by -10 goes back.")]
ToTime = Annotated[str | None, typer.Option("--to-time", metavar="TIME", help="Go on at a time: 2026-11-01T12:00Z.")]
ByDuration = Annotated[str | None, typer.Option("--by-duration", metavar="DURATION", help="Go back in time: 5m, 7d.")]
Retired = Annotated[bool, typer.Option("--retired", help="List retired consumers, too.")]
Force = Annotated[bool, typer.Option("--force", help="Reset even while the consumer is at work.")]


@consumers.command("list")
@connected
@tabled
def list_consumers(connection: Connection, *, retired: Retired = False, as_json: Json = False) -> None:
    """Show all consumers, and how far each is.

    In how many queues each is behind and by how much, what is parked and dead. --retired adds those that were retired.

    Example: stream-sort consumers list --stack orders
    """
    connection.check_names()
    rows = list(cursor_rows(connection.sources))
    control = connection.control_store
    found = control.subscriptions.readable_consumers()
    left_out = {f"consumer {name}": error for name, error in found.damaged.items()}
    named = sorted(found.rows.values(), key=lambda one: (one.is_retired, one.name))
    now = connection.sources.clock()
    readers = [summary_of(control, one, rows, left_out, now=now) for one in named if retired or not one.is_retired]
    for what, error in left_out.items():
        print_error(f"{what} is left out: {error}")
    if as_json:
        print_json(readers)
    elif readers:
        columns = ("consumer", "start", "registered", "queues", "behind", "lag", "parked", "dead", "last commit")
        show_table(columns, map(_cells, readers))
    elif not left_out:
        say("no consumer is registered; each is when it first runs")
    if left_out:
        raise typer.Exit(FAILED)


@consumers.command()
@connected
@tabled
@changes_queues
def reset(  # noqa: PLR0913  # each is an option
    connection: Connection,
    choice: Choice,
    *,
    to: To = None,
    by: By = None,
    to_time: ToTime = None,
    by_duration: ByDuration = None,
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Let a consumer go on elsewhere.

    What lies between comes again, or is passed over. To a time, or by a duration: all that arrived since then comes
    again, and some that arrived before, where messages came out of order. Refused while the consumer is at work on one
    of these queues: it committed there within the last 5 minutes. Goes no further back than what is stored, and no
    further on than what is released. A queue that was parked is so no longer; dead letters stay.

    Example: stream-sort consumers reset ada --consumer billing --to earliest --dry-run
    """
    check_no_consumers(connection, choice.queues)
    if [to, by, to_time, by_duration].count(None) != 3:  # noqa: PLR2004  # all but one
        raise InvalidInput("give one of --to earliest|latest|SEQ, --by N, --to-time TIME and --by-duration DURATION")
    time = _time(connection, to_time, by_duration)
    names = None if choice.is_all else list(chosen_queues(connection.sources, choice))
    consumer = connection.consumer()
    done = consumer.reset(to, by=by, to_time=time, queues=names, dry_run=True)
    if done and dry_run:
        tell(_plan(consumer.name, done))
    elif done:
        active = [one.queue for one in done if one.active]
        if active and not force:
            raise ConsumerActive(consumer.name, active[0], others=len(active) - 1, seconds=ACTIVE, force="--force")
        confirm(_plan(consumer.name, done), yes)
        done = consumer.reset(to, by=by, to_time=time, queues=[one.queue for one in done], force=force)
    if not done and not as_json:
        tell(f"nothing to reset: every checkpoint is there already{_out_of_reach(connection, names, to)}")
    _show_resets(done, as_json=as_json)


@consumers.command()
@connected
def retire(
    connection: Connection,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The consumer.", show_default=False)],
    *,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take a consumer off the list. Stop it first.

    Nobody waits for it any more, and trim may pass it. Its checkpoints stay; run again under its name, it is registered
    again and goes on where it was. One that still runs is registered again within a minute; until then it delivers, and
    no trim waits for it.

    Example: stream-sort consumers retire billing --yes
    """
    control = connection.control_store
    known = control.subscriptions.readable_consumers()
    found = known.named(name)
    if found is None:
        raise ConsumerNotFound(name, [one.name for one in known.active()], retired=name in known.rows)
    now = connection.sources.clock()
    there = summary_of(control, found, list(cursor_rows(connection.sources)), {}, now=now)
    lags = f"it lags by {counted(there.lag, 'message')} in {counted(there.behind, 'queue')}" if there.lag else "no lag"
    confirm(f"Retire consumer {name} ({lags}): nothing waits for it any more.", yes)
    connection.consumer(name).retire()
    answer({"retired": name}, f"retired: {name}", as_json=as_json)


@connected
def trim(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: Queue,
    *,
    through: Annotated[int, typer.Option("--through", metavar="SEQ", help="The last to be deleted.")],
    no_consumers: NoConsumers = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete the messages of a queue up to a seq, for good; refuses what is not released, or not consumed by all.

    The message at the position stays until the next one is released.

    Example: stream-sort trim ada --through 41 --yes
    """
    control = connection.control_unless(no_consumers)
    require_known(connection.sources, queue)
    position = connection.sorter.position(queue)
    confirm(f"Delete the messages of queue {queue} through seq {through}, for good; it stands at {position}.", yes)
    deleted = connection.sorter.trim(queue, through, control_table=control)
    facts = {"queue": queue, "through": through, "deleted": deleted}
    answer(facts, f"queue {queue}: {counted(deleted, 'message')} deleted", as_json=as_json)


def _cells(one: ConsumerSummary) -> tuple[str | int | Styled, ...]:
    parked, dead = (Styled(f"{count:,}", "red" if count else "") for count in (one.parked, one.dead))
    times = moment(one.since), moment(one.committed_at)
    name = one.consumer if one.retired_at is None else f"{one.consumer} (retired)"
    return name, one.start, times[0], one.queues, one.behind, one.lag, parked, dead, times[1]


def _time(connection: Connection, to_time: str | None, by_duration: str | None) -> float | None:
    """Return one time for the plan and for what is done: a duration counts from now.

    The epoch stands for all times before it: no message is older.
    """
    now = connection.sorter.clock()
    if by_duration is not None:
        if not (seconds := duration_of(by_duration, "--by-duration")):
            raise InvalidInput(f"--by-duration {shown(by_duration)} is too short; give a duration above 0")
        return max(0.0, now - seconds)
    if to_time is None:
        return None
    if (time := timestamp_of(to_time)) > now:
        raise InvalidInput(f"{shown(to_time)} is in the future; for new messages only: --to latest")
    return max(0.0, time)


def _out_of_reach(connection: Connection, names: list[str] | None, to: str | None) -> str:
    """Return what a seq was taken for that is beyond the position, or before what there is to read."""
    if to is None or to in {EARLIEST, LATEST}:
        return ""
    every = (row for row in cursor_rows(connection.sources) if names is None or row.queue in names)
    rows = [row for row in every if row.position >= row.first_seq]
    beyond = [f"{row.queue} at position {row.position}" for row in rows if int(to) > row.position + 1]
    before = [f"{row.queue} ({row.start + 1})" for row in rows if int(to) <= row.start]
    told = f"; --to {to} is beyond {some_of(beyond)}, and is taken as the seq after it" if beyond else ""
    return told + (f"; --to {to} is before the first seq of {some_of(before)}, and is taken as that" if before else "")


def _plan(consumer: str, planned: list[Reset]) -> str:
    again = sum(max(0, one.old - one.new) for one in planned)
    passed = sum(max(0, one.new - one.old) for one in planned)
    moves = some_of([f"{one.queue} {one.old} -> {one.new}" for one in planned])
    return (
        f"Reset consumer {consumer} in {counted(len(planned), 'queue')}: {moves}. "
        f"{counted(again, 'message')} will come again, {passed:,} will be passed over."
    )


def _show_resets(done: list[Reset], *, as_json: bool) -> None:
    if as_json:
        print_json(done)
    elif done:
        columns = ("queue", "checkpoint", "reset to", "position", "at work", "outcome")
        show_table(columns, (_reset_cells(one) for one in done))
    for one in done:
        if one.error is not None:
            what = "not woken, the sweep does it" if one.outcome == "reset" else "perhaps not reset, try it again"
            tell(f"queue {one.queue}: {what}: {one.error}")
    if any(one.outcome in {"overtaken", "failed"} for one in done):
        raise typer.Exit(FAILED)


def _reset_cells(one: Reset) -> tuple[str | int, ...]:
    return one.queue, one.old, one.new, one.position, "yes" if one.active else "", one.outcome
