"""`stream-sort explain | gaps | skip | policy | nudge | advance`: what queues do, and how to free them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from stream_sort.cli.arguments import Json, Queue, Yes, changes_queues, seqs_of
from stream_sort.cli.connection import Connection, connected, leading_here
from stream_sort.cli.output import FAILED, answer, confirm, jsonable, print_error, print_json, say, tell
from stream_sort.cli.tables import show_rows, tabled
from stream_sort.errors import (
    InvalidInput,
    OtherKeys,
    QueueNotFound,
    RowDamaged,
    StoreMisconfigured,
    StreamSortError,
    named_error,
)
from stream_sort.insight.explanation import explanation_of
from stream_sort.insight.released import not_missing, released_by
from stream_sort.insight.rows import Choice, cursor_rows, require_known
from stream_sort.insight.wording import counted, named_seqs, policy_text, some_of
from stream_sort.model.gap_policy import MOST_SKIPS, GapPolicy
from stream_sort.model.gaps import length

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.insight.sources import Sources


New = Annotated[bool, typer.Option("--new", help="Also a queue in which nothing is stored yet.")]


class QueueOutcome(NamedTuple):
    """What came of one queue, for people and for programs."""

    text: str
    facts: dict[str, Any]


@connected
def explain(connection: Connection, queue: Queue, *, as_json: Json = False) -> None:
    """Explain why a queue waits, and what would unblock it.

    Example: stream-sort explain ada
    """
    connection.check_names()
    explanation = explanation_of(connection.sources, queue, connection.command)
    if as_json:
        print_json(explanation)
        return
    for sentence in explanation.sentences:
        say(sentence)
    if explanation.commands:
        missing = explanation.state.gaps[:1]
        say(f"To unblock it, once you know {f'why seq {missing[0].start} is missing' if missing else 'the cause'}:")
    for command in explanation.commands:
        say(f"  {command}")


@connected
@tabled
def gaps(connection: Connection, queue: Queue, *, as_json: Json = False) -> None:
    """List the missing seqs of a queue, up to the highest that is stored.

    Example: stream-sort gaps ada
    """
    found = connection.sorter.gaps(queue)
    rows = [(gap.start, gap.stop - 1, gap.stop - gap.start) for gap in found]
    facts = {"queue": queue, "gaps": found}
    show_rows(facts, ("from", "through", "missing"), rows, as_json=as_json, nothing="no gaps")


@connected
def skip(  # noqa: PLR0913  # each is an option
    connection: Connection,
    queue: Queue,
    seqs: Annotated[list[str] | None, typer.Argument(metavar="[SEQS]", help="Such as 7, or 2-5.")] = None,
    *,
    all_gaps: Annotated[bool, typer.Option("--all-gaps", help="Every seq that is missing now.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Kept with each of them.")] = "skipped by hand",
    new: New = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give up on missing seqs: what waits behind them is released. What comes for them later is kept as late.

    Example: stream-sort skip ada 2-3 7 --reason "lost by the partner" --yes
    """
    sorter = connection.sorter
    if bool(seqs) is all_gaps:
        raise InvalidInput("which seqs? Give some, such as 7 or 2-5, or --all-gaps")
    wanted = sorter.gaps(queue) if all_gaps else [seqs_of(text) for text in seqs or []]
    count = sum(map(length, wanted))
    if count > MOST_SKIPS:
        take_out = connection.command("withdraw", queue, "SEQ")
        raise InvalidInput(
            f"{count:,} seqs are more than {MOST_SKIPS:,}. If a seq behind them is a mistake, such as a time, take "
            f"that message out: {take_out}. Otherwise skip them in parts"
        )
    if not new:
        _require_begun(connection.sources, queue)
    confirm(_giving_up(connection, queue, wanted), yes)
    done = sorter.skip(queue, [seq for part in wanted for seq in part], reason)
    released = released_by(connection.sources.items, done)
    text = f"{queue}: {counted(len(done.skipped), 'seq')} skipped, {released}; position {done.old} -> {done.new}"
    answer(jsonable(done) | {"messages": released.messages}, text, as_json=as_json)
    for kind in not_missing(connection.sources, done, wanted):
        tell(f"{queue}: not skipped: {kind}")


def _giving_up(connection: Connection, queue: str, wanted: list[range]) -> str:
    told = f"{queue}: give up on {named_seqs(wanted)}; it is released through {connection.sorter.position(queue)}"
    highest = connection.sources.items.highest(queue)
    if highest is not None and any(part.stop - 1 > highest for part in wanted):
        told += f". Nothing is stored beyond {highest}: what comes later for these seqs will not be delivered"
    return told


@connected
@tabled
@changes_queues
def policy(  # noqa: PLR0913  # each is an option
    connection: Connection,
    choice: Choice,
    *,
    to: Annotated[
        str | None, typer.Option("--set", metavar="POLICY", help="wait, or 'skip after 5m' (1h, 7d).")
    ] = None,
    new: New = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show what happens to a gap that stays, or set it with --set.

    Example: stream-sort policy ada --set "skip after 1h" --yes
    """
    connection.check_names()
    check = _any_name if new else require_known if to is None else _require_begun
    names = _chosen(connection, choice, check)
    wanted = None if to is None else GapPolicy.parse(to)
    if wanted is not None:
        confirm(f"{some_of(names)}: set the gap policy to: {policy_text(wanted)}", yes)
    told: dict[str, str] = {}
    rows: list[tuple[str, str]] = []
    for name in names:
        try:
            done = connection.sorter.policy(name) if wanted is None else connection.sorter.set_policy(name, wanted)
        except RowDamaged as damaged:
            print_error(str(damaged))
        else:
            told[name] = str(done)
            rows.append((name, policy_text(done)))
    show_rows(told, ("queue", "policy"), rows, as_json=as_json)
    if len(told) < len(names):
        raise typer.Exit(FAILED)


@connected
@changes_queues
def nudge(connection: Connection, choice: Choice, *, yes: Yes = False, as_json: Json = False) -> None:
    """Wake the consumers of queues: touch their cursor rows, so that the stream carries them again.

    Example: stream-sort nudge ada --yes
    """

    @leading_here(connection)
    def touch(name: str) -> QueueOutcome:
        connection.sorter.nudge(name)
        return QueueOutcome("nudged", {"nudged": True})

    names = _chosen(connection, choice)
    confirm(f"{some_of(names)}: touch the cursor row", yes)
    _each(names, touch, as_json=as_json)


@connected
@changes_queues
def advance(connection: Connection, choice: Choice, *, yes: Yes = False, as_json: Json = False) -> None:
    """Release what is stored and contiguous, should a writer have died before it did.

    Example: stream-sort advance ada --yes
    """

    @leading_here(connection)
    def free(name: str) -> QueueOutcome:
        done = connection.sorter.advance(name)
        released = released_by(connection.sources.items, done)
        facts = {"released": len(done), "messages": released.messages, "position": done.new}
        return QueueOutcome(f"{released}; position {done.new}", facts)

    names = _chosen(connection, choice)
    confirm(f"{some_of(names)}: release what is contiguous", yes)
    _each(names, free, as_json=as_json)


def _each(names: list[str], act: Callable[[str], QueueOutcome], *, as_json: bool) -> None:
    """Do one after the other, and say what came of each as it comes; a queue's own error keeps no other one back."""
    told: dict[str, dict[str, Any]] = {}
    failed = 0
    for name in names:
        try:
            done = act(name)
        except (StoreMisconfigured, OtherKeys):
            raise
        except Exception as problem:  # noqa: BLE001  # I7: also a bug of ours is the trouble of its own queue only
            error = named_error(name, problem)
            failed += 1
            told[name] = {"error": f"{type(error).__name__}: {error}"}
            print_error(str(error))
        else:
            told[name] = done.facts
            if not as_json:
                say(f"{name}: {done.text}")
    if as_json:
        print_json(told)
    if failed:
        raise typer.Exit(FAILED)


def _require_begun(sources: Sources, queue: str) -> None:
    """Require a queue that has begun; the error names the option for one that has not."""
    try:
        require_known(sources, queue)
    except QueueNotFound as unknown:
        raise QueueNotFound(queue, advice="to begin it, give --new") from unknown


def _any_name(sources: Sources, queue: str) -> None:
    """Refuse no name."""


def _chosen(connection: Connection, choice: Choice, check: Callable[[Sources, str], None] = require_known) -> list[str]:
    """Return the queues that are named, if the check lets them pass, or all that match; an error if none does.

    Those whose rows cannot be read are among them: whoever acts on each meets the error of that queue.
    """
    if choice.queues:
        for queue in choice.queues:
            check(connection.sources, queue)
        return list(choice.queues)
    damaged: dict[str, StreamSortError] = {}
    rows = [row.queue for row in cursor_rows(connection.sources, damaged)]
    found = sorted(filter(choice.takes, {*rows, *damaged}))
    if not found:
        which = "there is no queue yet" if choice.pattern is None else f"no queue matches {choice.pattern!r}"
        raise StreamSortError(f"{which}; see {connection.command('status')}")
    return found
