"""docs/contributing.md knows every room, every kind of test and the targets that it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")


def test_every_package_has_its_row() -> None:
    rows = re.findall(r"^\| .+ \| `stream_sort/(\w+)` \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(path.parent.name for path in (ROOT / "stream_sort").glob("*/__init__.py"))


def test_every_folder_of_tests_has_its_row() -> None:
    rows = re.findall(r"^\| .+ \| `tests/(\w+)` \|$", PAGE, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert sorted(rows) == sorted(folders | {"spark"})


def test_the_targets_that_it_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = {word for line in re.findall(r"\bmake ([a-z][a-z -]*)", PAGE) for word in line.split()[:1]}
    known = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"setup", "test-quick", "lint", "wheel"} <= named
    assert named <= known, named - known


def test_files_and_folders_that_it_names_exist() -> None:
    named = re.findall(r"`((?:stream_sort|tests|functions|events|docs|\.github)/[\w./*-]+)`", PAGE)
    assert named
    missing = [name for name in named if not list(ROOT.glob(name))]
    assert [name for name in missing if name != "docs/decisions"] == []
