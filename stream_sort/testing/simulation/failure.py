"""The error of a simulation: which invariant does not hold, the trace, and the command that shows it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class InvariantBroken(Exception):
    """An invariant of DESIGN's table does not hold; `number` is its name there."""

    def __init__(self, number: str, problem: str) -> None:
        super().__init__(f"{number}: {problem}")
        self.number = number
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return InvariantBroken, (self.number, self.problem)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a trace, kept as values and written out only when somebody reads it."""

    number: int
    who: str
    what: Any
    fault: str = ""
    answer: Any = ""

    def __str__(self) -> str:
        fault = f" !{self.fault}" if self.fault else ""
        answer = f" -> {self.answer}" if self.answer != "" else ""
        return f"{self.number:4} {self.who:<8} {self.what}{fault}{answer}"


@dataclass(slots=True)
class Trace:
    """All that happened, in order."""

    steps: list[Step] = field(default_factory=list)

    def add(self, who: str, what: Any, fault: str = "", answer: Any = "") -> None:
        """Note a step."""
        self.steps.append(Step(len(self.steps) + 1, who, what, fault, answer))

    def lines(self) -> list[str]:
        """Return the trace as text."""
        return [str(step) for step in self.steps]


class SimulationFailure(AssertionError):
    """A run that broke an invariant, with its whole trace and the command that replays it."""

    def __init__(self, where: str, broken: InvariantBroken, lines: list[str], command: str) -> None:
        trace = "\n".join(lines)
        super().__init__(f"{where}: {broken}\n{trace}\n{where}: {broken}\nreplay: {command}")
        self.where = where
        self.number = broken.number
        self.problem = broken.problem
        self.lines = lines
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        broken = InvariantBroken(self.number, self.problem)
        return SimulationFailure, (self.where, broken, self.lines, self.command)
