"""One seed: a queue grows, runs archive and trim it, runs die, files get lost; the oracle looks after each step."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure
from stream_sort.testing.simulation.simulator import RunReport
from tests.simulation.archive.modes import MODES
from tests.simulation.archive.mutants import PRODUCTION
from tests.simulation.archive.oracle import Oracle
from tests.simulation.archive.seams import installed
from tests.simulation.archive.world import World

if TYPE_CHECKING:
    from tests.simulation.archive.modes import Mode
    from tests.simulation.archive.mutants import Mutant

SEGMENT_ROWS = (1, 2, 3, 5, 8, 100)


def simulate(mode: str, seed: int, mutant: Mutant = PRODUCTION) -> RunReport:
    """Run one seed; raises SimulationFailure where something does not hold that must."""
    course = Course(MODES[mode], seed)
    world = course.world
    try:
        with installed(world) as patch:
            mutant.install(patch)
            course.run()
    except Exception as error:
        broken = (
            error if isinstance(error, InvariantBroken) else InvariantBroken("A9", f"{type(error).__name__}: {error}")
        )
        command = f"python -m tests.simulation.archive {mode} {seed}"
        command += f" --mutant {mutant.name}" if mutant.name else ""
        raise SimulationFailure(f"{mode} seed {seed}", broken, world.trace.lines(), command) from error
    return RunReport(seed, world.trace, world.met)


class Course:
    """What happens in one seed."""

    def __init__(self, mode: Mode, seed: int) -> None:
        self._rng = Random(f"{mode.name}{seed}")
        self._mode = mode
        self.world = World(self._rng)
        self._oracle = Oracle(self.world, mode)

    def run(self) -> None:
        """A few steps, each judged."""
        rng, world = self._rng, self.world
        self._release()
        if rng.random() < 0.25:
            world.trim_by_hand(rng.choice(list(world.released)))
        for _ in range(rng.randint(3, 9)):
            (step,) = rng.choices([self._release, self._archive, self._mishap], weights=[30, 45, 25])
            step()

    def _release(self) -> None:
        self.world.release(self._rng.randint(1, 12))

    def _archive(self) -> None:
        """A run of archive, which may die."""
        self._run(self._rng.randint(1, 14) if self._rng.random() < 0.45 else None)

    def _mishap(self) -> None:
        """Something gets lost, and a run mends it if it must. Where nothing may get lost, it is one more run."""
        if not self._mode.mishaps:
            self._archive()
        elif self.world.names:
            self._rng.choice(self._mode.mishaps)(self.world, self._rng)
            self._oracle.judge()
            if self._mode.is_mended:
                self._run(None)

    def _run(self, changes: int | None) -> None:
        rng, world = self._rng, self.world
        report = world.run(rng.choice(SEGMENT_ROWS), trim=rng.random() < self._mode.trims, changes=changes)
        self._oracle.judge(report)
        if report is not None and report.complete and not self._mode.exchanges and rng.random() < 0.3:
            before = dict(world.files.contents)
            again = world.run(rng.choice(SEGMENT_ROWS), trim=False)
            assert again is not None
            self._oracle.judge_again(before, again)
