"""Does the simulator find a mutant? By seeds, and by exhaustive search where the fault it needs is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.testing.simulation.cases import CASES
from stream_sort.testing.simulation.consumer_simulator import simulate_consumers
from stream_sort.testing.simulation.exhaustive import Search
from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.gap_mutants import GAP_MUTANTS
from stream_sort.testing.simulation.simulator import simulate

if TYPE_CHECKING:
    from stream_sort.testing.simulation.variant import Variant

MAX_SEEDS = 4_000

# These need a fault or a mishap that the exhaustive search has not: stale or failed reads, a lost row, a trim, a bug,
# time that passes, or time that runs out.
SEEDS_ONLY = frozenset(
    {"stale-reads", "errors-are-empty", "recreated-cursor", "unproved-tombstones", "trusted-hint"}
    | {"left-without-mark", "trusted-mark", *GAP_MUTANTS}
)

# One interleaving in very many shows these: a search finds it at once, so many seeds hardly ever.
SEARCH_ONLY = frozenset(
    {
        "mark-tried-once",
        "clear-without-look",
        "repeated-marks",
        "asked-once",
        "unpinned-start",
        "overtaken-alarm",
    }
)


def hunt_by_seeds(mutant: Variant, seeds: int = MAX_SEEDS) -> SimulationFailure | None:
    """The first failure of a mutant among so many seeds; None also if seeds are no way to find it."""
    for seed in range(0 if mutant.name in SEARCH_ONLY else seeds):
        try:
            simulate(seed, mutant)
        except SimulationFailure as failure:
            return failure
    return None


def hunt_consumers(mutant: Variant, seeds: int = MAX_SEEDS) -> SimulationFailure | None:
    """The first failure of a consumer's mutant among so many seeds."""
    for seed in range(seeds):
        try:
            simulate_consumers(seed, mutant)
        except SimulationFailure as failure:
            return failure
    return None


def hunt_by_search(mutant: Variant) -> SimulationFailure | None:
    """The first interleaving that shows a mutant; None also if it needs what is not searched."""
    if mutant.name in SEEDS_ONLY:
        return None
    for case in CASES:
        try:
            Search(case, mutant).run()
        except SimulationFailure as failure:
            return failure
    return None
