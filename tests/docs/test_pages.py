"""What single pages say is so: settings, statuses, invariants, the glossary, the handler that pays."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from typing import Any

import pytest

from stream_sort import Batch, OrderedConsumer, StreamSorter
from stream_sort.aws_lambda import http_api
from stream_sort.settings import PREFIX, ConsumerSettings, EnqueueSettings, Settings, SinkSettings
from stream_sort.stores.effects import MAX_EFFECTS
from tests.docs.pages import ROOT, page

INVARIANTS = [f"I{number}" for number in range(1, 11)]
SERVICES = ("intake", "release", "consume", "upkeep", "insight")


def test_the_table_of_settings_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([^`]+)` \|", page("docs/configuration.md").text, re.MULTILINE)
    documented = {(name, variable, default) for name, variable, default in rows}
    assert documented == {
        (field.name, PREFIX + field.name.upper(), str(getattr(kind(), field.name)) or "(empty)")
        for kind in (Settings, EnqueueSettings, ConsumerSettings, SinkSettings)
        for field in fields(kind)
    }


def test_the_handler_that_pays_gets_its_tables_and_takes_large_batches() -> None:
    handlers = page("docs/handlers.md")
    (block,) = (block for block in handlers.blocks("python") if "def pay" in block)
    written = set(re.findall(r'transaction\.\w+\(\s*"(\w+)"', block))
    assert f"One transaction takes {MAX_EFFECTS} writes" in handlers.text
    assert written == set(re.findall(r"^\$ aws dynamodb create-table --table-name (\w+)", handlers.text, re.MULTILINE))
    sorter = StreamSorter.in_memory()
    sorter.put_many({"queue": "eve", "seq": seq, "amount": 2} for seq in range(300))
    code: dict[str, Any] = {"Batch": Batch, "OrderedConsumer": OrderedConsumer, "sorter": sorter}
    exec(compile(block, handlers.name, "exec"), code)
    given: list[int] = []

    def pay(batch: Batch) -> None:
        given.append(len(batch))
        code["pay"](batch)

    assert OrderedConsumer("books", pay, sorter=sorter).catch_up("eve") == 300
    assert len(given) <= 8, given


def test_limits_and_handlers_name_the_same_number_of_writes() -> None:
    assert f"One transaction of a handler takes {MAX_EFFECTS} writes" in page("docs/limits.md").text


def test_the_statuses_of_the_http_page_are_those_of_the_code() -> None:
    documented = {int(status) for status in re.findall(r"^\| (\d{3}) \|", page("docs/http.md").text, re.MULTILINE)}
    statuses = {value for name, value in vars(http_api).items() if name.isupper() and type(value) is int}
    assert documented == statuses - {http_api.RETRY_AFTER_SECONDS}


@pytest.mark.parametrize("number", INVARIANTS)
def test_the_architecture_names_the_tests_of_every_invariant(number: str) -> None:
    (row,) = re.findall(rf"^\| {number} \|.*$", page("ARCHITECTURE.md").text, re.MULTILINE)
    named = re.findall(r"\[`?([\w.]+)`?\]\((tests/[^)]+)\)", row)
    assert named
    for test, path in named:
        assert test in (ROOT / path).read_text(), f"{test} is not in {path}"


def test_every_class_of_the_services_has_a_row_in_the_glossary() -> None:
    explained = set(page("docs/glossary.md").code())
    assert classes_of(*SERVICES) - explained == set()


def test_every_class_in_the_glossary_is_one_of_the_services() -> None:
    cells = re.findall(r"^\|[^|]*\|([^|]*)\|", page("docs/glossary.md").text, re.MULTILINE)
    explained = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert explained
    assert explained - classes_of(*SERVICES) == set()


def classes_of(*rooms: str) -> set[str]:
    """The public classes of these packages."""
    modules = [ast.parse(path.read_text()) for room in rooms for path in (ROOT / "stream_sort" / room).rglob("*.py")]
    found = [node.name for module in modules for node in module.body if isinstance(node, ast.ClassDef)]
    return {name for name in found if not name.startswith("_")}


def test_the_decisions_are_numbered_without_a_gap_and_say_what_and_why() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in pages] == list(range(1, len(pages) + 1))
    for number, path in enumerate(pages, 1):
        text = path.read_text()
        (title,) = re.findall(rf"\A# {number}\. (.+)$", text, re.MULTILINE)
        assert f"\n{number}. [{title}]({path.name})\n" in page("docs/decisions/index.md").text
        assert "\n## What\n" in text, path.name
        assert "\n## Why\n" in text, path.name
