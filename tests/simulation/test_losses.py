"""A queue that loses messages keeps up, and a sweep that restarts the clock or skips one gap does not."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from stream_sort.model.gap_policy import GapPolicy
from stream_sort.sorter import Options
from stream_sort.testing.simulation.failure import InvariantBroken
from stream_sort.testing.simulation.harness import Harness
from stream_sort.testing.simulation.operations import Operation
from stream_sort.testing.simulation.variant import PRODUCTION, Variant
from stream_sort.testing.simulation.workload import WorkloadPlan
from tests.simulation.mutants import MUTANTS

if TYPE_CHECKING:
    from collections.abc import Iterable

QUEUE = "lossy"
SWEEP_EVERY = 60
# Messages a minute, of which every tenth is lost.
A_MINUTE = 30
LOST_EACH = 10


class LossyQueue:
    """One queue, one process at a time, no faults: time and order are all there is."""

    def __init__(self, skip_after: float, variant: Variant) -> None:
        plan = WorkloadPlan(Options(gap_policy=GapPolicy(skip_after), in_flight=1), (QUEUE,))
        self.harness = Harness(plan, variant, Random(0))

    def do(self, operation: Operation) -> None:
        process = self.harness.process("alone")
        self.harness.begin(process, operation)
        while process.pending is not None:
            self.harness.feed(process, self.harness.apply(process, process.pending.part))
        self.harness.finish(process)

    def put(self, seqs: Iterable[int]) -> None:
        self.do(Operation("put_many", messages=tuple({"queue": QUEUE, "seq": seq} for seq in seqs)))

    def wait(self, seconds: float) -> None:
        self.harness.world.now += seconds

    def position(self) -> int:
        return self.harness.world.position(QUEUE) or 0


def simulate_hour(variant: Variant = PRODUCTION) -> None:
    """Raise if the queue falls further behind its end than its policy and two sweeps explain."""
    skip_after = 30.0
    lossy, allowed = LossyQueue(skip_after, variant), A_MINUTE / SWEEP_EVERY * (skip_after + 2 * SWEEP_EVERY)
    with variant.installed():
        for first in range(0, 60 * A_MINUTE, A_MINUTE):
            for part in range(6):
                seqs = range(first + part * A_MINUTE // 6, first + (part + 1) * A_MINUTE // 6)
                lossy.put(seq for seq in seqs if seq % LOST_EACH != LOST_EACH // 2)
                lossy.wait(SWEEP_EVERY / 6)
            behind = first + A_MINUTE - 1 - lossy.position()
            if behind > allowed:
                raise InvariantBroken("G2", f"after {first // A_MINUTE + 1} minutes it is {behind} messages behind")
            lossy.do(Operation("sweep_all"))


def simulate_every_second(variant: Variant = PRODUCTION) -> None:
    """Raise if every second seq is not released by one sweep when it is due."""
    lossy = LossyQueue(10.0, variant)
    with variant.installed():
        lossy.put(range(2, 401, 2))
        lossy.wait(10.0)
        lossy.do(Operation("sweep_all"))
    if lossy.position() != 400:
        raise InvariantBroken("G2", f"released through {lossy.position()}, not 400")


def test_a_lossy_stream_stays_near_its_end_for_a_simulated_hour() -> None:
    simulate_hour()


def test_every_second_seq_is_released_within_one_policy_time_and_one_sweep() -> None:
    simulate_every_second()


@pytest.mark.parametrize("name", ["restarted-clock", "first-gap-only"])
def test_a_lossy_stream_shows_what_does_not_keep_up(name: str) -> None:
    with pytest.raises(InvariantBroken, match=r"G2: after .* messages behind"):
        simulate_hour(MUTANTS[name])


def test_every_second_seq_shows_a_sweep_that_skips_only_the_first_gap() -> None:
    with pytest.raises(InvariantBroken, match="G2: released through"):
        simulate_every_second(MUTANTS["first-gap-only"])
