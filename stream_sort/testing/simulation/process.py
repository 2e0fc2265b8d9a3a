"""One simulated process: a sorter that goes from one store call to the next.

Its run is suspended in between, or begins again from its start each time. Both reach the same calls with the same
answers. To suspend takes greenlet, and a little more than half the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.errors import StreamSortError
from stream_sort.ports import Homes
from stream_sort.sorter import Options, Sorter
from stream_sort.testing.simulation.calls import CallSuspended, PendingCall, Recorder, split
from stream_sort.testing.simulation.operations import Failed

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError:  # pragma: no cover  # depends on what is installed
    greenlet = None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from stream_sort.consume.registration import Known
    from stream_sort.release.position_cache import Hint
    from stream_sort.testing.simulation.calls import Call
    from stream_sort.testing.simulation.operations import Attempt, Operation


@dataclass(frozen=True, slots=True)
class Program:
    """The settings and classes that every process runs; a mutant changes one of these."""

    options: Options
    queues: Iterable[str]
    sorter: type[Sorter] = Sorter
    recorder: type[Recorder] = Recorder


class End(NamedTuple):
    """The result of an operation, and all that its process remembers from then on."""

    result: Any
    memory: dict[str, Hint]
    registered: dict[str, Known]


@dataclass(frozen=True, slots=True)
class OperationRun:
    """An operation, and what its process remembered when it began.

    It does not know the process: whoever drops that drops a suspended run with it.
    """

    program: Program
    operation: Operation
    memory: dict[str, Hint]
    registered: dict[str, Known]

    def __call__(self, recorder: Recorder) -> End:
        """Do it."""
        recorder.registered = dict(self.registered)
        sorter = self.program.sorter(Homes(recorder.home()), self.program.options, recorder.clock)
        hints = sorter._intake.hints  # noqa: SLF001  # the memory that a run starts from
        for queue, hint in self.memory.items():
            hints.remember(queue, hint)
        result = self._outcome(sorter, recorder)
        known = ((queue, hints.recall(queue)) for queue in self.program.queues)
        return End(result, {queue: hint for queue, hint in known if hint is not None}, recorder.registered)

    def _outcome(self, sorter: Sorter, recorder: Recorder) -> Any:
        try:
            return self.operation.run(sorter, recorder)
        except StreamSortError as error:
            return Failed(error)


@dataclass(frozen=True, slots=True)
class Ended:
    """What an operation returned at its end."""

    value: Any


def start_run(work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> ReplayedRun | SuspendedRun:
    """Begin a run of `work`; each recorder answers from the history of the one run."""
    return ReplayedRun(work, recorder) if greenlet is None else SuspendedRun(work, recorder)


class ReplayedRun:
    """Runs from the start to each next call."""

    def __init__(self, work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> None:
        self._work = work
        self._recorder = recorder

    def go_on(self) -> Call | Ended:
        """Run to the first call that has no answer in the history yet, or to the end."""
        try:
            return Ended(self._work(self._recorder()))
        except CallSuspended as stopped:
            return stopped.call


class SuspendedRun:
    """Stands still at each call. When it is dropped, its operation unwinds, and reaches no call any more."""

    def __init__(self, work: Callable[[Recorder], Any], recorder: Callable[[], Recorder]) -> None:
        own = recorder()
        own.wait = _Wait()
        self._greenlet = greenlet(lambda: Ended(work(own)))

    def go_on(self) -> Call | Ended:
        """Run to the first call that has no answer in the history yet, or to the end."""
        reached: Call | Ended = self._greenlet.switch()
        return reached


class _Wait:
    """Gives a call to the scheduler, and comes back when the history holds its answer."""

    def __init__(self) -> None:
        self._dropped = False

    def __call__(self, call: Call) -> None:
        if self._dropped:
            raise GreenletExit
        try:
            getcurrent().parent.switch(call)
        except GreenletExit:
            self._dropped = True
            raise


@dataclass(slots=True)
class SimulatedProcess:
    """A process and its memory. To kill it, drop it: nothing of the services runs on."""

    name: str
    program: Program
    clock: Callable[[], float]
    memory: dict[str, Hint] = field(default_factory=dict)
    registered: dict[str, Known] = field(default_factory=dict)
    rng: Random | None = None
    attempt: Attempt | None = None
    pending: PendingCall | None = None
    result: Any = None
    history: list[Any] = field(default_factory=list)
    run: ReplayedRun | SuspendedRun | None = None

    def begin(self, attempt: Attempt) -> None:
        """Start an operation and run to its first store call."""
        history: list[Any] = []
        recorder, clock = self.program.recorder, self.clock
        self.attempt, self.result, self.history = attempt, None, history
        work = OperationRun(self.program, attempt.operation, self.memory, self.registered)
        self.run = start_run(work, lambda: recorder(history, clock))
        self._proceed(self.run)

    def feed(self, answer: Any) -> None:
        """Take the answer of the part under way; go on to the next part, the next call, or the end."""
        if self.pending is None or self.run is None:
            raise RuntimeError(f"{self.name} waits for no answer")
        self.pending.note(answer)
        if self.pending.is_answered:
            self.history.append(self.pending.answer())
            self._proceed(self.run)

    def may_create(self, queue: str) -> bool:
        """Return True if a cursor row that is absent by now may still be created: it was checked before."""
        if self.pending is None or self.attempt is None:
            return False
        operation, call = self.attempt.operation, self.pending.call
        creates = call.key == "cursors.create" and call.queue == queue
        return creates or (operation.name in {"open", "set_policy"} and operation.queue == queue)

    def _proceed(self, run: ReplayedRun | SuspendedRun) -> None:
        while not isinstance(reached := run.go_on(), Ended):
            self.pending = self._pending_call(reached)
            if self.pending.parts:
                return
            self.history.append(self.pending.answer())
        self.pending = self.run = None
        self.result, self.memory, self.registered = reached.value

    def _pending_call(self, call: Call) -> PendingCall:
        parts = split(call)
        order = list(range(len(parts)))
        if self.rng is not None:
            self.rng.shuffle(order)
        return PendingCall(call, parts, order)
