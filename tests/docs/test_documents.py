"""What the documents say is so: their code runs, their links lead somewhere, their tables agree with the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from stream_sort import Batch, OrderedConsumer, StreamSorter
from stream_sort.model.limits import MAX_EFFECTS
from stream_sort.settings import PREFIX, ConsumerSettings, EnqueueSettings, Settings, SinkSettings

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "ARCHITECTURE.md"]
INVARIANTS = [f"I{number}" for number in range(1, 11)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_code_of_a_document_runs_from_top_to_bottom(name: str) -> None:
    text = (ROOT / name).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile("\n".join(blocks), name, "exec"), {})
    for block in re.findall(r"^```python no-run\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        compile(block, name, "exec")


def test_the_handler_that_pays_gets_its_tables_and_takes_large_batches() -> None:
    text = (ROOT / "README.md").read_text()
    (block,) = (
        block for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "def pay" in block
    )
    written = set(re.findall(r'transaction\.\w+\(\s*"(\w+)"', block))
    assert f"One transaction takes {MAX_EFFECTS} writes" in text
    assert written == set(re.findall(r"^\$ aws dynamodb create-table --table-name (\w+)", text, re.MULTILINE))
    sorter = StreamSorter.in_memory()
    sorter.put_many({"queue": "eve", "seq": seq, "amount": 2} for seq in range(300))
    code: dict[str, Any] = {"Batch": Batch, "OrderedConsumer": OrderedConsumer, "sorter": sorter}
    exec(compile(block, "README.md", "exec"), code)
    given: list[int] = []

    def pay(batch: Batch) -> None:
        given.append(len(batch))
        code["pay"](batch)

    assert OrderedConsumer("books", pay, sorter=sorter).catch_up("eve") == 300
    assert len(given) <= 8, given


def test_readme_says_which_aws_command_it_means_before_it_uses_one() -> None:
    before, command, _ = (ROOT / "README.md").read_text().partition("\n$ aws ")
    assert command
    assert "AWS CLI, version 2" in before


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_of_a_document_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / name).read_text())
    assert links
    missing = [link for link in links if "://" not in link and not (ROOT / link).exists()]
    assert missing == []


def test_the_table_of_settings_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `([^`]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    documented = {(name, variable, default) for name, variable, default in rows}
    assert documented == {
        (field.name, PREFIX + field.name.upper(), str(getattr(kind(), field.name)) or "(empty)")
        for kind in (Settings, EnqueueSettings, ConsumerSettings, SinkSettings)
        for field in fields(kind)
    }


@pytest.mark.parametrize("number", INVARIANTS)
def test_the_architecture_names_the_tests_of_every_invariant(number: str) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (row,) = re.findall(rf"^\| {number} \|.*$", text, re.MULTILINE)
    named = re.findall(r"\[`?([\w.]+)`?\]\((tests/[^)]+)\)", row)
    assert named
    for test, path in named:
        assert test in (ROOT / path).read_text(), f"{test} is not in {path}"


def test_every_target_of_the_makefile_is_explained() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    assert targets == set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
