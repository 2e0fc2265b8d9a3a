"""The jobs as commands: the examples of their help on a stack, reports as JSON, and where they look for tables."""

from __future__ import annotations

import json
import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.aws.stacks import Stack
from stream_sort.cli import replay
from stream_sort.model.consumption import Wake
from stream_sort.replay.engine.places import Nearby
from tests.functional.command_line import Line, example_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from stream_sort.local.ministack import MiniStack

HOSTILE = "evil\u202elive"
TABLES = {"ItemsTable": "job-items", "CursorTable": "job-cursor", "ControlTable": "job-control"}


@pytest.fixture(scope="module", autouse=True)
def orders(ministack: MiniStack, dynamodb: Any) -> Iterator[None]:
    """A stack of that name, whose queues are consumed as far as they are released."""
    sorter = StreamSorter("job-items", "job-cursor", client=dynamodb)
    sorter.create_tables()
    consumer = OrderedConsumer("billing", lambda _: None, sorter=sorter, control_table="job-control")
    consumer.create_tables()
    for queue in ("ada", HOSTILE):
        assert sorter.put_many({"queue": queue, "seq": seq} for seq in range(30)).accepted == 30
    consumer.process([Wake("ada"), Wake(HOSTILE)])
    template = {
        "Resources": {"Any": {"Type": "AWS::SQS::Queue"}},
        "Outputs": {name: {"Value": value} for name, value in TABLES.items()},
    }
    with closing(ministack.client("cloudformation")) as cloudformation:
        cloudformation.create_stack(StackName="orders", TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName="orders")
        yield
        cloudformation.delete_stack(StackName="orders")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # No local stack of whoever runs the tests.
    monkeypatch.setattr(replay, "find_nearby", lambda: None)
    return tmp_path


@pytest.fixture
def where(ministack: MiniStack) -> list[str]:
    return ["--endpoint-url", ministack.url, "--region", "us-east-1"]


@pytest.mark.parametrize("job", ["backfill", "audit", "archive"])
def test_the_example_in_the_help_of_a_job_runs(job: str, spark: SparkSession, where: list[str]) -> None:
    assert spark is not None
    words = example_of(job)
    told = Line().json(*words, *where)
    assert (told["job"], told["complete"]) == (job, True)
    if job != "audit":
        assert "ada" in [one["queue"] for one in told["queues"]]
    else:
        assert (told["queues"], told["messages"], told["lag"]) == (2, 60, {"billing": 0})


def test_a_dry_run_of_a_backfill_speaks_json_too(where: list[str]) -> None:
    told = Line().json("backfill", "--stack", "orders", "--sink", "jsonl", "--out", "o", "--dry-run", *where)
    assert (told["dry_run"], told["totals"]["rows"]) == (True, 60)
    assert [one["rows"] for one in told["queues"]] == [30, 30]


def test_a_hostile_name_in_a_report_is_shown_and_not_obeyed(spark: SparkSession, where: list[str]) -> None:
    assert spark is not None
    jobs = [
        ["backfill", "--sink", "jsonl", "--out", "o", "--dry-run"],
        ["backfill", "--sink", "jsonl", "--out", "o"],
        ["archive", "--archive", "a", "--dry-run"],
    ]
    for words in jobs:
        done = Line().run(*words, "--stack", "orders", *where)
        assert r"evil\u202elive" in done.stdout, words
        assert not set(done.stdout + done.stderr) & {"\x1b", "\u202e"}, words
    told = Line().run("archive", "--archive", "a", "--dry-run", "--json", "--stack", "orders", *where).stdout
    assert not set(told) & {"\x1b", "\u202e"}
    assert HOSTILE in [one["queue"] for one in json.loads(told)["queues"]]


def test_tables_come_from_options_before_variables_before_the_stack(
    where: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = ["backfill", "--sink", "jsonl", "--out", "o", "--dry-run", *where]
    monkeypatch.setenv("STREAM_SORT_ITEMS_TABLE", "job-nothing")
    assert "'job-nothing'" in Line().error(*dry, "--stack", "orders", code=2)
    told = Line().json(*dry, "--stack", "orders", "--items-table", "job-items")
    assert told["source"] == "tables job-items and job-cursor"
    monkeypatch.setenv("STREAM_SORT_ITEMS_TABLE", "job-items")
    monkeypatch.setenv("STREAM_SORT_CURSOR_TABLE", "job-cursor")
    assert Line().json(*dry)["totals"]["queues"] == 2


def test_the_local_stack_is_meant_where_nothing_else_is_said(
    ministack: MiniStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "not this one")
    near = Nearby(Stack("the local stack", TABLES), "us-east-1", ministack.url, "test")
    monkeypatch.setattr(replay, "find_nearby", lambda: near)
    dry = ["archive", "--archive", "a", "--dry-run"]
    assert Line().json(*dry)["totals"]["queues"] == 2
    assert os.environ["AWS_ACCESS_KEY_ID"] == "not this one"
    assert "--items-table is missing; give it, or STREAM_SORT_ITEMS_TABLE, or --stack NAME" in Line().error(
        *dry, "--region", "us-east-1", code=2
    )


def test_a_profile_or_a_stack_that_is_not_there_is_one_line(where: list[str]) -> None:
    dry = ["archive", "--archive", "a", "--dry-run"]
    assert "--profile nobody: " in Line().error(*dry, "--profile", "nobody", code=2)
    assert "--stack nothing: " in Line().error(*dry, "--stack", "nothing", *where, code=2)
    assert "--stack orders: " in Line().error(
        *dry, "--stack", "orders", "--region", "us-east-1", "--endpoint-url", "x", code=2
    )
