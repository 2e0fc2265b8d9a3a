"""docs/operate.md is whole: thirteen symptoms, every step, names that exist. Its commands run in tests/local_stack."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.local_stack.runbook import PAGE, STEPS, Command, Section, sections

ROOT = Path(__file__).parents[2]
SECTIONS = sections()


def test_the_page_has_thirteen_symptoms() -> None:
    assert len(SECTIONS) == 13


def test_an_alarm_that_names_a_section_means_the_one_that_names_the_alarm() -> None:
    template = (ROOT / "template.yaml").read_text()
    naming = r"^  (\w+Alarm):\n(?:(?!^  \w).*\n)*?.*docs/operate\.md,\s+section\s+(\d+)"
    told = re.findall(naming, template, re.MULTILINE)
    assert told
    for alarm, number in told:
        assert alarm in SECTIONS[int(number) - 1].text, alarm


def test_the_page_has_nothing_purged() -> None:
    assert "purge-queue" not in PAGE.read_text()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.title)
def test_a_symptom_has_every_step_and_a_test(section: Section) -> None:
    text = section.text
    for part in ("What you see", "Why", *STEPS, "Prevent it"):
        assert f"**{part}.**" in text, part
    for step in STEPS:
        assert any("stream-sort" in command.text for command in section.commands(step)), step
    assert len(re.findall("^```console$", text, re.MULTILINE)) == len(STEPS), "a command that no test runs"
    tests = (ROOT / "tests/local_stack/test_runbook.py").read_text()
    assert f'follow(bench, "{section.title}"' in tests


@pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.title)
def test_what_shows_or_proves_says_what_it_prints(section: Section) -> None:
    for step in ("Look", "Prove it"):
        for command in section.commands(step):
            assert command.shown, command.text


def test_every_alarm_and_parameter_that_is_named_is_in_the_template() -> None:
    template = (ROOT / "template.yaml").read_text()
    alarms = set(re.findall(r"\w+Alarm\b", PAGE.read_text()))
    assert alarms
    assert {name for name in alarms if f"\n  {name}:\n" not in template} == set()


def test_a_line_that_is_not_printed_is_missed() -> None:
    command = Command("status", ("ada 1 … wait 0", "bob 5 wait 5"))
    assert command.missing_in(" ada    1   4 s   wait    0\n bob  5  wait  5 ") == []
    assert command.missing_in(" ada    1   4 s   wait    7\n bob  5  wait  5 ") == ["ada 1 … wait 0"]
