"""Where a job looks for its tables, as far as no AWS is asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stream_sort.aws.stacks import Stack
from stream_sort.replay.engine.options import JobParser
from stream_sort.replay.engine.places import Nearby, located
from stream_sort.replay.engine.source import Source

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

OUTPUTS = {"ItemsTable": "its", "CursorTable": "crs", "ControlTable": "ctl"}
NEAR = Nearby(Stack("near", OUTPUTS, {"QueueKey": "lane"}), "us-east-1", "http://127.0.0.1:1", "local")
FILES = ["--sink", "parquet", "--out", "o"]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STREAM_SORT_")]:
        monkeypatch.delenv(name)


def backfill(*argv: str) -> Namespace:
    return JobParser("backfill").parse_args([*FILES, *argv])


@pytest.mark.parametrize("said", [[], ["--stack", "local"]])
def test_what_is_near_names_tables_keys_and_place(said: list[str]) -> None:
    given = backfill(*said)
    with located(given, lambda: NEAR):
        source = Source.of(given)
        assert os.environ["AWS_ACCESS_KEY_ID"] == "local"
    assert (source.items_table, source.cursor_table, source.queue_key, source.seq_key) == ("its", "crs", "lane", "seq")
    assert (source.region, source.endpoint_url) == ("us-east-1", "http://127.0.0.1:1")


def test_a_script_looks_at_nothing_near() -> None:
    given = backfill()
    with located(given):
        assert given.items_table is None


@pytest.mark.parametrize(
    "said", [["--region", "eu-west-1"], ["--endpoint-url", "http://x"], ["--items-table", "a"], ["--archive", "b"]]
)
def test_what_is_near_is_not_meant_where_another_place_is_named(said: list[str]) -> None:
    def nobody_asks() -> Nearby:
        raise AssertionError("asked")

    with located(backfill(*said), nobody_asks):
        pass


def test_variables_name_what_options_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ITEMS_TABLE", "CURSOR_TABLE", "CONTROL_TABLE", "SEQ_KEY"):
        monkeypatch.setenv(f"STREAM_SORT_{name}", f"my-{name.lower()}")
    given = JobParser("archive").parse_args(["--archive", "a", "--items-table", "mine"])
    with located(given):
        assert (given.items_table, given.cursor_table, given.control_table) == (
            "mine",
            "my-cursor_table",
            "my-control_table",
        )
        assert given.seq_key == "my-seq_key"


def test_tables_beside_files_are_not_taken_from_variables_but_keys_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_SORT_ITEMS_TABLE", "mine")
    monkeypatch.setenv("STREAM_SORT_QUEUE_KEY", "lane")
    given = backfill("--export", "somewhere")
    with located(given):
        assert (given.items_table, given.queue_key) == (None, "lane")


def test_a_backfill_that_joins_nobody_is_the_same_job_with_a_control_table_or_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STREAM_SORT_CONTROL_TABLE", "ctl")
    given, joining = backfill("--items-table", "i"), backfill("--items-table", "i", "--until-position")
    with located(given), located(joining):
        assert (given.control_table, joining.control_table) == (None, "ctl")


def test_a_profile_goes_before_keys_in_the_environment_and_only_for_this_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile mine]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with located(backfill("--profile", "mine")):
        assert os.environ["AWS_PROFILE"] == "mine"
        assert "AWS_ACCESS_KEY_ID" not in os.environ
    assert os.environ["AWS_ACCESS_KEY_ID"] == "other"
    assert "AWS_PROFILE" not in os.environ
