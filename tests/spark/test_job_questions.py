"""The jobs as commands that change tables: who is asked, and the way of the runbook to put back what was lost."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer
from stream_sort.model.consumption import Wake
from stream_sort.replay.archive.job import main as archive_main
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stream_sort import StreamSorter
    from stream_sort.replay.origins.access import TableAccess

RUNBOOK = Path(__file__).parents[2] / "docs" / "operate.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def where(access: TableAccess, sorter: StreamSorter) -> list[str]:
    """A queue with seven messages, all of them consumed, and the options that lead to its tables."""
    control = f"{access.items_table}-control"
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter, control_table=control)
    consumer.create_tables()
    sorter.put_many({"queue": "eve", "seq": seq, "data": b"\x00"} for seq in range(7))
    consumer.process([Wake("eve")])
    tables = ["--items-table", access.items_table, "--cursor-table", access.cursor_table, "--control-table", control]
    return [*tables, "--endpoint-url", str(access.endpoint_url), "--region", "us-east-1"]


def seqs(sorter: StreamSorter) -> list[int]:
    return [slot.first for slot in sorter.stores.items.page("eve", -1, 99, 100).slots]


def test_archive_asks_before_it_trims_and_a_script_does_not(
    spark: SparkSession, where: list[str], sorter: StreamSorter, folder: Path
) -> None:
    assert spark is not None
    # Spark's workers were started in another folder.
    words = ["archive", "--archive", str(folder / "a"), "--trim", *where]
    for answer in ("n\n", ""):
        told = Line().run(*words, given=answer, code=1).stderr
        assert told.startswith("Delete for good, from table ")
        assert "nothing was changed; --yes goes on without asking" in told
    assert (seqs(sorter), list(folder.iterdir())) == ([*range(7)], [])
    assert "Delete for good" in Line().run(*words, "--yes").stderr
    assert seqs(sorter) == [6]
    sorter.put_many({"queue": "eve", "seq": seq} for seq in (7, 8))
    OrderedConsumer("billing", lambda _: None, sorter=sorter, control_table=where[5]).process([Wake("eve")])
    assert archive_main(words[1:]) == 0
    assert seqs(sorter) == [8]


def test_audit_asks_before_it_repairs(
    spark: SparkSession, where: list[str], sorter: StreamSorter, dynamodb: Any
) -> None:
    assert spark is not None
    dynamodb.put_item(TableName=where[1], Item={"queue": {"S": "eve"}, "seq": {"N": "7"}})
    told = Line().run("audit", "--repair", *where, given="n\n", code=1).stderr
    assert told.startswith(f"Advance the queues of table {where[3]} that are found stuck.")
    assert sorter.position("eve") == 6
    assert Line().run("audit", "--repair", "--yes", "--quiet", *where).stderr == ""
    assert sorter.position("eve") == 7


def test_what_an_older_items_table_lost_comes_back_from_an_archive_as_the_runbook_says(
    spark: SparkSession, where: list[str], sorter: StreamSorter, dynamodb: Any, folder: Path
) -> None:
    assert spark is not None
    Line().run("archive", "--archive", str(folder / "kept"), *where)
    for seq in (5, 6):
        dynamodb.delete_item(TableName=where[1], Key={"queue": {"S": "eve"}, "seq": {"N": str(seq)}})
    (told,) = re.findall(r"`stream-sort (backfill --archive [^`]+)`", RUNBOOK.read_text())
    real = {"s3://BUCKET/archive": str(folder / "kept"), "ITEMS": where[1], "CURSOR": where[3]}
    real["progress"] = str(folder / "progress")
    words = [real.get(word, word) for word in shlex.split(told)]
    Line().run(*words, *where[6:])
    assert list(sorter.read("eve", 4)) == [{"queue": "eve", "seq": seq, "data": b"\x00"} for seq in (5, 6)]
