from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stream_sort.replay.backfill.job import main
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.engine.command import run_main
from stream_sort.replay.engine.options import JobParser

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ["--items-table", "Items", "--cursor-table", "Cursor"]
SAME = ["--sink", "table", "--to-items-table", "Items", "--to-cursor-table", "Cursor", "--checkpoint", "c"]
FILES = ["--sink", "parquet", "--out", "somewhere"]


def options(*argv: str) -> BackfillOptions:
    return BackfillOptions.of(JobParser("backfill").parse_args(argv))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (FILES, "--items-table is missing"),
        (["--items-table", "Items", *FILES], "--cursor-table is missing"),
        (["--export", "a", "--archive", "b", *FILES], "--export and --archive are both given"),
        (TABLES, "the following arguments are required: --sink"),
        ([*TABLES, "--sink", "csv"], "invalid choice: 'csv'"),
        ([*TABLES, "--sink", "parquet"], "--out is missing"),
        ([*TABLES, "--sink", "sqs-fifo", "--checkpoint", "c"], "--target is missing"),
        ([*TABLES, "--sink", "sqs-fifo", "--target", "t", "--out", "o"], "--out does not go with --sink sqs-fifo"),
        ([*TABLES, "--sink", "kinesis", "--target", "t"], "--checkpoint is missing"),
        ([*TABLES, "--sink", "table", "--to-items-table", "B", "--checkpoint", "c"], "--to-cursor-table is missing"),
        (
            [*TABLES, "--sink", "table", "--to-items-table", "Items", "--to-cursor-table", "C", "--checkpoint", "c"],
            "the target tables are those of the source",
        ),
        (
            [*TABLES, *SAME, "--region", "eu-west-1", "--to-region", "eu-west-1"],
            "the target tables are those of the source",
        ),
        ([*TABLES, *FILES, "--gzip"], "--gzip is for --sink jsonl"),
        ([*TABLES, *FILES, "--from-seq", "x"], "--from-seq is 'x'; it must be a whole number"),
        ([*TABLES, *FILES, "--from-seq", "9", "--to-seq", "3"], "from seq 9 is above to seq 3"),
        ([*TABLES, *FILES, "--since", "yesterday"], "--since is 'yesterday'; it must be a time"),
        ([*TABLES, *FILES, "--rows-per-part", "0"], "'0' is not a whole number above 0"),
        ([*TABLES, *FILES, "--max-read-units", "-1"], "'-1' is not a number above 0"),
        ([*TABLES, *FILES, "--until-position"], "--until-position and --consumer belong together"),
        ([*TABLES, *FILES, "--consumer", "c"], "--until-position and --consumer belong together"),
        ([*TABLES, *FILES, "--until-position", "--consumer", "c"], "needs --items-table, --cursor-table and --control"),
        (
            [*TABLES, *FILES, "--until-position", "--consumer", "c", "--control-table", "C", "--to-seq", "4"],
            "leave out --from-seq, --to-seq",
        ),
        (
            [*TABLES, *FILES, "--until-position", "--consumer", "c", "--control-table", "C", "--from-seq", "4"],
            "leave out --from-seq, --to-seq",
        ),
        ([*TABLES, *FILES, "--since", "nan"], "since is nan"),
        ([*TABLES, *FILES, "--until", "inf"], "until is inf"),
        ([*TABLES, *FILES, "--since", "1794826000000"], "in seconds, not in milliseconds"),
        ([*TABLES, *FILES, "--until", "1794826000000"], "in seconds, not in milliseconds"),
        ([*TABLES, *FILES, "--since", "9998-01-01"], "--since is in the future"),
        ([*TABLES, *FILES, "--batch-size", "5"], "--batch-size is for sinks that deliver"),
        (["--archive", "a", *FILES, "--eventual"], "--eventual is for tables"),
        (["--export", "e", *FILES, "--max-read-units", "5"], "--max-read-units is for tables"),
        (["--archive", "a", *FILES, "--items-table", "I"], "--items-table is of no use beside --archive"),
        (["--export", "e", *FILES, "--control-table", "C"], "--control-table is of no use beside --export"),
        ([*TABLES, *FILES, "--report", ""], "it is empty"),
        ([*TABLES, *FILES, "--checkpoint", ""], "it is empty"),
        ([*TABLES, *FILES, "--no-such-option"], "unrecognized arguments: --no-such-option"),
        ([*TABLES, *FILES, "--report", "no/such/folder/r.json"], "its folder is not there"),
    ],
)
def test_bad_options_get_one_clear_line_and_exit_code_2(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.startswith("stream-sort: ")
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_credentials_the_exit_code_is_1_as_of_every_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert main([*TABLES, "--region", "eu-west-1", "--sink", "jsonl", "--out", str(tmp_path / "out")]) == 1
    assert "no usable AWS credentials" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_progress_of_files_is_kept_beside_them_unless_told_otherwise() -> None:
    assert options(*TABLES, "--sink", "jsonl", "--out", "s3://bucket/x/").ledger.uri == "s3://bucket/x/_stream_sort"
    assert options(*TABLES, *FILES, "--checkpoint", "elsewhere").ledger.uri == "elsewhere"


@pytest.mark.parametrize(
    "elsewhere", [["--to-region", "eu-west-1"], ["--to-endpoint-url", "http://127.0.0.1:9"]], ids=["region", "endpoint"]
)
def test_tables_of_the_same_names_may_be_elsewhere(elsewhere: list[str]) -> None:
    assert options(*TABLES, "--region", "us-east-1", *SAME, *elsewhere).sink.to_items_table == "Items"


def test_what_only_says_how_a_job_runs_may_change_between_its_runs() -> None:
    first = options(*TABLES, *FILES)
    later = options(*TABLES, *FILES, "--on-gap", "skip", "--quiet", "--eventual", "--max-read-units", "5")
    assert first.identity() == later.identity()
    assert first.identity() != options(*TABLES, *FILES, "--queue", "a").identity()


def test_an_interrupted_job_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    assert run_main("backfill", interrupted, [*TABLES, *FILES], resume="run it again") == 130
    assert capsys.readouterr().err == "stream-sort: interrupted; to go on: run it again\n"
