"""A simulation that finds nothing proves nothing: every known-bad variant of the archive job is caught."""

from functools import cache

import pytest

from stream_sort.testing.simulation.failure import SimulationFailure
from tests.simulation.archive.__main__ import main
from tests.simulation.archive.mutants import MUTANTS
from tests.simulation.archive.simulator import simulate

MAX_SEEDS = 200
# In which mode a mutant is hunted, and what it breaks there.
BROKEN = {
    "finished-first": ("crash", {"A6"}),
    "watermark-first": ("crash", {"A6"}),
    "manifest-first": ("crash", {"A6"}),
    "left-unmarked": ("crash", {"A5"}),
    "planned-anew": ("promised", {"A2", "A3"}),
    "planned-across": ("lossy", {"A2"}),
    "believed-watermark": ("harsh", {"A4"}),
    "unknown-beginning": ("promised", {"A7"}),
    "unasked-trim": ("exchanged", {"A1"}),
    "unpromised": ("exchanged", {"A8"}),
}


@cache
def caught(name: str) -> SimulationFailure | None:
    mode, _ = BROKEN[name]
    for seed in range(MAX_SEEDS):
        try:
            simulate(mode, seed, MUTANTS[name])
        except SimulationFailure as failure:
            return failure
    return None


def test_every_mutant_is_hunted() -> None:
    assert BROKEN.keys() == MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_seeds_catch_the_mutant_and_name_what_it_breaks(name: str) -> None:
    failure = caught(name)
    assert failure is not None, "not caught"
    assert failure.number in BROKEN[name][1], str(failure)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_job_as_it_ships_passes_the_seed_that_catches_the_mutant(name: str) -> None:
    failure = caught(name)
    assert failure is not None
    mode, seed = failure.where.split(" seed ")
    simulate(mode, int(seed))


def test_a_failure_names_what_does_not_hold_and_the_command_that_shows_it_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failure = caught("manifest-first")
    assert failure is not None
    for part in (f"{failure.where}: A6:", "archive  segments of", failure.command, *failure.lines):
        assert part in str(failure)
    assert main(failure.command.split()[3:]) == 1
    assert str(failure) in capsys.readouterr().out
