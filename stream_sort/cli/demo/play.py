"""`stream-sort demo`: a local AWS, a few thousand shuffled messages, a gap, and a verdict that was checked."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from stream_sort import StreamSorter
from stream_sort.cli.demo.senders import WRITERS, Board, Senders
from stream_sort.cli.demo.verdict import judge
from stream_sort.cli.demo.view import View
from stream_sort.errors import StreamSortError
from stream_sort.local.ministack import MiniStack

if TYPE_CHECKING:
    from stream_sort.cli.demo.traffic import Traffic

ITEMS_TABLE, CURSOR_TABLE = "Items", "Cursor"
INTERRUPTED = 130


def run(traffic: Traffic) -> int:
    """Run the demo on this terminal; answers the exit code, 0 only if everything came out in order."""
    view = View(Console(highlight=False))
    try:
        view.step("Start a local AWS (no Docker, no account, gone when this ends)")
        with (
            MiniStack(report=view.say) as stack,
            closing(stack.client("dynamodb")) as client,
            closing(stack.client("dynamodbstreams")) as streams,
        ):
            return 0 if _Demo(view, traffic, client, streams).play() else 1
    except KeyboardInterrupt:
        view.say("Stopped by Ctrl-C; the local AWS is gone, nothing is left behind.")
        return INTERRUPTED
    except StreamSortError as error:
        view.verdict(str(error), good=False)
        return 1


def _this_command() -> str:
    """The command as the user can type it: by its path if it lies below this folder."""
    program = Path(sys.argv[0]).absolute()
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else "stream-sort"


@dataclass(frozen=True, slots=True)
class _Demo:
    """One demo on a local AWS that runs."""

    view: View
    traffic: Traffic
    client: Any
    streams: Any

    def play(self) -> bool:
        """All steps; whether everything came out in order."""
        view, traffic = self.view, self.traffic
        board = Board(traffic.lengths)
        sorter = self._sorter()
        sorter.create_tables()
        view.say(f"made the tables {ITEMS_TABLE} and {CURSOR_TABLE}")
        self.client.meta.events.register("provide-client-params.dynamodb.*", board.count_request)
        self._send(board)
        self._explain(sorter)
        self._close_gap(sorter, board)
        return self._judge(sorter, board)

    def _sorter(self) -> StreamSorter:
        return StreamSorter(items_table=ITEMS_TABLE, cursor_table=CURSOR_TABLE, client=self.client)

    def _send(self, board: Board) -> None:
        traffic, view = self.traffic, self.view
        sent = sum(map(len, traffic.calls))
        view.step(f"Send {sent:,} messages to {len(traffic.lengths)} queues: shuffled, some twice, one held back")
        singles = sum(len(call) == 1 for call in traffic.calls)
        view.say(f"{WRITERS} writers at once, {singles:,} puts and {len(traffic.calls) - singles:,} batches")
        began = time.monotonic()
        with view.watch(board) as watch:
            Senders(self._sorter, board).send(traffic, watch.refresh, watch.every)
        seconds = time.monotonic() - began
        view.say(f"sent in {seconds:.1f} s; all stored, and released as far as each queue is whole")

    def _explain(self, sorter: StreamSorter) -> None:
        queue = self.traffic.held_back["queue"]
        self.view.step(f'Ask why "{queue}" is stuck')
        self.view.explain(sorter.explain(queue), time.time())

    def _close_gap(self, sorter: StreamSorter, board: Board) -> None:
        missing = self.traffic.held_back
        self.view.step(f"Send the missing message: seq {missing['seq']:,}")
        with self.view.watch(board):
            advance = sorter.put(missing)
            board.note(missing["queue"], 1, advance)
        jump = f"jumped from {advance.old:,} to {advance.new:,}: {len(advance):,} messages released by one put"
        self.view.say(f'"{advance.queue}" {jump}')

    def _judge(self, sorter: StreamSorter, board: Board) -> bool:
        self.view.step("Read it all back, and the stream of cursor moves, and compare")
        verdicts = judge(sorter, self.streams, CURSOR_TABLE, self.traffic.lengths)
        self.view.results(board, verdicts)
        problems = [f'"{verdict.queue}": {verdict.problem}' for verdict in verdicts if verdict.problem]
        if problems:
            self.view.verdict("; ".join(problems), good=False)
            return False
        moves = sum(verdict.moves for verdict in verdicts)
        self.view.verdict(f"{self.traffic.total:,} messages read back: each once, unchanged, in order", good=True)
        self.view.say(f"       {moves:,} cursor moves in the stream: one unbroken chain for each queue\n")
        self.view.say(f"Next: another shuffle   {_this_command()} demo --messages 10000 --queues 8 --seed 2")
        self.view.say("      your own code     from stream_sort import StreamSorter; see README.md")
        self.view.say("      what it costs     make bench")
        return True
