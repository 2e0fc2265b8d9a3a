"""Asks the deployed `process` function to try again what is parked or dead: only it has the handler.

The scheduled retry, or another operator, may be faster: the tables say what became of a message, whoever delivered it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from stream_sort.cli.output import FAILED, Styled
from stream_sort.cli.tables import show_rows
from stream_sort.errors import FunctionFailed, InvalidInput, shown
from stream_sort.formats.json_text import loads
from stream_sort.model.consumption import DeadLetter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.cli.connection import Connection
    from stream_sort.model.consumption import Parked
    from stream_sort.ordered_consumer import OrderedConsumer
    from stream_sort.ports import ControlStores

# A run of Lambda's lasts 15 minutes at most; its answer is waited for.
LONGEST_RUN = 905.0
DELIVERED, FAILED_AGAIN, FREED, LEFT, DISCARDED = "delivered", "failed again", "not parked", "left", "discarded"
BY_US, BY_OTHERS = "this redrive", "another run"


@dataclass(frozen=True, slots=True)
class RedriveTry:
    """The result of one try. "left": one before it in its queue failed, and nothing overtakes.

    `by` says who delivered it: this redrive, or another run that was faster; `delivered` counts what this one did.
    """

    queue: str
    seq: int
    outcome: str
    delivered: int = 0
    error: str = ""
    by: str = ""


@dataclass(frozen=True)
class Redriver:
    """Redrives by invoking a function, one queue after the other."""

    client: Any
    function: str
    consumer: OrderedConsumer
    control: ControlStores

    @classmethod
    def of(cls, connection: Connection, function: str | None) -> Redriver:
        """Return the one of a stack, or by a function that is named."""
        name = function or connection.output("ProcessFunction")
        client = connection.client("lambda", read_timeout=LONGEST_RUN)
        return cls(client, name, connection.consumer(), connection.control_store)

    def redrive(self, stuck: Iterable[Parked | DeadLetter]) -> list[RedriveTry]:
        """Try each at its own place; the first that fails in a queue ends that queue."""
        done: list[RedriveTry] = []
        failed: set[str] = set()
        for one in stuck:
            tried = RedriveTry(one.queue, one.seq, LEFT) if one.queue in failed else self._try(one)
            if tried.outcome == FAILED_AGAIN:
                failed.add(one.queue)
            done.append(tried)
        return done

    def _try(self, one: Parked | DeadLetter) -> RedriveTry:
        tried = self._ask(one)
        return tried if tried.outcome == DELIVERED else self._as_it_stands(tried, was_dead=isinstance(one, DeadLetter))

    def _as_it_stands(self, tried: RedriveTry, *, was_dead: bool) -> RedriveTry:
        """Return what the tables say of a message that this redrive did not deliver.

        A dead letter that is gone was delivered. A row that an earlier version wrote does not tell what it passed over.
        """
        queue, seq = tried.queue, tried.seq
        if self.consumer.stuck(queue, seq):
            return tried
        for letter in self.consumer.discarded(queue):
            if letter.seq == seq:
                return replace(tried, outcome=DISCARDED, error=f"discarded meanwhile: {letter.discarded}")
        there = self.control.checkpoints.standing(self.consumer.name, queue).checkpoint
        if was_dead or (there is not None and there.has_had(seq)):
            return replace(tried, outcome=DELIVERED, error="", by=BY_OTHERS)
        stands = "has not begun here" if there is None else f"stands at seq {there.seq}"
        told = f"not parked any more, and not delivered: consumer {self.consumer.name} was reset, and {stands}"
        if there is not None and there.began is None and seq <= there.seq:
            told = f"not parked any more: consumer {self.consumer.name} {stands}; whether it was delivered is not known"
        return replace(tried, outcome=FREED, error=told)

    def _ask(self, one: Parked | DeadLetter) -> RedriveTry:
        try:
            answer = self._invoke({"redrive": {"queue": one.queue, "seq": one.seq}})
        except FunctionFailed as error:
            if error.kind != "NotParked":
                # Perhaps this message only: it may have run out of time, or of memory.
                return RedriveTry(one.queue, one.seq, FAILED_AGAIN, error=str(error))
            # Somebody else freed it meanwhile, or the function is another consumer's: its words tell.
            return RedriveTry(one.queue, one.seq, FREED, error=error.said)
        match answer:
            case {"delivered": int(delivered), "errors": []}:
                return RedriveTry(one.queue, one.seq, DELIVERED, delivered, by=BY_US)
            case {"delivered": int(delivered), "errors": [{"error": error}, *_]}:
                return RedriveTry(one.queue, one.seq, FAILED_AGAIN, delivered, str(error))
        told = f"{self.function} answered {shown(answer)}; is it the process function?"
        return RedriveTry(one.queue, one.seq, FAILED_AGAIN, error=told)

    def _invoke(self, event: object) -> dict[str, Any]:
        answer = self.client.invoke(FunctionName=self.function, Payload=json.dumps(event))
        try:
            said = loads(answer["Payload"].read() or b"null")
        except InvalidInput as error:
            raise FunctionFailed(self.function, "Error", f"what it answered is {error}") from None
        if answer.get("FunctionError") or not isinstance(said, dict):
            told = said if isinstance(said, dict) else {}
            raise FunctionFailed(self.function, told.get("errorType", "Error"), str(told.get("errorMessage", said)))
        return said


def show_tries(tries: list[RedriveTry], *, as_json: bool) -> None:
    """Show the result of each; exit code 1 unless all was delivered, by whomever."""
    columns = ("queue", "seq", "outcome", "delivered", "error")
    rows = [(one.queue, one.seq, _outcome(one), one.delivered, one.error) for one in tries]
    show_rows(tries, columns, rows, as_json=as_json)
    if any(one.outcome != DELIVERED for one in tries):
        raise typer.Exit(FAILED)


def _outcome(tried: RedriveTry) -> Styled:
    told = f"{tried.outcome} by {BY_OTHERS}" if tried.by == BY_OTHERS else tried.outcome
    return Styled(told, "green" if tried.outcome == DELIVERED else "red")
