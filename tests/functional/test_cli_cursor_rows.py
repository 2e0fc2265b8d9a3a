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
    assert "its own gap policy is lost; until you set it again, the default applies: wait" in asked.stderr
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


def test_recover_says_where_a_queue_starts_that_was_opened_elsewhere(
    line: Line, sorter: StreamSorter, delete: Callable[..., None]
) -> None:
    sorter.open("ada", first_seq=100)
    put(sorter, "ada", 102)
    delete("Cursor", {"queue": {"S": "ada"}})
    told = line.run("recover", "ada", "--position", "99", "--yes").stderr
    assert "it starts at seq 100, and what is lower is refused if it comes" in told


def test_recover_without_a_control_table_says_how_to_say_that_there_is_none(
    line: Line, sorter: StreamSorter, delete: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAM_SORT_CONTROL_TABLE")
    put(sorter, "ada", 0)
    delete("Cursor", {"queue": {"S": "ada"}})
    assert "--no-consumers if nobody consumes" in line.error("recover", "ada", code=2)
    assert line.json("recover", "ada", "--no-consumers", "--yes")["policy"] == "wait"


def test_explain_opens_no_queue_that_was_opened_before_or_has_something_below(
    line: Line, sorter: StreamSorter, dynamo: Table
) -> None:
    sorter.open("opened", first_seq=1000)
    put(sorter, "opened", 1005)
    put(sorter, "lower", 5)
    dynamo.client.put_item(TableName="Items", Item={"queue": {"S": "lower"}, "seq": {"N": "-4"}})
    for queue in ("opened", "lower"):
        commands = line.json("explain", queue)["commands"]
        assert [words.split()[1] for words in commands] == ["skip"]
        line.run(*shlex.split(commands[0])[1:], "--yes")


@pytest.mark.parametrize("stray", [10_002, 5_000_000, 1_700_000_000_000, 2**63 - 1])
def test_explain_of_a_stray_seq_says_withdraw_and_no_skip(line: Line, sorter: StreamSorter, stray: int) -> None:
    put(sorter, "times", 0, stray)
    told = line.json("explain", "times")
    assert told["commands"] == [f"stream-sort withdraw times {stray}"]
    assert "skip" not in told["state"]["remedy"]
    assert any(f"is seq {stray} a mistake, such as a time?" in sentence for sentence in told["sentences"])
    line.run(*shlex.split(told["commands"][0])[1:], "--yes")
    assert line.json("explain", "times")["commands"] == []


def test_explain_of_a_time_as_the_first_message_leads_nobody_to_open_the_queue_there(
    line: Line, sorter: StreamSorter
) -> None:
    put(sorter, "times", 1_700_000_000_000)
    told = line.json("explain", "times")
    assert told["commands"] == ["stream-sort withdraw times 1700000000000"]
    assert any("If its producer really begins at seq 1700000000000" in sentence for sentence in told["sentences"])


def test_explain_of_a_long_loss_names_skip_as_well(line: Line, sorter: StreamSorter) -> None:
    put(sorter, "real", 0, 20_001, 20_002)
    told = line.json("explain", "real")
    assert told["commands"] == ["stream-sort withdraw real 20001"]
    assert any("If the seqs before it are really lost, skip gives them up" in one for one in told["sentences"])


def test_explain_names_a_stray_seq_behind_a_gap_that_can_be_skipped(line: Line, sorter: StreamSorter) -> None:
    put(sorter, "times", 0, 2, 3, 1_700_000_000_000)
    commands = line.json("explain", "times")["commands"]
    assert commands == ["stream-sort skip times 1", "stream-sort withdraw times 1700000000000"]
