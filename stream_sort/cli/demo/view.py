"""How the demo looks: live in a terminal, plain lines anywhere else. Knows rich and nothing of AWS."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich import box
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from stream_sort.cli.demo.traffic import Count
from stream_sort.model.gaps import length

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from stream_sort.cli.demo.traffic import Board, QueueVerdict
    from stream_sort.model.outcomes import QueueState

LONGEST_BAR, SHORTEST_BAR = 32, 8
BESIDE_BAR = 56
PLAIN_EVERY = 1.0
LIVE_EVERY = 0.1
RESULTS = ("sent", "stored", "delivered", "repeats")


class View:
    """What the demo says, on one console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._step = 0

    def step(self, text: str) -> None:
        """Head the next part of the demo."""
        self._step += 1
        self._console.print(f"\n[bold cyan]{self._step}.[/] [bold]{escape(text)}[/]")

    def say(self, text: str, style: str = "") -> None:
        """Print one line of plain text; nothing in it is markup."""
        self._console.print(Text(f"   {text}", style=style), soft_wrap=True)

    def watch(self, board: Board) -> DemoScreen:
        """Show counts while they change."""
        return DemoScreen(self._console, board)

    def explain(self, state: QueueState, now: float) -> None:
        """Show why a queue is stuck, from what `explain` answered."""
        facts = {
            "released through": f"{state.position:,}",
            "highest stored": "nothing" if state.highest_stored is None else f"{state.highest_stored:,}",
            "missing": ", ".join(map(_range_name, state.gaps)) or "nothing",
            "waiting behind it": f"{state.stored_beyond:,} messages",
        }
        if state.waiting_since is not None:
            facts["waiting for"] = f"{max(0.0, now - state.waiting_since):.1f} s (policy: {state.policy})"
        grid = Table.grid(padding=(0, 3))
        for name, fact in {**facts, "remedy": state.remedy}.items():
            grid.add_row(Text(name, "dim"), Text(fact))
        title = f'explain("{escape(state.queue)}")'
        self._console.print(Panel(grid, title=title, title_align="left", border_style="yellow", expand=False))

    def results(self, board: Board, verdicts: list[QueueVerdict]) -> None:
        """Print the last table: a line a queue, and the sum."""
        table = Table(box=box.SIMPLE_HEAD, show_footer=True, footer_style="bold")
        table.add_column("queue", footer="all", overflow="fold", min_width=13)
        nothing = Count(1)
        numbers = [_numbers(board.counts.get(verdict.queue, nothing), verdict) for verdict in verdicts]
        for name, column in zip(RESULTS, zip(*numbers, strict=True), strict=True):
            table.add_column(name, justify="right", footer=f"{sum(column):,}")
        table.add_column("in order?")
        for verdict, row in zip(verdicts, numbers, strict=True):
            good = Text("yes", "green") if verdict.problem is None else Text(f"NO: {verdict.problem}", "bold red")
            table.add_row(Text(verdict.queue), *(f"{number:,}" for number in row), good)
        self._console.print(table)

    def facts(self, facts: dict[str, str]) -> None:
        """Print names and what they stand for, a line each."""
        grid = Table.grid(padding=(0, 3))
        for name, fact in facts.items():
            grid.add_row(Text(f"   {name}", "dim"), Text(fact))
        self._console.print(grid)

    def verdict(self, text: str, *, good: bool) -> None:
        """Print the last word."""
        mark = "[bold white on green] PASS [/]" if good else "[bold white on red] FAIL [/]"
        self._console.print(f"   {mark} {escape(text)}", soft_wrap=True)


class DemoScreen:
    """Counts on the screen: a table that is drawn over, or a line now and then."""

    def __init__(self, console: Console, board: Board) -> None:
        self._console = console
        self._board = board
        self._said, self._last = time.monotonic(), ""
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self.every = LIVE_EVERY if self._live else PLAIN_EVERY / 4
        self._length = max(SHORTEST_BAR, min(LONGEST_BAR, console.width - BESIDE_BAR))
        self._bricks = ("█", "▓", "▒", "·") if console.encoding.startswith("utf") else ("#", "=", "-", ".")

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.refresh(last=True)
        if self._live:
            self._live.stop()

    def refresh(self, *, last: bool = False) -> None:
        """Show the counts as they are now."""
        if self._live:
            self._live.update(self._table(), refresh=True)
        elif (last or time.monotonic() - self._said >= PLAIN_EVERY) and self._line() != self._last:
            self._said, self._last = time.monotonic(), self._line()
            self._console.print(Text(self._last), soft_wrap=True)

    def _line(self) -> str:
        counts = self._board.counts.values()
        arrived, length = sum(count.arrived for count in counts), sum(count.length for count in counts)
        released, waiting = sum(count.released for count in counts), sum(count.waiting for count in counts)
        delivered = sum(count.delivered for count in counts)
        told = f"   arrived {arrived:,} of {length:,}   released {released:,}   delivered {delivered:,}"
        return f"{told}   waiting beyond a gap {waiting:,}"

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=True)
        table.add_column("queue", overflow="fold", min_width=13)
        full, half, open_, _ = self._bricks
        names = ((full, "green"), " delivered ", (half, "cyan"), " released ", (open_, "yellow"), " waits")
        legend = Text.assemble(*names)
        table.add_column(legend, width=self._length)
        for name in ("arrived", "released", "delivered"):
            table.add_column(name, justify="right", min_width=8)
        for queue, count in self._board.counts.items():
            numbers = (count.arrived, count.released, count.delivered)
            table.add_row(Text(queue), self._bar(count), *(f"{number:,}" for number in numbers))
        return table

    def _bar(self, count: Count) -> Text:
        ends = [self._length * number // count.length for number in (count.delivered, count.released, count.arrived)]
        delivered, released, arrived = ends[0], max(ends[:2]), max(ends)
        full, half, open_, empty = self._bricks
        return Text.assemble(
            (full * delivered, "green"),
            (half * (released - delivered), "cyan"),
            (open_ * (arrived - released), "yellow"),
            (empty * (self._length - arrived), "dim"),
        )


def _numbers(count: Count, verdict: QueueVerdict) -> tuple[int, ...]:
    return count.sent, count.arrived, verdict.delivered, verdict.repeats


def _range_name(gap: range) -> str:
    return f"seq {gap.start:,}" if length(gap) == 1 else f"seqs {gap.start:,} to {gap.stop - 1:,}"
