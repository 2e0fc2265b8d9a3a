"""Every table of the command line: cut to 120 columns in a pipe and to the width of a terminal, whole with --wide."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from stream_sort.cli import status
from stream_sort.cli.tables import fitted
from stream_sort.formats.columns import PIPE_WIDTH, text_width
from stream_sort.insight.overview import look
from tests.functional.command_line import VARIABLES, Line
from tests.functional.operator_desk import OperatorDesk

if TYPE_CHECKING:
    from stream_sort import StreamSorter
    from tests.functional.conftest import Table

LONG = "customers/of-a-rather-long-name-that-goes-on-and-on-and-on/europe/{}/orders-2026/000{{}}".format("more/" * 12)
PARKED, DEAD = LONG.format(1), LONG.format(2)
REASON = "because of a reason that has many words " * 4

TABLES = [
    ["status"],
    ["status", "--deep"],
    ["policy", "--match", "*"],
    ["parked", "list"],
    ["dead", "list"],
    ["late", "list"],
    ["withdrawn", "list"],
    ["consumers", "reset", "--all", "--yes", "--force"],
]


@pytest.fixture
def desk(sorter: StreamSorter, dynamo: Table, monkeypatch: pytest.MonkeyPatch) -> OperatorDesk:
    assert dynamo.client
    for name, value in (VARIABLES | {"STREAM_SORT_CONSUMER": "billing"}).items():
        monkeypatch.setenv(name, value)
    desk = OperatorDesk(sorter)
    desk.put(DEAD, 0, 1, 2, text="word " * 40)
    desk.bury(DEAD, 1)
    desk.consumer = desk.hire("park")
    desk.put(PARKED, 0, 1)
    desk.deliver(PARKED)
    desk.sorter.skip(PARKED, 2, REASON)
    desk.put(PARKED, 2, 9_223_372_036_854_775_000, text="word " * 40)
    desk.sorter.withdraw(PARKED, 9_223_372_036_854_775_000, REASON)
    return desk


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_a_table_in_a_pipe_has_120_columns_at_most_and_all_of_it_with_wide(words: list[str]) -> None:
    once, again = (["--to", "earliest"], ["--to", "latest"]) if "reset" in words else ([], [])
    table = _rows(Line().run(*words, *once).stdout)
    assert "…" in table
    assert max(map(text_width, table.splitlines())) <= PIPE_WIDTH
    wide = _rows(Line().run(*words, *again, "--wide").stdout)
    assert "…" not in wide
    assert LONG[:-2] in wide
    # A row is a line, and none of its figures is cut.
    assert len(wide.splitlines()) == len(table.splitlines())
    for cut, whole in zip(table.splitlines(), wide.splitlines(), strict=True):
        figures = re.findall(r"(?<=   )[\d,]+(?=   |\s*$)", cut)
        assert "reset" in words or set(figures) <= set(re.findall(r"[\d,]+", whole))


@pytest.mark.usefixtures("desk")
def test_tables_that_fit_have_wide_too() -> None:
    for words in (["gaps", DEAD], ["cost", "--messages", "10M"], ["consumers", "list"]):
        assert Line().run(*words, "--wide").stdout == Line().run(*words).stdout


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_status_fits_every_terminal(desk: OperatorDesk, width: int) -> None:
    screen = Console(width=width, height=50, file=StringIO(), force_terminal=True, no_color=True, highlight=False)
    screen.print(status._table(look(desk.sorter.sources("Control")), 0, screen, deep=False))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(text_width, lines)) <= width
    # The heading, its line, and one line for each queue.
    rows = [line for line in lines if "cust" in line]
    assert len(rows) == 2
    assert "position" in shown or "the screen is too narrow: position" in " ".join(shown.split())


def test_what_is_left_out_is_said() -> None:
    screen = Console(width=40, file=StringIO(), force_terminal=True, no_color=True)
    screen.print(fitted(("queue", "since", "error"), [("q" * 30, "2026-11-18 04:58:51Z", "e" * 90)], screen))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "not shown, as the screen is too narrow: since; see --wide, or --json" in " ".join(shown.split())
    assert "2026" not in shown


def _rows(text: str) -> str:
    """The table of what a command printed, without what stands below it."""
    lines = text.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.lstrip().startswith("──"))
    end = next((at for at in range(begin + 1, len(lines)) if not lines[at].startswith(" ")), len(lines))
    return "\n".join(line.rstrip() for line in lines[begin - 1 : end] if "──" not in line and line.strip())
