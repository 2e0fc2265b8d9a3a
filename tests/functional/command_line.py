"""The command line on tables of moto's: run a command, see what it said."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from stream_sort.cli.app import app

if TYPE_CHECKING:
    from click.testing import Result

ESCAPE = "\x1b"


class Line:
    """Runs commands on the tables Items, Cursor and Control."""

    app = app

    def __init__(self) -> None:
        self.runner = CliRunner()

    def run(self, *words: str, given: str | bytes = "", code: int = 0) -> Result:
        result = self.runner.invoke(app, list(words), input=given, prog_name="stream-sort")
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        return result

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code).stdout)

    def error(self, *words: str, code: int = 1) -> str:
        """The one line of a command that fails."""
        result = self.run(*words, code=code)
        lines = result.stderr.splitlines()
        assert len(lines) == 1, result.stderr
        assert lines[0].startswith("stream-sort: ")
        return lines[0].removeprefix("stream-sort: ")


def examples_of(text: str) -> list[str]:
    """The examples in a docstring."""
    return re.findall(r"Example: (.+)", text)


def example_of(*path: str) -> list[str]:
    """The words of the one example that `--help` of a command shows, without the program's name."""
    shown = Line().run(*path, "--help").stdout
    (example,) = [block for block in re.split(r"\n\s*\n", shown) if block.strip().startswith("Example: ")]
    program, *words = shlex.split(" ".join(example.split()).removeprefix("Example: "))
    assert program == "stream-sort"
    assert words[: len(path)] == list(path)
    return words


VARIABLES = {
    "STREAM_SORT_ITEMS_TABLE": "Items",
    "STREAM_SORT_CURSOR_TABLE": "Cursor",
    "STREAM_SORT_CONTROL_TABLE": "Control",
    "STREAM_SORT_IN_FLIGHT": "1",
    "STREAM_SORT_DEADLINE": "0.05",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
