from __future__ import annotations

import io
import json
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import SettingsError
from stream_sort.replay.engine.command import check_report_file
from stream_sort.replay.engine.progress import JobProgress
from stream_sort.replay.engine.report import JobReport
from stream_sort.replay.origins.access import TableAccess

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"queue": f"q{number}", "rows": 1_000 * number, "gaps": [[5, 7], [9, 9]]} for number in range(40)]
REPORT = JobReport(
    "backfill", complete=False, columns=("queue", "rows", "gaps"), queues=ROWS, totals={"rows": 1_234_567}
)


def test_a_report_shows_the_first_queues_as_a_table_and_counts_the_others() -> None:
    lines = REPORT.text().splitlines()
    assert lines[0] == "queue    rows  gaps"
    assert lines[2] == "q0          0  5-7, 9"
    assert lines[31] == "q29    29,000  5-7, 9"
    assert lines[32:] == ["and 10 more", "", "rows 1,234,567", "backfill: NOT complete (0.0 s)"]


def test_a_report_as_json_has_every_queue(tmp_path: Path) -> None:
    REPORT.write(str(tmp_path / "report.json"), TableAccess("Items", "Cursor"))
    document = json.loads((tmp_path / "report.json").read_text())
    assert (document["complete"], len(document["queues"]), document["queues"][3]["gaps"]) == (
        False,
        40,
        [[5, 7], [9, 9]],
    )
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def test_a_report_that_could_not_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    check_report_file(str(tmp_path / "new.json"))
    with pytest.raises(SettingsError, match="not there"):
        check_report_file(str(tmp_path / "no" / "such.json"))
    with pytest.raises(SettingsError, match="is a folder"):
        check_report_file(str(tmp_path))


def test_long_and_hostile_names_keep_their_row() -> None:
    row = {"queue": "x" * 100 + "\nfake row", "rows": None, "gaps": []}
    lines = JobReport("audit", True, ("queue", "rows", "gaps"), [row], {}).text().splitlines()  # noqa: FBT003
    name, *rest = lines[2].rsplit(maxsplit=2)
    assert (name.startswith("xxx"), "…" in name, rest) == (True, True, ["-", "-"])
    assert max(map(len, lines)) == 120
    narrow = JobReport("audit", True, ("queue", "rows", "gaps"), [row], {}).text(60).splitlines()  # noqa: FBT003
    assert max(map(len, narrow)) == 60


def test_control_characters_in_a_report_are_shown_and_not_obeyed() -> None:
    row = {"queue": "\x1b[2J", "rows": 1, "gaps": ["\x07"]}
    report = JobReport("audit", True, ("queue", "rows", "gaps"), [row], {"who": "\x1b"}, notes=("of \x1b[31m",))  # noqa: FBT003
    text = report.text()
    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"\x1b[2J" in text
    assert r"of \x1b[31m" in text
    printed = Namespace(json=True)
    assert json.loads(report.shown(printed)) == report.document()
    assert "\x9b" not in replace(report, queues=[{"queue": "\x9b"}]).shown(printed)


def test_progress_says_rows_rate_and_parts() -> None:
    now = iter([100.0, 100.0, 104.0, 104.0, 104.0, 104.0])
    stream = io.StringIO()
    progress = JobProgress(5_000, 4, stream=stream, monotonic=lambda: next(now))
    with progress:
        progress.add(2_000)
        progress.add(400)
    assert stream.getvalue() == "2,400 of 5,000 rows, 600/s, 2 of 4 parts, 4 s\n"


def test_progress_counts_what_is_under_way_until_the_end() -> None:
    stream = io.StringIO()
    with JobProgress(50, 4, stream=stream) as progress:
        progress.watch(lambda: 7)
        progress.add(10)
        assert progress.line().startswith("17 of 50 rows, ")
    assert stream.getvalue().startswith("10 of 50 rows, ")


def test_quiet_progress_says_nothing() -> None:
    stream = io.StringIO()
    with JobProgress(None, None, quiet=True, stream=stream) as progress:
        progress.add(1)
    assert not stream.getvalue()
    assert progress.line().startswith("1 rows, ")


def test_a_problem_that_its_cell_cuts_short_is_told_whole() -> None:
    short, long = "it is lost", "it is archived elsewhere, and trimmed; to go on all the same, run once without --trim"
    rows = [{"queue": "ada", "problem": long}, {"queue": "bob", "problem": short}, {"queue": "eve", "problem": ""}]
    text = JobReport("archive", False, ("queue", "problem"), rows, {}).text()  # noqa: FBT003  # as jobs do
    assert f"\nqueue 'ada': {long}\n" in text
    assert "queue 'bob'" not in text
