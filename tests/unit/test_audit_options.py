"""Options of an audit that would do nothing are refused, before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.audit.job import main
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.engine.command import run_main

if TYPE_CHECKING:
    from pathlib import Path

TABLES = ["--items-table", "Items", "--cursor-table", "Cursor"]
EXPORT = ["--export", "somewhere"]
ARCHIVE = ["--archive", "somewhere"]


def options(*argv: str) -> AuditOptions:
    """The options as the command gets them, with what variables say."""
    found: list[AuditOptions] = []

    def take(given: Any) -> int:
        found.append(AuditOptions.of(given))
        return 0

    assert run_main("audit", take, argv) == 0
    return found[0]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([*EXPORT, *TABLES], "--items-table is of no use beside --export; leave it out"),
        ([*EXPORT, "--control-table", "K"], "--control-table is of no use beside --export; leave it out"),
        ([*EXPORT, "--first-seq", "1"], "--first-seq is of no use beside --export; leave it out"),
        ([*EXPORT, "--eventual"], "--eventual is for tables"),
        ([*ARCHIVE, "--eventual"], "--eventual is for tables"),
        (
            [*ARCHIVE, "--control-table", "K"],
            "--items-table is missing: tables beside an archive tell what it must hold",
        ),
        ([*ARCHIVE, *TABLES], "--control-table is missing: tables beside an archive tell what it must hold"),
        ([*TABLES, "--detail-format", "json"], "--detail-format is the form of what --detail writes; give both"),
        ([*TABLES, "--report", ""], "argument --report: it is empty; name a place, or leave the option out"),
        ([*TABLES, "--out", ""], "argument --out: it is empty; name a place, or leave the option out"),
        ([*TABLES, "--detail", ""], "argument --detail: it is empty; name a place, or leave the option out"),
        ([*TABLES, "--first-seq", "one"], "--first-seq is 'one'; it must be a whole number"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused_in_one_line(argv: list[str], told: str, capsys: Any) -> None:
    assert main(argv) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_report_that_cannot_be_written_is_told_of_by_the_option_that_asked_for_it(
    option: str, tmp_path: Path, capsys: Any
) -> None:
    assert main([*TABLES, option, str(tmp_path / "nowhere" / "r.json")]) == 2
    said = capsys.readouterr().err
    assert f"{option} {tmp_path}/nowhere/r.json: its folder is not there, or cannot be written to" in said
    assert main([*TABLES, option, str(tmp_path)]) == 2
    assert f"{option} {tmp_path} is a folder; name a file" in capsys.readouterr().err
    assert main([*TABLES, option, "x" * 300]) == 2
    assert f"{option} 'xxx" in capsys.readouterr().err


def test_what_goes_together_is_taken(tmp_path: Path) -> None:
    assert options(*ARCHIVE, *TABLES, "--control-table", "K").source.control_table == "K"
    assert options(*EXPORT, "--detail", str(tmp_path), "--detail-format", "json").source.kind == "export"
    assert options(*TABLES, "--eventual", "--report", str(tmp_path / "report")).consistent is False


def test_queues_start_where_the_option_or_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options(*TABLES).first_seq == 0
    monkeypatch.setenv("STREAM_SORT_FIRST_SEQ", "7")
    assert options(*TABLES).first_seq == 7
    assert options(*TABLES, "--first-seq", "-3").first_seq == -3


def test_variables_that_name_tables_do_not_hinder_an_audit_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ITEMS_TABLE", "CURSOR_TABLE", "CONTROL_TABLE"):
        monkeypatch.setenv(f"STREAM_SORT_{name}", "T")
    monkeypatch.setenv("STREAM_SORT_FIRST_SEQ", "7")
    assert options(*EXPORT).source.items_table == options(*ARCHIVE).source.items_table == ""
