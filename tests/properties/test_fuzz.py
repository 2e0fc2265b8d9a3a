"""I9 of every parser of outside input: a short look with every test run, and what longer ones once found.

`make fuzz` looks for longer; see tests/properties/fuzz.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from stream_sort.errors import InvalidInput
from tests.properties.fuzz import cases
from tests.properties.fuzz import target as targets
from tests.properties.fuzz.engine import hunt, property_of
from tests.properties.fuzz.target import Target
from tests.properties.fuzz.targets import TARGETS

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = 25
KEPT = [cases.read(path) for path in sorted(cases.CASES.glob("*.json"))]


@pytest.mark.parametrize("name", TARGETS)
def test_i9_any_input_is_taken_or_refused_by_name(name: str) -> None:
    target = TARGETS[name]
    with target.at_work():
        property_of(target, target.try_example, max_examples=EXAMPLES, derandomize=True)()


@pytest.mark.parametrize("name", sorted({case.target for case in KEPT}))
def test_what_fuzzing_once_found_does_no_harm_any_more(name: str) -> None:
    target = TARGETS[name]
    with target.at_work():
        for case in KEPT:
            if case.target == name:
                target.try_example(case.example)


def test_a_fault_is_found_made_small_and_kept_as_a_case(tmp_path: Path) -> None:
    def check(example: dict[str, Any]) -> None:
        if example["payload"].startswith(b"\x07"):
            raise KeyError("planted")
        raise InvalidInput("as it should be")

    examples = st.fixed_dictionaries({"payload": st.binary() | st.just(b"\x07..."), "n": st.floats()})
    trial, finding = hunt(Target("planted", examples, check), 10.0, tmp_path)
    assert trial.tried > 1
    assert finding is not None
    assert cases.read(finding.path) == cases.Case("planted", "KeyError: 'planted'", {"payload": b"\x07...", "n": 0.0})


def test_an_example_that_never_ends_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "PATIENCE", 0.2)
    _, finding = hunt(Target("endless", st.none(), lambda _: time.sleep(60)), 10.0, tmp_path)
    assert finding is not None
    assert finding.problem.startswith("Hung: ")


def test_the_command_runs_a_target_and_says_what_it_did(tmp_path: Path) -> None:
    words = ["argument", "--minutes", "0.02", "--engine", "hypothesis", "--cases", str(tmp_path)]
    words = [sys.executable, "-m", "tests.properties.fuzz", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "examples" in done.stdout
    assert done.stdout.endswith("nothing found\n")
