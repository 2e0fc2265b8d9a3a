"""Where Spark is needed, make says what is missing instead of ending in a stack trace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def asked(home: Path) -> subprocess.CompletedProcess[str]:
    """What `make test` does first, with the Java of that folder."""
    environment = {"PATH": os.environ["PATH"], "JAVA_HOME": str(home)}
    return subprocess.run(
        ["make", ".java"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def java(home: Path, says: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize("says", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19 LTS'])
def test_java_17_and_newer_will_do(says: str, tmp_path: Path) -> None:
    assert asked(java(tmp_path, says)).returncode == 0


@pytest.mark.parametrize(
    ("says", "found"), [('openjdk version "11.0.2" 2019-01-15', "is 11"), ('java version "1.8.0_392"', "is 8")]
)
def test_an_older_java_is_named_with_what_to_do(says: str, found: str, tmp_path: Path) -> None:
    done = asked(java(tmp_path, says))
    assert done.returncode != 0
    assert "Spark needs Java 17 or newer" in done.stderr
    assert found in done.stderr


def test_a_missing_java_is_named_with_what_to_do(tmp_path: Path) -> None:
    done = asked(tmp_path)
    assert done.returncode != 0
    assert f"{tmp_path}/bin/java is missing" in done.stderr
