"""docs/comparison.md claims nothing of other tools without a source, and every source is named once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT, LISTED = (ROOT / "docs" / "comparison.md").read_text().split("## Sources")
SOURCES = re.findall(r"^(\d+)\. \[([^\]]+)\]\((https://\S+)\)$", LISTED, re.MULTILINE)
CITED = re.compile(r"\[(\d+)\](?!\()")
OTHERS = ["SQS FIFO", "Kinesis Data Streams", "Kafka", "Camel's", "Spring Integration's", "Powertools"]
LEFT_OPEN = "—"


def row_of(name: str) -> list[str]:
    (row,) = re.findall(rf"^\| \*\*{name}.*\|$", TEXT, re.MULTILINE)
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("name", OTHERS)
def test_every_claim_of_the_table_has_a_source_or_is_left_open(name: str) -> None:
    _, *claims = row_of(name)
    assert len(claims) == len(row_of("stream_sort")) - 1
    assert [claim for claim in claims if claim != LEFT_OPEN and not CITED.search(claim)] == []


@pytest.mark.parametrize("name", OTHERS)
def test_every_tool_has_its_paragraph_with_sources_and_says_when_to_use_it(name: str) -> None:
    (section,) = re.findall(rf"^## {name}.*?(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert CITED.search(section)
    assert "**Use it" in section


def test_the_sources_are_numbered_and_all_of_them_are_cited() -> None:
    numbers = [int(number) for number, _, _ in SOURCES]
    assert numbers == list(range(1, len(LISTED.strip().splitlines()) + 1))
    assert {int(number) for number in CITED.findall(TEXT)} == set(numbers)
    assert len({address for _, _, address in SOURCES}) == len(SOURCES)
