"""Every interleaving of a few small operations, with every crash and every repeated request, one state at a time.

A process is a function of its answers, so a state is small: the tables, how far each process is, and the
faults left. States that were met before are not searched again; executions are counted all the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.model.outcomes import Status
from stream_sort.model.slots import Entry
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure, Step
from stream_sort.testing.simulation.operations import Attempt, Operation
from stream_sort.testing.simulation.oracle import Oracle, SlotContent
from stream_sort.testing.simulation.outcome_claims import judge, statuses
from stream_sort.testing.simulation.variant import PRODUCTION, Variant
from tests.simulation.search.cases import QUEUE, Case
from tests.simulation.search.histories import DEAD, Histories, run_alone
from tests.simulation.search.worlds import copy_of, describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.testing.simulation.calls import Call
    from stream_sort.testing.simulation.world import World


NOBODY = -1


class State(NamedTuple):
    """Where a search stands: numbers of the world and of each process's history, who sends again, faults left.

    A tuple, because millions of them are hashed.
    """

    world: int
    histories: tuple[int, ...]
    repeating: int
    crashes: int
    repeats: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search went through: distinct states, and complete executions over all ways through them."""

    case: str
    states: int
    executions: int


class Search:
    """The search of one case. Worlds and transitions are numbered as they are first met."""

    def __init__(self, case: Case, variant: Variant = PRODUCTION) -> None:
        self._case = case
        self._variant = variant
        self._faults = (case.crashes, case.repeats)
        self._histories = Histories(variant)
        self._worlds: list[World] = []
        self._numbers: dict[str, int] = {}
        self._effects: dict[tuple[int, str], tuple[int, Any]] = {}
        self._counts: dict[State, int] = {}
        self._steps: dict[tuple[int, int], tuple[int, int]] = {}
        self._path: list[tuple[int, Call, str, int]] = []

    def run(self) -> SearchResult:
        """Search everything; raises SimulationFailure with the interleaving that broke an invariant."""
        try:
            with self._variant.installed():
                executions = self._count(self._begin())
        except InvariantBroken as broken:
            lines = [str(step) for step in self._described_path()]
            command = self._variant.command("exhaustive")
            raise SimulationFailure(self._case.name, broken, lines, command) from None
        return SearchResult(self._case.name, len(self._counts), executions)

    def _described_path(self) -> Iterator[Step]:
        """Describe the path to the present state."""
        for number, (index, part, fault, world) in enumerate(self._path, 1):
            _, answer = self._effects[world, str(part)]
            yield Step(number, f"writer{index}", part, fault, "nothing" if fault == "killed before" else answer)

    def _begin(self) -> State:
        world = self._variant.world()
        memories = [run_alone(self._variant, world, operation).memory for operation in self._case.before]
        memory = memories[0] if self._case.stale else {}
        histories = tuple(self._histories.start(operation, memory) for operation in self._case.operations)
        return State(self._number(world), histories, NOBODY, *self._faults)

    def _count(self, state: State) -> int:
        """Count the complete executions that lead on from here."""
        known = self._counts.get(state)
        if known is not None:
            return known
        ways, ended = 0, True
        for index, history in enumerate(state.histories):
            part = self._histories.part(history)
            if part is not None:
                ended = False
                for fault, following in self._choices(state, index, part):
                    self._path.append((index, part, fault, state.world))
                    ways += self._count(following)
                    self._path.pop()
        if ended:
            self._check_end(state)
            ways = 1
        self._counts[state] = ways
        return ways

    def _choices(self, state: State, index: int, part: Call) -> Iterator[tuple[str, State]]:
        world, histories, repeating, crashes, repeats = state
        changed, onward = self._step(world, histories[index], part)
        before, behind = histories[:index], histories[index + 1 :]
        waiting = NOBODY if repeating == index else repeating
        yield "", State(changed, (*before, onward, *behind), waiting, crashes, repeats)
        if part.is_read:
            # Nobody sees a read: dying around it is dying around the write before or after it, and a read
            # that is sent again is a read that was late.
            return
        if crashes:
            yield "killed before", State(world, (*before, DEAD, *behind), waiting, crashes - 1, repeats)
            yield "killed after", State(changed, (*before, DEAD, *behind), waiting, crashes - 1, repeats)
        if repeats and repeating == NOBODY:
            yield "sent again", State(changed, histories, index, crashes, repeats - 1)

    def _step(self, world: int, history: int, part: Call) -> tuple[int, int]:
        """Return the numbers of the world and of the history that one part leads to."""
        step = self._steps.get((world, history))
        if step is None:
            changed, answer = self._apply(world, part)
            step = self._steps[world, history] = (changed, self._histories.follow(history, answer))
        return step

    def _apply(self, number: int, part: Call) -> tuple[int, Any]:
        """Do a part to a world; the invariants of single writes, I1, I5 and I6, are checked on the way."""
        key = (number, str(part))
        if key not in self._effects:
            before = self._worlds[number]
            after = copy_of(before)
            answer = after.apply(part)
            oracle = _observed(before)
            oracle.world = after
            try:
                oracle.observe(QUEUE, Attempt(0, self._author(part)))
            except InvariantBroken as broken:
                raise InvariantBroken(broken.number, f"{broken.problem}, by {part}") from None
            self._effects[key] = (self._number(after), answer)
        return self._effects[key]

    def _author(self, part: Call) -> Operation:
        """Return an operation that may make this part, if it empties a slot: the oracle asks what for."""
        name = "withdraw" if part.port == "withdrawals" else "trim"
        named = [one for one in self._case.operations if one.name == name]
        others = [one for one in self._case.operations if one.name != "withdraw"]
        return (named or others or self._case.operations)[0]

    def _number(self, world: World) -> int:
        key = describe(world)
        if key not in self._numbers:
            self._numbers[key] = len(self._worlds)
            self._worlds.append(world)
        return self._numbers[key]

    def _check_end(self, state: State) -> None:
        """Deliver again what was killed; then I2, and I6 for what every operation said."""
        world = copy_of(self._worlds[state.world])
        for operation, history in zip(self._case.operations, state.histories, strict=True):
            if history == DEAD:
                run_alone(self._variant, world, operation)
        oracle = _observed(world)
        oracle.check_rest()
        moved = Counter({QUEUE: len(world.tables.queue(QUEUE).slots)})
        accepted: Counter[int] = Counter()
        for operation, history in zip(self._case.operations, state.histories, strict=True):
            if history != DEAD:
                attempt = Attempt(0, operation, starts={QUEUE: 1}, moved=moved)
                result = self._histories.result(history)
                judge(attempt, result, oracle)
                accepted.update(
                    message["seq"] for message, status in statuses(attempt, result) if status is Status.ACCEPTED
                )
        # What was withdrawn made room for another message.
        accepted.subtract(one.seq for one in world.tables.withdrawn.get(QUEUE, {}).values())
        if accepted and max(accepted.values()) > 1:
            raise InvariantBroken("I6", f"one slot accepted twice: {dict(accepted)}")


def _observed(world: World) -> Oracle:
    oracle = Oracle(world, 0)
    for one in world.tables.withdrawn.get(QUEUE, {}).values():
        # When it arrived is not kept; it may have been any time.
        entry = SlotContent(Entry(one.seq, one.message, arrived_at=0.0), 0)
        oracle.withdrawn[QUEUE].setdefault(one.seq, []).append(entry)
    oracle.observe(QUEUE, Attempt(0, Operation("advance", QUEUE)))
    return oracle
