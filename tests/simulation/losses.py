"""Long runs of one queue that loses messages, on the simulated stores: its policy must keep up, whatever was lost."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from stream_sort.model.policy import GapPolicy
from stream_sort.sorter import Options
from stream_sort.testing.simulation.failure import InvariantBroken, SimulationFailure
from stream_sort.testing.simulation.harness import Harness
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.variant import PRODUCTION, Variant
from stream_sort.testing.simulation.workload import WorkloadPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

QUEUE = "lossy"
SWEEP_EVERY = 60


@dataclass(frozen=True, slots=True)
class Losses:
    """A stream of so many messages a minute of which every n-th is lost, for some minutes, and its gap policy."""

    minutes: int = 60
    a_minute: int = 30
    lost_each: int = 10
    skip_after: float = 30.0


def simulate_stream(losses: Losses, variant: Variant = PRODUCTION) -> None:
    """Raise SimulationFailure if a queue falls further behind its end than its policy and two sweeps explain."""
    _run("a lossy stream", losses.skip_after, variant, lambda scene: _stream(scene, losses))


def simulate_even(last: int, skip_after: float, variant: Variant = PRODUCTION) -> None:
    """Raise SimulationFailure if every second seq up to `last` is not released by one sweep when it is due."""
    _run("every second seq", skip_after, variant, lambda scene: _even(scene, last, skip_after))


class _Scene:
    """One queue, one process at a time, no faults: time and order are all there is."""

    def __init__(self, skip_after: float, variant: Variant) -> None:
        options = Options(gap_policy=GapPolicy(skip_after), in_flight=1)
        rng = Random(0)  # repeatable, not secret
        plan = WorkloadPlan(options, (QUEUE,))
        self.harness = Harness(plan, variant, rng)

    def do(self, operation: Operation) -> None:
        process = self.harness.process("alone")
        self.harness.begin(process, operation)
        while process.pending is not None:
            self.harness.feed(process, self.harness.apply(process, process.pending.part))
        self.harness.finish(process)

    def put(self, seqs: Iterable[int]) -> None:
        messages: tuple[dict[str, Any], ...] = tuple({"queue": QUEUE, "seq": seq} for seq in seqs)
        self.do(Operation("put_many", messages=messages))

    def position(self) -> int:
        return self.harness.world.position(QUEUE) or 0


def _run(what: str, skip_after: float, variant: Variant, play: Callable[[_Scene], None]) -> None:
    scene = _Scene(skip_after, variant)
    try:
        with variant.installed():
            play(scene)
    except InvariantBroken as broken:
        lines, command = scene.harness.trace.lines()[-50:], "pytest tests/simulation/test_losses.py"
        raise SimulationFailure(what, broken, lines, command) from None


def _stream(scene: _Scene, losses: Losses) -> None:
    for minute in range(losses.minutes):
        first = minute * losses.a_minute
        for part in range(6):
            seqs = range(first + part * losses.a_minute // 6, first + (part + 1) * losses.a_minute // 6)
            scene.put(seq for seq in seqs if seq % losses.lost_each != losses.lost_each // 2)
            scene.harness.world.now += SWEEP_EVERY / 6
        behind = first + losses.a_minute - 1 - scene.position()
        allowed = losses.a_minute / SWEEP_EVERY * (losses.skip_after + 2 * SWEEP_EVERY)
        if behind > allowed:
            raise InvariantBroken("G2", f"after {minute + 1} minutes it is {behind} messages behind")
        scene.do(Operation("sweep_all"))


def _even(scene: _Scene, last: int, skip_after: float) -> None:
    scene.put(range(2, last + 1, 2))
    scene.harness.world.now += skip_after
    scene.do(Operation("sweep_all"))
    if scene.position() != last:
        raise InvariantBroken("G2", f"released through {scene.position()}, not {last}")
