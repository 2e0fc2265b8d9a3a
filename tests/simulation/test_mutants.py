"""A simulator that finds nothing proves nothing: every known-bad variant breaks an invariant where it looks."""

from functools import cache

import pytest

from stream_sort.testing.simulation.failure import SimulationFailure
from stream_sort.testing.simulation.simulator import simulate
from stream_sort.testing.simulation.variant import PRODUCTION
from tests.simulation.hunt import SEARCH_ONLY, SEEDS_ONLY, hunt_by_search, hunt_by_seeds, simulation_of
from tests.simulation.mutants import MUTANTS

BROKEN = {
    "unconditional-move": {"I1", "I6"},
    "exit-on-lost-condition": {"I2"},
    "no-read-after-update": {"I2"},
    "only-the-next": {"I2", "I5", "I10"},
    "stale-reads": {"I2", "I10"},
    "errors-are-empty": {"I10"},
    "skip-by-moving": {"I1"},
    "overwriting-puts": {"I6"},
    "recreated-cursor": {"I10"},
    "unproved-tombstones": {"I10"},
    "repeated-marks": {"I2"},
    "left-without-mark": {"I2"},
    "trusted-mark": {"I2", "I5", "I10"},
    "mark-tried-once": {"I2"},
    "trusted-hint": {"I2", "I5"},
    "clear-without-look": {"I2"},
    "floor-last": {"I5"},
    "unasked-consumers": {"I5"},
    "asked-once": {"I5"},
    "unpinned-start": {"I5"},
    "no-proof-left": {"I10"},
    "overtaken-alarm": {"I5"},
    "taken-back-blindly": {"I5", "I10"},
    "restarted-clock": {"G2"},
    "first-gap-only": {"G2"},
    "as-old-as-the-first": {"G1"},
    "fills-blindly": {"G1"},
    "one-queue-ends-the-sweep": {"I9"},
    "no-look-before": {"I5"},
    "withdrawn-released": {"I1", "I5"},
    "uncounted-withdrawal": {"I1"},
    "trusted-own": {"I1"},
    "uncounted-move": {"I1"},
    "old-image-range": {"I3"},
    "unconditional-checkpoint": {"I3", "I4"},
    "checkpoint-first": {"I3"},
    "goes-on": {"I3"},
    "blames-outages": {"I8"},
    "never-notes": {"I8"},
    "consumer-recreates-cursor": {"I10"},
    "bug-ends-run": {"I9"},
    "returns-anew": {"I3"},
    "registers-once": {"I5"},
    "sweep-registers": {"I5"},
}


@cache
def caught_by_seeds(name: str) -> SimulationFailure | None:
    return hunt_by_seeds(MUTANTS[name])


def test_every_mutant_is_hunted() -> None:
    assert BROKEN.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - SEARCH_ONLY))
def test_seeds_catch_the_mutant_and_name_what_it_breaks(name: str) -> None:
    failure = caught_by_seeds(name)
    assert failure is not None, "not caught"
    assert failure.number in BROKEN[name], str(failure)


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - SEEDS_ONLY))
def test_the_exhaustive_search_catches_the_mutant(name: str) -> None:
    failure = hunt_by_search(MUTANTS[name])
    assert failure is not None, "not caught"
    assert failure.number in BROKEN[name], str(failure)


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - SEARCH_ONLY))
def test_the_services_as_they_ship_pass_the_seed_that_catches_the_mutant(name: str) -> None:
    failure = caught_by_seeds(name)
    assert failure is not None
    simulation_of(MUTANTS[name])(int(failure.where.removeprefix("seed ")), PRODUCTION)


def test_a_mutant_is_gone_when_its_run_ends() -> None:
    assert caught_by_seeds("no-read-after-update") is not None
    for seed in range(20):
        simulate(seed)
