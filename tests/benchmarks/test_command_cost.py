"""What a command costs beside the library that it cannot do without: heavy imports only where used."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stream_sort import OrderedConsumer, StreamSorter

if TYPE_CHECKING:
    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables

FEWEST_RUNS, MOST_RUNS = 7, 60
STREAM_SORT = "from stream_sort.cli.app import main; main()"


@dataclass
class Contest:
    """Two programs in turns, so that both have the same machine; the best run of each counts, since noise only adds.

    On a machine that others use as well, one of them may have no good run among the first few: there are more, up to a
    limit. A program that costs too much has no good run at all.
    """

    plain: str
    words: tuple[str, ...]
    more: dict[str, str] = field(default_factory=dict)

    def ratio(self, bar: float) -> float:
        """Return how many times the processor time of `plain` the command takes."""
        self._run(STREAM_SORT, *self.words)  # so that all bytecode is there
        plain, command = float("inf"), float("inf")
        for done in range(1, MOST_RUNS + 1):
            plain, command = min(plain, self._run(self.plain)), min(command, self._run(STREAM_SORT, *self.words))
            if done >= FEWEST_RUNS and command <= bar * plain:
                break
        print(f"stream-sort {self.words[0]}: {command / plain:.2f} times `{self.plain}` ({plain * 1000:.0f} ms)")
        return command / plain

    def _run(self, code: str, *words: str) -> float:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=True, env=env | self.more)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_costs_little_more_than_typer_itself() -> None:
    assert Contest("import typer", ("--help",)).ratio(bar=1.5) <= 1.5


def test_status_of_an_idle_stack_costs_little_more_than_a_client_of_boto3(ministack: MiniStack, tables: Tables) -> None:
    sorter = StreamSorter(tables.items, tables.cursor, client=ministack.client("dynamodb"))
    OrderedConsumer("process", lambda _: None, sorter=sorter, control_table="status-cost").create_tables()
    named = ("--items-table", tables.items, "--cursor-table", tables.cursor, "--control-table", "status-cost")
    account = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
    words = ("status", *named, "--endpoint-url", ministack.url)
    contest = Contest("import boto3; boto3.client('dynamodb')", words, account)
    assert contest.ratio(bar=2.2) <= 2.2
