"""I1, I2, I5, I6, I8 and I10 hold under crashes, lost replies, throttles, trims and lost rows; runs can be replayed."""

import pytest

from stream_sort.testing.__main__ import main
from stream_sort.testing.simulation.simulator import simulate
from stream_sort.testing.simulation.soak import Soaked, soak
from tests.simulation.__main__ import main as search_main
from tests.simulation.hunt import hunt_by_seeds
from tests.simulation.mutants import MUTANTS

SEEDS = 2_000


@pytest.fixture(scope="module")
def soaked() -> Soaked:
    return soak(0, SEEDS)


def test_every_invariant_holds_at_every_step_of_2000_seeds(soaked: Soaked) -> None:
    if soaked.failure:
        raise soaked.failure
    assert soaked.seeds == SEEDS


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("killed before", 1_000),
        ("killed after", 1_000),
        ("sent again", 1_000),
        ("reply lost", 300),
        ("throttled", 300),
        ("lost conditions", 1_000),
        ("stale hints", 200),
        ("capped moves", 1_000),
        ("trimmed", 500),
        ("cut", 300),
        ("taken back", 10),
        ("Trimmed", 150),
        ("NotConsumed", 300),
        ("read at rest", 800),
        ("withdrawn", 300),
        ("cursors lost", 100),
        ("CursorLost", 300),
        ("operations failed", 500),
    ],
)
def test_the_seeds_meet_what_they_are_there_for(soaked: Soaked, what: str, at_least: int) -> None:
    assert soaked.met[what] >= at_least


def test_a_seed_always_takes_the_same_course() -> None:
    for seed in range(20):
        assert simulate(seed).trace.lines() == simulate(seed).trace.lines()


def test_two_seeds_take_different_courses() -> None:
    assert simulate(1).trace.lines() != simulate(2).trace.lines()


def test_a_failure_names_the_invariant_the_seed_the_trace_and_the_command_to_see_it_again() -> None:
    failure = hunt_by_seeds(MUTANTS["skip-by-moving"])
    assert failure is not None
    assert failure.number == "I1"
    assert failure.command == f"python -m tests.simulation replay {failure.where[5:]} --mutant skip-by-moving"
    assert failure.lines[0].split()[:1] == ["1"]
    for part in (f"{failure.where}: I1:", "cursors.move(", failure.command, *failure.lines):
        assert part in str(failure)


def test_replay_prints_the_whole_trace_of_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "7"]) == 0
    printed = capsys.readouterr().out
    assert all(line in printed for line in simulate(7).trace.lines())
    assert "every invariant held" in printed


def test_replay_of_a_failing_seed_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    failure = hunt_by_seeds(MUTANTS["overwriting-puts"])
    assert failure is not None
    assert search_main(failure.command.split()[3:]) == 1
    assert "I6" in capsys.readouterr().out


def test_soak_prints_how_many_seeds_held_and_what_they_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["soak", "--seeds", "20", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "20 seeds in" in printed
    assert "moves" in printed
