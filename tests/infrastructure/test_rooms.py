"""What a room may reach for, where import rules do not tell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "stream_sort"


@pytest.mark.parametrize("room", ["cli", "insight"])
def test_nobody_reaches_through_a_sorter_into_its_tables(room: str) -> None:
    found = [
        f"{module.relative_to(LIBRARY)}:{node.lineno}"
        for module in sorted((LIBRARY / room).rglob("*.py"))
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "stores"
    ]
    assert found == []


def test_hardly_anything_stands_outside_a_room() -> None:
    modules = {module.stem for module in LIBRARY.glob("*.py")} - {"__init__"}
    assert len(modules) <= 7, sorted(modules)
