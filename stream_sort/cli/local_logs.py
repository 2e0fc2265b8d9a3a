"""Print what the functions of a local stack log: for people, as it was written, or as JSON."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from stream_sort.cli.output import console, json_line, visible
from stream_sort.local.readable_logs import LineKind, LogLine, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_sort.local.stack import LocalStack

POLL = 1.0
# Lines of one run come in together, those of another one perhaps a little later.
OVERLAP = 5_000


class LogPrinter:
    """Prints each line once, in the order of time; `since` is in milliseconds."""

    def __init__(
        self, stack: LocalStack, steps: Sequence[str], show: Callable[[list[LogLine]], None], since: int = 0
    ) -> None:
        self._stack = stack
        self._steps = steps
        self._show = show
        self._shown: set[LogLine] = set()
        self._begin = self._since = since

    def print_new(self) -> None:
        """Print what was not printed yet."""
        lines = [line for step in self._steps for line in self._stack.logs(step, self._since)]
        self._show(sorted((line for line in lines if line not in self._shown), key=lambda line: line.at))
        if lines:
            self._since = max(self._begin, max(line.at for line in lines) - OVERLAP)
            self._shown = {line for line in lines if line.at >= self._since}

    def follow(self) -> None:
        """Print until the local AWS ends."""
        while True:
            is_up = self._stack.is_up
            self.print_new()
            if not is_up:
                return
            time.sleep(POLL)


def show_json(lines: list[LogLine]) -> None:
    """Print every line, for programs."""
    for line in lines:
        typer.echo(json_line(line._asdict()))


def show_raw(lines: list[LogLine]) -> None:
    """Print every line as it was written."""
    for line in lines:
        typer.echo(f"{_clock(line.at)} {line.step:8} {visible(line.text)}")


def show_readable(lines: list[LogLine]) -> None:
    """Print a line an event: the user's own stand out, and errors."""
    from rich.text import Text  # noqa: PLC0415  # as all imports of commands

    styles = {LineKind.OWN: "bold", LineKind.ERROR: "bold red", LineKind.WARNING: "yellow", LineKind.NOTE: "dim"}
    out = console()
    for event in readable(lines):
        head = f"{_clock(event.at)} {event.step:8} {event.kind.value} "
        text = Text.assemble((head, "dim"), (visible(event.text), styles[event.kind]))
        out.print(text, soft_wrap=True)


def _clock(milliseconds: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(milliseconds / 1000))
