"""What the properties are tried with does not hang on what else this process has done."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path


def drawn() -> list[str]:
    seen: list[str] = []

    @given(st.text())
    def look(text: str) -> None:
        seen.append(text)

    look()
    return seen


@pytest.mark.skipif(not settings().derandomize, reason="asked for other examples each time")
def test_a_module_that_was_loaded_meanwhile_changes_no_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    file = tmp_path / "loaded_meanwhile.py"
    file.write_text("NAMES = " + repr([f"name {number}" for number in range(50)]))
    spec = importlib.util.spec_from_file_location("loaded_meanwhile", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "loaded_meanwhile", module)
    spec.loader.exec_module(module)
    assert drawn() == before
