"""Store calls as values: recorded, cut into atomic parts, answered from a history. Decides nothing.

A process is a deterministic function of the answers its calls got. So a service is run from the start
against a `Recorder`, which answers what is known and stops the run at the first call that has no answer.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreUnavailable
from stream_sort.model.consumption import Standing
from stream_sort.model.records import Head
from stream_sort.ports import ControlStores, Home

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.consume.registration import Known
    from stream_sort.errors import HandlerProblem

READS = frozenset(
    {
        "get",
        "look",
        "page",
        "holding",
        "arrivals",
        "arrivals_below",
        "taken",
        "highest",
        "tombstones",
        "peek",
        "waiting",
        "queues",
    }
    | {"rows", "rows_of", "active", "standing", "of_queues", "parked", "listed"}
    | {"of_queue", "consumers", "readable_consumers", "bookmark", "last"}
)
# Calls that are about no queue, or about many.
LISTINGS = frozenset(
    {"waiting", "queues", "rows", "rows_of", "active", "taken", "of_queues", "parked"}
    | {"listed", "consumers", "readable_consumers", "register", "make_ready", "introduce", "retire"}
    | {"bookmark", "set_bookmark"}
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a port: `items.put`, `cursors.move`, ..."""

    port: str
    name: str
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.port}.{self.name}({', '.join(map(repr, self.args))})"

    @property
    def key(self) -> str:
        """Return `port.name`."""
        return f"{self.port}.{self.name}"

    @property
    def is_read(self) -> bool:
        """Return True if the call leaves the tables as they are."""
        return self.name in READS

    @property
    def queue(self) -> str | None:
        """Return the queue the call is about; None for a listing."""
        if self.name in LISTINGS:
            return None
        subject = self.args[1] if self.name in {"standing", "of_queue", "settle", "deliver"} else self.args[0]
        if isinstance(subject, str):
            return subject
        return str(getattr(subject, "message", subject).queue)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The answer of a call that failed: throttled, or its reply lost for good."""

    def error(self) -> StoreUnavailable:
        """Return a new error each time: a raised one collects tracebacks."""
        return StoreUnavailable("the simulated store did not answer")


@dataclass(frozen=True, slots=True)
class RefusedEffects:
    """The answer of a call whose effects no table takes, or a condition keeps back."""

    problem: HandlerProblem

    def __str__(self) -> str:
        return f"{type(self.problem).__name__}: {self.problem}"

    def error(self) -> HandlerProblem:
        """Return a new error each time, as above."""
        return copy.copy(self.problem)


@dataclass(frozen=True, slots=True)
class Bug:
    """The answer of a call in which our own code fails."""

    def error(self) -> Exception:
        """Return a new error each time, as above; none of ours."""
        return KeyError("a simulated bug")


NAMES = itertools.count()


class CallSuspended(BaseException):
    """Stops a run at a call that has no answer yet; no handler of production code catches it."""

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.call = call


def stop(call: Call) -> None:
    """End a run at a call that has no answer yet."""
    raise CallSuspended(call)


class Recorder:
    """The ports and the clock of one run: answers from the history, then waits at the next call."""

    wait: Callable[[Call], None] = staticmethod(stop)

    def __init__(self, history: list[Any], clock: Callable[[], float]) -> None:
        self._history = history
        self._clock = clock
        self._next = 0
        # What the process remembers of its consumers' registrations.
        self.registered: dict[str, Known] = {}

    def home(self) -> Home:
        """Return ports whose every call goes through `ask`."""
        items, cursors, heads, withdrawals = map(self._port, ("items", "cursors", "heads", "withdrawals"))
        checkpoints, dead, subscriptions = map(self._port, ("checkpoints", "dead_letters", "subscriptions"))
        control = ControlStores(checkpoints, dead, subscriptions, _nothing)
        return Home(items, cursors, heads, lambda _: control, _nothing, withdrawals)

    def _port(self, name: str) -> Any:
        return _Port(name, self.ask)

    def clock(self) -> float:
        """Return the time as it was when the run first came here: a part of the history, but no call."""
        if self._next == len(self._history):
            self._history.append(self._clock())
        return float(self._take())

    def new_name(self) -> str:
        """Return a name that no other run has; a part of the history, as the time is."""
        if self._next == len(self._history):
            self._history.append(f"run{next(NAMES)}")
        return str(self._take())

    def ask(self, call: Call) -> Any:
        """Return the recorded answer; without one, wait for it."""
        if self._next == len(self._history):
            self.wait(call)
        answer = self._take()
        if isinstance(answer, Unavailable | RefusedEffects | Bug):
            raise answer.error()
        return answer

    def _take(self) -> Any:
        self._next += 1
        return self._history[self._next - 1]


class _Port:
    """Any port: each method call becomes a Call."""

    def __init__(self, name: str, ask: Callable[[Call], Any]) -> None:
        self._name = name
        self._ask = ask

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args, **named: self._ask(Call(self._name, method, _positional(method, args, named)))


def _nothing() -> None:
    """Create no table: there is none."""


def _positional(method: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return all arguments of a call, as if they were given by position."""
    if method != "commit":
        return (*args, *named.values())
    given = {"effects": (), "dead": None, **dict(zip(("old", "new", "effects", "dead"), args, strict=False)), **named}
    return given["old"], given["new"], given["effects"], given["dead"]


@dataclass(slots=True)
class PendingCall:
    """A call under way: its atomic parts in the order they reach the tables, and the answers so far.

    `repeating` says that the present part was applied, its reply was lost, and the SDK will send it again.
    """

    call: Call
    parts: list[Call]
    order: Sequence[int]
    answers: dict[int, Any] = field(default_factory=dict)
    repeating: bool = False

    @property
    def part(self) -> Call:
        """Return the part that is applied next."""
        return self.parts[self.order[len(self.answers)]]

    @property
    def is_answered(self) -> bool:
        """Return True if every part has its answer."""
        return len(self.answers) == len(self.parts)

    def note(self, answer: Any) -> None:
        """Take the answer of the present part."""
        self.answers[self.order[len(self.answers)]] = answer
        self.repeating = False

    def answer(self) -> Any:
        """Return the answer of the whole call."""
        return join(self.call, [self.answers[index] for index in range(len(self.parts))])


def split(call: Call) -> list[Call]:
    """Cut a call into its atomic parts: on DynamoDB, only a write or a read of one row is atomic."""
    match call.key, call.args:
        case "items.put_many", (arrivals, now):
            return [Call("items", "put", (arrival, now)) for arrival in arrivals]
        case "items.skip", (tombstones, now):
            return [Call("items", "skip", (replace(tombstones, seqs=(seq,)), now)) for seq in tombstones.seqs]
        case "items.delete", (queue, after, through, _):
            return [Call("items", "delete", (queue, seq - 1, seq, 1)) for seq in range(after + 1, through + 1)]
        case "heads.peek", (queue, seq):
            return [Call("cursors", "get", (queue,)), Call("items", "page", (queue, seq - 1, seq, 1))]
        case "checkpoints.standing", (consumer, queue, slot):
            slots = [] if slot is None else [Call("items", "page", (queue, slot - 1, slot, 1))]
            return [Call("checkpoints", "standing", (consumer, queue)), Call("cursors", "get", (queue,)), *slots]
    return [call]


def join(call: Call, answers: list[Any]) -> Any:
    """Return the answer of a call, from those of its parts."""
    if call.key == "items.put_many":
        return [answer.error() if isinstance(answer, Unavailable) else answer for answer in answers]
    failed = [answer for answer in answers if isinstance(answer, Unavailable | Bug)]
    if failed:
        return failed[0]
    joined: Any = None
    match call.key:
        case "items.delete":
            joined = sum(answers)
        case "items.skip":
            joined = tuple(seq for answer in answers for seq in answer)
        case "heads.peek":
            joined = Head(answers[0], bool(answers[1].slots))
        case "checkpoints.standing" if len(answers) > 1:
            taken = bool(answers[2].slots) if len(answers) > 2 else None  # noqa: PLR2004  # with a slot
            joined = Standing(answers[0].checkpoint, answers[1], taken)
        case _:
            joined = answers[0]
    return joined
