"""`stream-sort local` where nothing is started: what cannot be used is said at once, in a line, with exit code 2."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from stream_sort.cli.local import program
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--set", "foo=1"], "template.yaml has no parameter 'foo'"),
        (["--set", "MaxAttempts=abc"], "parameter MaxAttempts is 'abc'; it must be a number from 1 on"),
        (["--set", "MaxAttempts"], "must be NAME=VALUE"),
        (["--sink", "kafka"], "parameter Sink is 'kafka'"),
        (["--handler", "nofile.py:handle"], "No such file"),
        (["--handler", "nofile"], "must be FILE:FUNCTION"),
    ],
)
def test_up_with_what_cannot_be_used_starts_nothing(tmp_path: Path, words: list[str], problem: str) -> None:
    assert problem in Line().error("local", "up", *words, "--home", str(tmp_path / "home"), code=2)
    assert not (tmp_path / "home").exists()


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    for home in (tmp_path / "a.jsonl", tmp_path / "a.jsonl" / "x"):
        said = Line().error("local", "up", "--home", str(home), code=2)
        assert said.startswith(f"--home {home}: no folder can be made there: ")


def test_hints_name_the_command_so_that_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "my venv" / "bin" / "stream-sort"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(command)])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir("/")
    assert program() == f"'{command.relative_to('/')}'"
    monkeypatch.chdir(tmp_path)
    assert program() == "'my venv/bin/stream-sort'"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program() == f"'{command}'"
    monkeypatch.setenv("PATH", str(command.parent))
    assert program() == "stream-sort"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert program() == "stream-sort"
