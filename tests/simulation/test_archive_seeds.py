"""A1 to A9 of an archive (see its oracle) hold though runs die, files get lost and watermarks are wrong.

For a long run, STREAM_SORT_ARCHIVE_SEEDS says how many seeds of each mode; a thousand of each take five minutes.

    STREAM_SORT_ARCHIVE_SEEDS=4000 pytest --timeout 0 tests/simulation/test_archive_seeds.py

A failure names the seed, tells all that happened in it, and how to see it again.
"""

import os
from collections import Counter
from functools import cache, partial

import pytest

from stream_sort.testing.simulation.soak import Soaked, run_seeds
from tests.simulation.archive.__main__ import main
from tests.simulation.archive.modes import MODES
from tests.simulation.archive.simulator import simulate

FEW = 80
SEEDS = int(os.environ.get("STREAM_SORT_ARCHIVE_SEEDS", FEW))


@cache
def soaked(mode: str) -> Soaked:
    return run_seeds(partial(simulate, mode), range(SEEDS))


@pytest.mark.parametrize("mode", MODES)
def test_everything_holds_after_every_step_of_every_seed(mode: str) -> None:
    found = soaked(mode)
    if found.failure:
        raise found.failure
    assert found.seeds == SEEDS


@pytest.mark.parametrize(
    ("what", "at_least"),
    [
        ("complete", 1_000),
        ("problems", 30),
        ("crashes", 200),
        ("slots trimmed", 1_500),
        ("files lost", 350),
        ("watermarks lost", 35),
        ("watermarks set back", 5),
        ("segments exchanged", 30),
    ],
)
@pytest.mark.skipif(SEEDS < FEW, reason="too few seeds to meet everything")
def test_the_seeds_meet_what_they_are_there_for(what: str, at_least: int) -> None:
    met: Counter[str] = sum((soaked(mode).met for mode in MODES), Counter())
    assert met[what] >= at_least


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_always_takes_the_same_course(mode: str) -> None:
    for seed in range(3):
        assert simulate(mode, seed).trace.lines() == simulate(mode, seed).trace.lines()


def test_a_seed_can_be_seen_again_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lossy", "7"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [*simulate("lossy", 7).trace.lines(), "everything held"]
