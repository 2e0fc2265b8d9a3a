"""What a room may reach for, where import rules do not tell."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "stream_sort"


def test_nobody_reaches_through_a_sorter_into_its_tables() -> None:
    modules = [module for folder in ("stream_sort", "functions", "spark") for module in (ROOT / folder).rglob("*.py")]
    found = [
        f"{module.relative_to(ROOT)}:{node.lineno}"
        for module in modules
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "stores"
    ]
    assert found == []


def test_hardly_anything_stands_outside_a_room() -> None:
    modules = {module.stem for module in LIBRARY.glob("*.py")} - {"__init__"}
    assert len(modules) <= 7, sorted(modules)


def test_one_module_goes_from_page_to_page_and_asks_again_for_what_is_left_over() -> None:
    marks = ("ExclusiveStartKey", "UnprocessedKeys", "UnprocessedItems")
    modules = [module for module in LIBRARY.rglob("*.py") if any(mark in module.read_text("utf-8") for mark in marks)]
    assert [module.name for module in modules] == ["paging.py"]


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for module in sorted(LIBRARY.rglob("*.py")):
        for node in ast.parse(module.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(module.relative_to(LIBRARY)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
