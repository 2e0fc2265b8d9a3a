"""Commands that are printed can be typed where `stream-sort` itself is not what a shell finds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.aws import accounts
from stream_sort.errors import CursorLost, MissingItems, NotParked, QueueDamaged
from stream_sort.insight.checkup.aws import logs_of, restore, retouch, update
from tests.functional.command_line import VARIABLES, Line

if TYPE_CHECKING:
    from pathlib import Path

TYPED = ".venv/bin/stream-sort"


class Local:
    """Stands for a local stack that is asked."""

    is_local = True

    parameters: dict[str, str] = {}  # noqa: RUF012


@pytest.fixture(autouse=True)
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the program from an environment that is not activated, below the working directory."""
    command = tmp_path / TYPED
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [TYPED])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def line(sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    OrderedConsumer("process", sorter=sorter).create_tables()
    sorter.put_many({"queue": "ada", "seq": seq} for seq in (0, 2))
    return Line()


def test_explain_names_commands_as_they_can_be_typed(line: Line) -> None:
    assert f"\n  {TYPED} skip ada 1\n" in line.run("explain", "ada").stdout
    assert f"{TYPED} skip ada 1" in line.json("explain", "ada")["commands"]


def test_the_report_names_commands_as_they_can_be_typed(line: Line) -> None:
    assert f"{TYPED} explain ada" in line.run("report", "-o", "-").stdout


def test_errors_name_commands_as_they_can_be_typed() -> None:
    errors = CursorLost("q"), MissingItems("q", [range(1, 2)]), NotParked("c", "q", 1), QueueDamaged("c", "q", 1, "x")
    for error in errors:
        assert f" {TYPED} " in str(error)
        assert " stream-sort " not in str(error)


def test_bad_usage_names_the_help_as_it_can_be_typed() -> None:
    assert Line().error("skip", code=2).endswith(f"; see {TYPED} skip --help")


def test_hints_at_the_local_stack_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_local", lambda: None)
    assert accounts.local_hint([]).endswith(f": {TYPED} local up")


def test_doctor_names_commands_as_they_can_be_typed() -> None:
    aws = cast("Any", Local)
    told = [update(aws), restore(aws), logs_of("sweep", aws)]
    assert [one.split(",")[0] for one in told] == [f"{TYPED} local {word}" for word in ("up", "reset", "logs sweep")]
    assert retouch(aws).count(f"{TYPED} local up --set Tracing=") == 2
