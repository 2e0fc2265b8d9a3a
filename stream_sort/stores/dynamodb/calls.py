"""Every request goes through here: retries with backoff and jitter until a deadline, errors in our words."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from stream_sort.aws.errors import is_refusal, is_retryable, translate, unavailable
from stream_sort.ports.time_limit import seconds_left

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE = 0.025
LONGEST_PAUSE = 1.0
# How long a first round goes on, however short the deadline is: what fails at once takes no time from the others.
SHORTEST_ROUND = 1.0
# What botocore raises for an answer that it cannot read; JSON of another shape than it looks for is the second.
UNREADABLE = (ResponseParserError, AttributeError)
# What IAM calls an operation, where it is not the operation's own name.
PERMISSIONS = {"BatchExecuteStatement": "PartiQLInsert"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a table answered; `refused` is a failed condition, with the item that stood against it."""

    body: dict[str, Any]
    refused: bool = False

    @property
    def item(self) -> dict[str, Any] | None:
        """The item of a read, or the one that stood against a write."""
        return self.body.get("Item")


@dataclass(frozen=True, slots=True)
class CallTarget:
    """What was called and where, for error messages."""

    operation: str
    table: str
    region: str
    endpoint: str

    @property
    def permission(self) -> str:
        """The IAM action that the operation needs."""
        return PERMISSIONS.get(self.operation, self.operation)


class PassingFault(Exception):
    """A try that failed in a way that passes; never leaves this package."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(problem)
        self.problem = problem


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of DynamoDB, which always names the request; another one must not pass for "no such item"."""
    if "RequestId" not in answer.get("ResponseMetadata", {"RequestId": ""}):
        raise ResponseParserError("an answer that names no request is not from DynamoDB")
    return answer


@dataclass(slots=True)
class Patience:
    """The time one call has: waits longer and longer, with full jitter, until its deadline is past.

    No try begins after the deadline; one that began before may take as long as the client lets it.
    """

    calls: Calls
    target: CallTarget
    began: float
    deadline: float
    tries: int = 1

    @property
    def is_over(self) -> bool:
        """Whether there is no time to begin with anything else: a first round is not ended by a short deadline."""
        return self.calls.monotonic() - self.began >= max(self.deadline, SHORTEST_ROUND)

    @property
    def has_time(self) -> bool:
        """Whether another try may begin."""
        return self.calls.monotonic() - self.began < self.deadline

    def leave_out(self, seconds: float) -> None:
        """Count nothing of a time that went well; but the caller's own limit stays as it is."""
        self.began += seconds
        self.deadline = min(self.deadline, self.calls.monotonic() - self.began + seconds_left())

    def wait(self, problem: object) -> None:
        """Sleep before the next try, or raise StoreUnavailable if there is no time for one."""
        elapsed = self.calls.monotonic() - self.began
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.tries)
        pause = longest * self.calls.jitter()
        if elapsed + pause >= self.deadline:
            error = unavailable(problem, self.target, seconds=elapsed, tries=self.tries)
            raise error from (problem if isinstance(problem, Exception) else None)
        self.calls.sleep(pause)
        self.tries += 1


class RequestCount:
    """Counts requests, each try of one; threads may share it."""

    def __init__(self) -> None:
        self._count = 0
        self._lock = threading.Lock()

    def add(self) -> None:
        """Add one."""
        with self._lock:
            self._count += 1

    def count(self) -> int:
        """Return how many there were so far."""
        return self._count


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls a boto3 client. Losing a condition is an answer, all other errors are raised as ours."""

    client: Any
    deadline: float
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = field(default=random.random)
    tally: RequestCount = field(default_factory=RequestCount)

    def __call__(self, method: str, table: str, **request: Any) -> Reply:
        """Make one call about one table, as often as it takes within the deadline."""
        return self.across(method, table, **{"TableName": table} | request)

    def across(self, method: str, tables: str, *, patience: Patience | None = None, **request: Any) -> Reply:
        """Make one call about several tables within the deadline, or within what is left of somebody's patience."""
        patience = patience or self.patience(method, tables)
        while True:
            try:
                return self.once(method, patience.target, **request)
            except PassingFault as fault:
                patience.wait(fault.problem)

    def body(self, method: str, table: str, **request: Any) -> dict[str, Any]:
        """Return what a table answers."""
        return self(method, table, **request).body

    def once(self, method: str, target: CallTarget, **request: Any) -> Reply:
        """Try a call one time; raises PassingFault if it may succeed a moment later."""
        self.tally.add()
        try:
            # A page of a proxy, or an answer that was cut: nobody knows what was done, as after a timeout.
            return Reply(checked(getattr(self.client, method)(**request)))
        except UNREADABLE as error:
            raise PassingFault(error) from error
        except (ClientError, BotoCoreError) as error:
            if is_refusal(error):
                return Reply(error.response, refused=True)
            if not is_retryable(error):
                raise translate(error, target) from error
            raise PassingFault(error) from error

    def patience(self, method: str, table: str) -> Patience:
        """Return the time for one call, or for all rounds of one, beginning now; less where its caller has little."""
        meta, operation = self.client.meta, "".join(part.title() for part in method.split("_"))
        target = CallTarget(operation, table, meta.region_name or "?", meta.endpoint_url)
        return Patience(self, target, self.monotonic(), min(self.deadline, seconds_left()))
