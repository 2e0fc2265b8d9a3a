"""What `parked` and `dead` share: both are about messages that failed, which are shown, tried again or given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from stream_sort.cli.output import FAILED, confirm, jsonable, print_json, say, tell
from stream_sort.cli.redriver import Redriver, show_tries
from stream_sort.cli.tables import show_rows
from stream_sort.errors import (
    CheckpointConflict,
    ConsumerNotFound,
    InvalidInput,
    NotParked,
    QueueDamaged,
    QueueNotFound,
)
from stream_sort.insight.rows import require_known
from stream_sort.insight.wording import counted, moment, some_of
from stream_sort.model.consumption import DeadLetter, Parked
from stream_sort.model.retries import is_in_hand, is_trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.cli.connection import Connection
    from stream_sort.insight.rows import Choice

IN_HAND = "being tried now; it counts only if its process dies"
Stuck = TypeVar("Stuck", Parked, DeadLetter)


@dataclass(frozen=True, slots=True)
class FailedMessages:
    """Messages of one consumer that failed, and what a command does with them. Nothing is changed unasked."""

    connection: Connection
    noun: str
    yes: bool = False
    as_json: bool = False

    def show(self, found: Sequence[Parked | DeadLetter], queues: Sequence[str] = ()) -> None:
        """List them; the queues that were named, and where there is none the consumer, must at least be known."""
        if not found:
            check_known(self.connection)
        for queue in {*queues} - {one.queue for one in found}:
            check_no_consumers(self.connection, [queue])
            require_known(self.connection.sources, queue)
        now = self.connection.sorter.clock()
        columns = ("queue", "seq", "attempts", "since", _fate(found), "error")
        nothing = f"consumer {self.connection.consumer_name}: no {self.noun} found"
        facts = [self.facts(one) for one in found]
        show_rows(facts, columns, [_row(one, now) for one in found], as_json=self.as_json, nothing=nothing)
        tried = sum(isinstance(one, Parked) and not is_trouble(one, now) for one in found)
        if tried and not self.as_json:
            are, they = ("is", "it is") if tried == 1 else ("are", "they are")
            tell(f"{tried:,} of these {are} not counted as parked by status: {they} being tried now")

    def redrive(self, found: Sequence[Parked | DeadLetter], function: str | None) -> None:
        """Ask, try them again, show what came of it."""
        if self._is_nothing(found):
            return
        redriver = Redriver.of(self.connection, function)
        what = f"Redrive {self._named(found)}, by invoking {redriver.function}."
        confirm(what, self.yes)
        show_tries(redriver.redrive(found), as_json=self.as_json)

    def discard(self, found: Sequence[Parked | DeadLetter], reason: str) -> None:
        """Ask, give them up, show it; exit code 1 if somebody else was at work on one of them."""
        if not reason.strip():
            raise InvalidInput("--reason is empty; say why, it is kept with the message")
        if self._is_nothing(found):
            return
        confirm(f"Discard {self._named(found)}: never to be delivered to this consumer. Reason: {reason}", self.yes)
        consumer = self.connection.consumer()
        done: list[Parked | DeadLetter] = []
        for one in found:
            try:
                consumer.discard(one.queue, one.seq, reason)
            except (CheckpointConflict, NotParked, QueueDamaged) as error:
                tell(f"not discarded: {error}")
            else:
                done.append(one)
                if not self.as_json:
                    say(f"discarded: queue {one.queue}, seq {one.seq}")
        if self.as_json:
            print_json([self.facts(one) | {"discarded": reason} for one in done])
        if len(done) < len(found):
            raise typer.Exit(FAILED)

    def facts(self, one: Parked | DeadLetter) -> dict[str, Any]:
        """Return one of them as JSON; times are seconds since the epoch."""
        fields: dict[str, Any] = jsonable(one)
        return {"consumer": self.connection.consumer_name} | fields

    def _named(self, found: Sequence[Parked | DeadLetter]) -> str:
        places = some_of([f"{one.queue} at seq {one.seq}" for one in found])
        return f"{counted(len(found), self.noun)} of consumer {self.connection.consumer_name} ({places})"

    def _is_nothing(self, found: Sequence[Parked | DeadLetter]) -> bool:
        if not found:
            self.show(found)
        return not found


def chosen(found: list[Stuck], choice: Choice) -> list[Stuck]:
    """Return those in the queues that are meant."""
    return [one for one in found if choice.takes(one.queue)]


def check_known(connection: Connection) -> None:
    """Raise ConsumerNotFound for a name that may be a typing error."""
    known = connection.control_store.subscriptions.readable_consumers()
    if connection.consumer_name not in {*known.rows, *known.damaged}:
        raise ConsumerNotFound(connection.consumer_name, [one.name for one in known.active()])


def check_no_consumers(connection: Connection, queues: Sequence[str]) -> None:
    """Raise InvalidInput where a consumer is named in place of a queue."""
    names = set(connection.control_store.subscriptions.readable_consumers().rows) if queues else set()
    for queue in names.intersection(queues):
        try:
            require_known(connection.sources, queue)
        except QueueNotFound:
            told = f"there is no queue {queue!r}, but a consumer of that name: did you mean --consumer {queue}?"
            raise InvalidInput(told) from None


def _fate(found: Sequence[Parked | DeadLetter]) -> str:
    return "discarded because" if all(map(_reason, found)) else "next try"


def _row(one: Parked | DeadLetter, now: float) -> tuple[str | int, ...]:
    after = _reason(one) or ("never" if one.next_try is None else moment(one.next_try))
    in_hand = isinstance(one, Parked) and is_in_hand(one, now)
    return one.queue, one.seq, one.attempts, moment(one.since), after, IN_HAND if in_hand else one.error


def _reason(one: Parked | DeadLetter) -> str | None:
    """Return why it was discarded, if it was."""
    return one.discarded if isinstance(one, DeadLetter) else None
