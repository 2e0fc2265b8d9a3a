"""docs/operate.md as a program: its sections, the commands each gives, and what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.local.tools import environment, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "operate.md"
AWS = "awscli==1.46.2"
STEPS = ("Look", "Free it", "Prove it")
SECTION = re.compile(r"^## \d+\. (.+)$", re.MULTILINE)
STEP = re.compile(rf"^\*\*({'|'.join(STEPS)})\.\*\*.*?^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Stands for anything in a line that is shown.
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the page, and the lines that it is said to print among others; `…` stands for anything."""

    text: str
    shown: tuple[str, ...] = ()

    def missing_in(self, output: str) -> list[str]:
        """Lines of the page that the output does not have."""
        lines = [_plain(line) for line in output.splitlines()]
        return [line for line in self.shown if not any(_pattern(line).fullmatch(one) for one in lines)]


@dataclass(frozen=True, slots=True)
class Section:
    """A symptom: its title and the commands of its steps."""

    title: str
    text: str

    def commands(self, step: str) -> list[Command]:
        """The commands of a step, in order."""
        (block,) = [body for name, body in STEP.findall(self.text) if name == step]
        return list(_commands(block))


@dataclass(frozen=True, slots=True)
class Done:
    """What a command printed, and how it ended."""

    code: int
    output: str


class Shell:
    """Runs commands as they stand on the page, in a folder of its own; questions are answered with yes."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        tools = folder / "bin"
        tools.mkdir()
        aws = tools / "aws"
        aws.write_text(f'#!/bin/sh\nexec {" ".join(tool(AWS, "aws"))} "$@"\n')
        aws.chmod(0o755)
        self.folder = folder
        path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = environment() | {"AWS_ENDPOINT_URL": endpoint, "PATH": path, "NO_COLOR": "1"}

    def run(self, command: str) -> Done:
        """Run one command to its end."""
        words = ["bash", "-c", command]
        ended = subprocess.run(
            words, cwd=self.folder, env=self.env, input="y\n", capture_output=True, text=True, timeout=120, check=False
        )
        return Done(ended.returncode, ended.stdout + ended.stderr)


def sections(text: str | None = None) -> list[Section]:
    """All sections of the page, in order."""
    page = PAGE.read_text(encoding="utf-8") if text is None else text
    parts = SECTION.split(page)[1:]
    return [Section(title, body) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        text, *shown = part.rstrip("\n").split("\n")
        yield Command(text, tuple(map(_plain, shown)))


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split(ELLIPSIS))))


def _plain(line: str) -> str:
    """A line without what only lays it out: the width of a table's columns may differ."""
    return " ".join(line.split())
