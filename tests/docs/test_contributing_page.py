"""docs/contributing.md knows every room and every kind of test."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, page

PAGE = page("docs/contributing.md").text


def test_every_package_has_its_row() -> None:
    rows = re.findall(r"^\| .+ \| `stream_sort/(\w+)` \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(path.parent.name for path in (ROOT / "stream_sort").glob("*/__init__.py"))


def test_every_folder_of_tests_has_its_row() -> None:
    rows = re.findall(r"^\| .+ \| `tests/(\w+)` \|$", PAGE, re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert sorted(rows) == sorted(folders | {"spark"})
