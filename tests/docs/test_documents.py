"""What the documents say is so: their code runs, their links lead somewhere, their tables agree with the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

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
