"""What runs on GitHub is what runs here: the same targets, the oldest Python and Java that are promised."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    return loaded


@pytest.fixture(scope="module")
def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def given(steps: list[dict[str, Any]], action: str) -> dict[str, str]:
    """What an action is told."""
    (found,) = (step["with"] for step in steps if step.get("uses", "").startswith(f"{action}@"))
    told: dict[str, str] = found
    return told


def test_it_runs_for_main_and_for_every_pull_request(workflow: dict[Any, Any]) -> None:
    # YAML 1.1 takes the word `on` for true.
    assert workflow[True] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert workflow["permissions"] == {"contents": "read"}


def test_it_runs_what_must_hold_on_main_and_nothing_else(steps: list[dict[str, Any]]) -> None:
    assert [step["run"] for step in steps if "run" in step] == ["make lint test"]
    assert re.findall(r"^make (\w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE) == ["lint", "test"]


def test_it_runs_on_the_oldest_python_that_the_package_takes(steps: list[dict[str, Any]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = re.match(r">=([\d.]+)", project["requires-python"])
    assert oldest is not None
    assert given(steps, "actions/setup-python")["python-version"] == oldest[1]


def test_it_runs_on_the_oldest_java_that_the_makefile_takes(steps: list[dict[str, Any]]) -> None:
    oldest = re.search(r"-lt (\d+) \]; then", (ROOT / "Makefile").read_text())
    assert oldest is not None
    assert given(steps, "actions/setup-java")["java-version"] == oldest[1]
