"""One simulated process: a sorter whose life goes from one store call to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StreamSortError
from stream_sort.sorter import Options, Sorter
from stream_sort.testing.simulation.calls import Flight, Pending, Recorder, split
from stream_sort.testing.simulation.operations import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from stream_sort.hints import Hint
    from stream_sort.registrar import Known
    from stream_sort.testing.simulation.operations import Attempt


@dataclass(frozen=True, slots=True)
class Program:
    """What every process runs; a mutant changes one of these."""

    options: Options
    queues: Iterable[str]
    sorter: type[Sorter] = Sorter
    recorder: type[Recorder] = Recorder


@dataclass(slots=True)
class Process:
    """A process and its memory. To kill it, drop it: nothing of the services runs on."""

    name: str
    program: Program
    clock: Callable[[], float]
    memory: dict[str, Hint] = field(default_factory=dict)
    registered: dict[str, Known] = field(default_factory=dict)
    rng: Random | None = None
    attempt: Attempt | None = None
    flight: Flight | None = None
    result: Any = None
    history: list[Any] = field(default_factory=list)

    def begin(self, attempt: Attempt) -> None:
        """Start an operation and run to its first store call."""
        self.attempt, self.result, self.history = attempt, None, []
        self._proceed()

    def feed(self, answer: Any) -> None:
        """Take the answer of the part under way; go on to the next part, the next call, or the end."""
        if self.flight is None:
            raise RuntimeError(f"{self.name} waits for no answer")
        self.flight.note(answer)
        if self.flight.landed:
            self.history.append(self.flight.answer())
            self._proceed()

    def _proceed(self) -> None:
        while True:
            recorder = self.program.recorder(self.history, self.clock)
            recorder.registered = dict(self.registered)
            sorter = self.program.sorter(recorder.stores(), self.program.options, recorder.clock)
            hints = sorter._intake.hints  # noqa: SLF001  # the memory that a replay starts from
            for queue, hint in self.memory.items():
                hints.remember(queue, hint)
            try:
                self.result = self._outcome(sorter, recorder)
            except Pending as pending:
                self.flight = self._take_off(pending)
                if self.flight.parts:
                    return
                self.history.append(self.flight.answer())
                continue
            self.flight = None
            known = ((queue, hints.recall(queue)) for queue in self.program.queues)
            self.memory = {queue: hint for queue, hint in known if hint is not None}
            self.registered = recorder.registered
            return

    def _outcome(self, sorter: Sorter, recorder: Recorder) -> Any:
        if self.attempt is None:
            raise RuntimeError(f"{self.name} has nothing to do")
        try:
            return self.attempt.operation.run(sorter, recorder)
        except StreamSortError as error:
            return Failed(error)

    def _take_off(self, pending: Pending) -> Flight:
        parts = split(pending.call)
        order = list(range(len(parts)))
        if self.rng is not None:
            self.rng.shuffle(order)
        return Flight(pending.call, parts, order)
