"""docs/parameters.md is what the template says."""

from __future__ import annotations

import re

from stream_sort.local.parameters import known_parameters
from tests.docs.parameters import TARGET, page


def test_the_page_is_what_the_template_makes() -> None:
    assert TARGET.read_text(encoding="utf-8") == page(), "run: .venv/bin/python -m tests.docs.parameters"


def test_every_parameter_has_one_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page(), re.MULTILINE)
    assert sorted(rows) == sorted(known_parameters())
