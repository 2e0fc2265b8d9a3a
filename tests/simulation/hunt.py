"""Look for a mutant: by seeds, and by exhaustive search where the fault it needs is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.simulator import simulate, simulate_consumers
from tests.simulation.mutants import CONSUMER_MUTANTS, GAP_MUTANTS
from tests.simulation.search.cases import CASES
from tests.simulation.search.exhaustive import Search

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.testing.simulation.simulator import RunReport
    from stream_sort.testing.simulation.variant import Variant

MAX_SEEDS = 4_000

# These need what the exhaustive search has not: consumers that run as functions, stale or failed reads, a lost row, a
# trim, a bug, time that passes, or time that runs out.
SEEDS_ONLY = frozenset(
    {"stale-reads", "errors-are-empty", "recreated-cursor", "unproved-tombstones", "trusted-hint"}
    | {"left-without-mark", "trusted-mark", *(GAP_MUTANTS.keys() - {"fills-blindly"})}
    | CONSUMER_MUTANTS.keys()
)

# One interleaving in very many shows these: a search finds it at once, so many seeds hardly ever.
SEARCH_ONLY = frozenset(
    {"mark-tried-once", "clear-without-look", "repeated-marks", "asked-once", "unpinned-start", "overtaken-alarm"}
)

# Where a hunt looks first: to come there from the beginning takes minutes.
KNOWN_SEEDS = {
    "as-old-as-the-first": 498,
    "fills-blindly": 789,
    "left-without-mark": 751,
    "registers-once": 163,
    "trusted-mark": 1755,
    "trusted-own": 111,
    "uncounted-move": 1483,
    "uncounted-withdrawal": 111,
    "unproved-tombstones": 92,
}
KNOWN_CASES = {
    "asked-once": "a trim and a new consumer",
    "clear-without-look": "a sweep and two messages",
    "exit-on-lost-condition": "a withdrawal and a batch",
    "fills-blindly": "a withdrawal and a sweep that gives up",
    "floor-last": "a trim and a new consumer",
    "mark-tried-once": "a batch before a gap",
    "no-look-before": "a withdrawal and a batch",
    "no-proof-left": "a trim, a message and a new consumer",
    "no-read-after-update": "a withdrawal and another message",
    "only-the-next": "a trim and a repeat, stale memory",
    "overtaken-alarm": "a trim and two runs of a consumer",
    "overwriting-puts": "a withdrawal and another message",
    "repeated-marks": "two sweeps and a message",
    "skip-by-moving": "a withdrawal, a skip and a message",
    "taken-back-blindly": "a trim, a message and a new consumer",
    "trusted-own": "a withdrawal and a batch",
    "unasked-consumers": "a trim and a new consumer",
    "unconditional-move": "a withdrawal and a batch",
    "uncounted-move": "a withdrawal and a batch",
    "uncounted-withdrawal": "a withdrawal and a batch",
    "unpinned-start": "two trims and a new consumer",
    "withdrawn-released": "a withdrawal and a trim",
}


def simulation_of(mutant: Variant) -> Callable[[int, Variant], RunReport]:
    """Return the simulation that shows a mutant: with consumers, if it breaks what they do."""
    return simulate_consumers if mutant.name in CONSUMER_MUTANTS else simulate


def hunt_by_seeds(mutant: Variant) -> SimulationFailure | None:
    """Return a failure of a mutant among many seeds; None also if seeds are no way to find it."""
    run = simulation_of(mutant)
    for seed in () if mutant.name in SEARCH_ONLY else (KNOWN_SEEDS.get(mutant.name, 0), *range(MAX_SEEDS)):
        try:
            run(seed, mutant)
        except SimulationFailure as failure:
            return failure
    return None


def hunt_by_search(mutant: Variant) -> SimulationFailure | None:
    """Return an interleaving that shows a mutant; None also if it needs what is not searched."""
    known = KNOWN_CASES.get(mutant.name)
    for case in () if mutant.name in SEEDS_ONLY else sorted(CASES, key=lambda case: case.name != known):
        try:
            Search(case, mutant).run()
        except SimulationFailure as failure:
            return failure
    return None
