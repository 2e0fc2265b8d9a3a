"""What a command that touches AWS costs beside the SDK that it cannot do without: heavy imports only where used."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

from stream_sort import OrderedConsumer, StreamSorter

if TYPE_CHECKING:
    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables

RUNS = 7
CLIENT = "import boto3; boto3.client('dynamodb')"
STATUS = "from stream_sort.cli.app import main; main()"


def spent(code: str, *words: str, env: dict[str, str]) -> float:
    """Return the seconds of processor time that a process took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_status_of_an_idle_stack_costs_little_more_than_a_client_of_boto3(ministack: MiniStack, tables: Tables) -> None:
    sorter = StreamSorter(tables.items, tables.cursor, client=ministack.client("dynamodb"))
    OrderedConsumer("process", lambda _: None, sorter=sorter, control_table="status-cost").create_tables()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}
    named = ["--items-table", tables.items, "--cursor-table", tables.cursor, "--control-table", "status-cost"]
    words = ["status", *named, "--endpoint-url", ministack.url]
    # Once beforehand, so that all bytecode is there; then in turns, so that both have the same machine.
    spent(STATUS, *words, env=env)
    both = [(spent(CLIENT, env=env), spent(STATUS, *words, env=env)) for _ in range(RUNS)]
    client, status = map(min, zip(*both, strict=True))
    print(f"stream-sort status: {status / client:.2f} times a client of boto3 ({client * 1000:.0f} ms)")
    assert status <= 2.2 * client
