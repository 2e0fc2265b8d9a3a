"""The script for Glue finds its job among arguments that are not its own."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPT = Path(__file__).parents[2] / "spark" / "glue.py"


@pytest.fixture(scope="module")
def main() -> Callable[[list[str]], int]:
    found: Callable[[list[str]], int] = runpy.run_path(str(SCRIPT))["main"]
    return found


def test_the_job_gets_what_is_quoted_and_nothing_that_glue_adds(
    main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    line = "archive --items-table Items --cursor-table Cursor --control-table Control --archive 's3://no bucket'"
    assert main(["glue.py", "--JOB_NAME", "any", "--run", line, "--TempDir", "s3://other"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("stream-sort: ")
    assert "s3://no bucket" in said


@pytest.mark.parametrize("given", [[], ["--run"], ["--run", ""], ["--run", "compact --all"], ["--JOB_NAME", "archive"]])
def test_without_a_job_it_says_what_to_give(
    given: list[str], main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["glue.py", *given]) == 2
    assert "backfill, audit, archive" in capsys.readouterr().err
