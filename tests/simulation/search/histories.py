"""The histories of processes in an exhaustive search: how far each is, numbered, and never run twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.sorter import Options
from stream_sort.testing.simulation.operations import Attempt, Operation
from stream_sort.testing.simulation.process import Program, SimulatedProcess
from stream_sort.testing.simulation.world import START_TIME
from tests.simulation.search.cases import QUEUE

if TYPE_CHECKING:
    from stream_sort.release.position_cache import Hint
    from stream_sort.testing.simulation.calls import Call
    from stream_sort.testing.simulation.variant import Variant
    from stream_sort.testing.simulation.world import World

DEAD = -1


@dataclass(frozen=True, slots=True)
class History:
    """A process that got these answers to the parts of its calls, and stands where they brought it."""

    operation: Operation
    memory: dict[str, Hint]
    answers: tuple[Any, ...]
    part: Call | None
    outcome: Any


class Histories:
    """All histories that were met; the clock stands still, so that equal answers lead to equal histories."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._histories: list[History] = []
        self._ended: dict[str, int] = {}
        self._next: dict[tuple[int, str], int] = {}

    def start(self, operation: Operation, memory: dict[str, Hint]) -> int:
        """Return the number of a new history."""
        return self._add(operation, memory, ())

    def follow(self, number: int, answer: Any) -> int:
        """Return the number of the history that goes on with this answer."""
        key = (number, repr(answer))
        if key not in self._next:
            history = self._histories[number]
            self._next[key] = self._add(history.operation, history.memory, (*history.answers, answer))
        return self._next[key]

    def part(self, number: int) -> Call | None:
        """Return what a process does next; None if it has ended."""
        return None if number == DEAD else self._histories[number].part

    def result(self, number: int) -> Any:
        """Return the result of a process that has ended by itself."""
        return self._histories[number].outcome

    def _add(self, operation: Operation, memory: dict[str, Hint], answers: tuple[Any, ...]) -> int:
        process = new_process(self._variant, memory)
        process.begin(Attempt(0, operation))
        for answer in answers:
            process.feed(answer)
        number = len(self._histories)
        if process.pending is None:
            # Of a history that has ended only what came out of it matters.
            number = self._ended.setdefault(f"{operation} {process.result}", number)
        if number == len(self._histories):
            part = None if process.pending is None else process.pending.part
            self._histories.append(History(operation, memory, answers, part, process.result))
        return number


def new_process(variant: Variant, memory: dict[str, Hint] | None = None) -> SimulatedProcess:
    """Return a process on a clock that stands still."""
    program = Program(Options(in_flight=1), (QUEUE,), variant.sorter, variant.recorder)
    return SimulatedProcess("alone", program, lambda: START_TIME, dict(memory or {}))


def run_alone(variant: Variant, world: World, operation: Operation) -> SimulatedProcess:
    """Run an operation to its end with nobody else there."""
    process = new_process(variant)
    process.begin(Attempt(0, operation))
    while process.pending is not None:
        process.feed(world.apply(process.pending.part))
    return process
