"""Asks the deployed `process` function to try again what is parked or dead: only it has the handler."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from stream_sort.cli.output import FAILED, Styled, print_json, show_table
from stream_sort.core.json_text import loads
from stream_sort.errors import FunctionFailed, InvalidInput, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_sort.cli.connection import Connection
    from stream_sort.core.consumption import DeadLetter, Parked

# A run of Lambda's lasts 15 minutes at most; its answer is waited for.
LONGEST_RUN = 905.0
DELIVERED, FAILED_AGAIN, FREED, LEFT = "delivered", "failed again", "not parked", "left"


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one try. "left": one before it in its queue failed, and nothing overtakes."""

    queue: str
    seq: int
    outcome: str
    delivered: int = 0
    error: str = ""


@dataclass(frozen=True)
class Redriver:
    """Redrives by invoking a function, one queue after the other."""

    client: Any
    function: str

    @classmethod
    def of(cls, connection: Connection, function: str | None) -> Redriver:
        """The one of a stack, or by a function that is named."""
        name = function or connection.output("ProcessFunction")
        return cls(connection.client("lambda", read_timeout=LONGEST_RUN), name)

    def redrive(self, stuck: Iterable[Parked | DeadLetter]) -> list[Tried]:
        """Try each at its own place; the first that fails in a queue ends that queue."""
        done: list[Tried] = []
        failed: set[str] = set()
        for one in stuck:
            tried = Tried(one.queue, one.seq, LEFT) if one.queue in failed else self._try(one)
            if tried.outcome == FAILED_AGAIN:
                failed.add(one.queue)
            done.append(tried)
        return done

    def _try(self, one: Parked | DeadLetter) -> Tried:
        try:
            answer = self._invoke({"redrive": {"queue": one.queue, "seq": one.seq}})
        except FunctionFailed as error:
            if error.kind != "NotParked":
                # Perhaps this message only: it may have run out of time, or of memory.
                return Tried(one.queue, one.seq, FAILED_AGAIN, error=str(error))
            # Somebody else freed it meanwhile, or the function is another consumer's: its words tell.
            return Tried(one.queue, one.seq, FREED, error=error.said)
        match answer:
            case {"delivered": int(delivered), "errors": []}:
                return Tried(one.queue, one.seq, DELIVERED, delivered)
            case {"delivered": int(delivered), "errors": [{"error": error}, *_]}:
                return Tried(one.queue, one.seq, FAILED_AGAIN, delivered, str(error))
        told = f"{self.function} answered {shown(answer)}; is it the process function?"
        return Tried(one.queue, one.seq, FAILED_AGAIN, error=told)

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


def show_tries(tries: list[Tried], *, as_json: bool) -> None:
    """Show what came of it; exit code 1 unless all was delivered."""
    if as_json:
        print_json(tries)
    else:
        columns = ("queue", "seq", "outcome", "delivered", "error")
        show_table(columns, ((one.queue, one.seq, _outcome(one), one.delivered, one.error) for one in tries))
    if any(one.outcome != DELIVERED for one in tries):
        raise typer.Exit(FAILED)


def _outcome(tried: Tried) -> Styled:
    return Styled(tried.outcome, "green" if tried.outcome == DELIVERED else "red")
