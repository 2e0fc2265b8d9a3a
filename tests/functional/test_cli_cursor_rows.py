from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.cli import cursor_rows
from tests.functional.command_line import VARIABLES, Line, examples_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functional.conftest import Table


@pytest.fixture
def line(dynamo: Table, sorter: StreamSorter, monkeypatch: pytest.MonkeyPatch) -> Line:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert dynamo.client
    OrderedConsumer("process", sorter=sorter).create_tables()
    return Line()


@pytest.fixture
def delete(dynamo: Table) -> Callable[[str, dict[str, dict[str, str]]], None]:
    def delete(table: str, key: dict[str, dict[str, str]]) -> None:
        dynamo.client.delete_item(TableName=table, Key=key)

    return delete


def put(sorter: StreamSorter, queue: str, *seqs: int) -> None:
    sorter.put_many({"queue": queue, "seq": seq} for seq in seqs)


def test_a_queue_that_waits_for_its_beginning_is_opened_where_it_begins(line: Line, sorter: StreamSorter) -> None:
    put(sorter, "ada", 1000, 1001)
    assert "stream-sort open ada --first-seq 1000" in line.json("explain", "ada")["commands"]
    told = line.json("open", "ada", "--first-seq", "1000", "--yes")
    assert told == {"queue": "ada", "first_seq": 1000, "released": 2, "position": 1001}
    assert "has begun at first_seq 1000" in line.run("open", "ada", "--first-seq", "2000", "--yes", code=1).stderr


def test_open_asks_first(line: Line, sorter: StreamSorter) -> None:
    put(sorter, "ada", 5)
    asked = line.run("open", "ada", "--first-seq", "5", given="n\n", code=1).stderr
    assert "messages for lower seqs are refused from then on" in asked
    assert sorter.position("ada") == -1


def test_a_lost_row_is_put_back(line: Line, sorter: StreamSorter, delete: Callable[..., None]) -> None:
    put(sorter, "ada", 0, 1, 2)
    OrderedConsumer("process", lambda _: None, sorter=sorter).catch_up("ada")
    delete("Cursor", {"queue": {"S": "ada"}})
    assert "stream-sort recover ada" in line.error("explain", "ada")
    asked = line.run("recover", "ada", given="y\n")
    assert "put the cursor row back at position 2" in asked.stderr
    assert asked.stdout.endswith("ada: cursor row put back at 2; released through seq 2\n")
    assert "has its cursor row" in line.error("recover", "ada", code=2)


def test_recover_says_what_counts_as_trimmed(line: Line, sorter: StreamSorter, delete: Callable[..., None]) -> None:
    put(sorter, "ada", 0, 1, 2)
    OrderedConsumer("process", lambda _: None, sorter=sorter).catch_up("ada")
    sorter.trim("ada", 0, control_table="Control")
    delete("Cursor", {"queue": {"S": "ada"}})
    assert "all through seq 0 counts as trimmed" in line.run("recover", "ada", "--yes").stderr


def test_explain_names_what_is_released_and_gone(line: Line, sorter: StreamSorter, delete: Callable[..., None]) -> None:
    put(sorter, "ada", *range(5))
    assert "not stored" not in line.run("explain", "ada").stdout
    for seq in ("3", "4"):
        delete("Items", {"queue": {"S": "ada"}, "seq": {"N": seq}})
    assert "Released but not stored: seq 3-4." in line.run("explain", "ada").stdout


def test_explain_of_a_queue_that_is_trimmed_through_its_position_misses_nothing(
    line: Line, sorter: StreamSorter
) -> None:
    put(sorter, "ada", *range(5))
    OrderedConsumer("process", lambda _: None, sorter=sorter).catch_up("ada")
    sorter.trim("ada", 4, control_table="Control")
    assert "not stored" not in line.run("explain", "ada").stdout


def test_the_examples_in_the_help_run(line: Line, sorter: StreamSorter, delete: Callable[..., None]) -> None:
    put(sorter, "ada", 1000)
    (opening,) = examples_of(cursor_rows.open_queue.__doc__ or "")
    line.run(*shlex.split(opening)[1:])
    OrderedConsumer("process", lambda _: None, sorter=sorter).catch_up("ada")
    delete("Cursor", {"queue": {"S": "ada"}})
    (recovery,) = examples_of(cursor_rows.recover.__doc__ or "")
    assert line.json(*shlex.split(recovery)[1:])["restored"] == 1000
