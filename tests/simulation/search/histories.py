"""The lives of processes in an exhaustive search: how far each is, numbered, and never run twice."""

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
class Life:
    """A process that got these answers to the parts of its calls, and stands where they brought it."""

    operation: Operation
    memory: dict[str, Hint]
    answers: tuple[Any, ...]
    part: Call | None
    outcome: Any


class Lives:
    """All lives that were met; the clock stands still, so that equal answers lead to equal lives."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant
        self._lives: list[Life] = []
        self._ended: dict[str, int] = {}
        self._next: dict[tuple[int, str], int] = {}

    def start(self, operation: Operation, memory: dict[str, Hint]) -> int:
        """The number of a new life."""
        return self._add(operation, memory, ())

    def follow(self, number: int, answer: Any) -> int:
        """The number of the life that goes on with this answer."""
        key = (number, repr(answer))
        if key not in self._next:
            life = self._lives[number]
            self._next[key] = self._add(life.operation, life.memory, (*life.answers, answer))
        return self._next[key]

    def part(self, number: int) -> Call | None:
        """What a life does next; None if it has ended."""
        return None if number == DEAD else self._lives[number].part

    def result(self, number: int) -> Any:
        """What came out of a life that has ended by itself."""
        return self._lives[number].outcome

    def _add(self, operation: Operation, memory: dict[str, Hint], answers: tuple[Any, ...]) -> int:
        process = new_process(self._variant, memory)
        process.begin(Attempt(0, operation))
        for answer in answers:
            process.feed(answer)
        number = len(self._lives)
        if process.flight is None:
            # Of a life that has ended only what came out of it matters.
            number = self._ended.setdefault(f"{operation} {process.result}", number)
        if number == len(self._lives):
            part = None if process.flight is None else process.flight.part
            self._lives.append(Life(operation, memory, answers, part, process.result))
        return number


def new_process(variant: Variant, memory: dict[str, Hint] | None = None) -> SimulatedProcess:
    """A process on a clock that stands still."""
    program = Program(Options(in_flight=1), (QUEUE,), variant.sorter, variant.recorder)
    return SimulatedProcess("alone", program, lambda: START_TIME, dict(memory or {}))


def run_alone(variant: Variant, world: World, operation: Operation) -> SimulatedProcess:
    """Run an operation to its end with nobody else there."""
    process = new_process(variant)
    process.begin(Attempt(0, operation))
    while process.flight is not None:
        process.feed(world.apply(process.flight.part))
    return process
