"""What docs/spark.md says is so: its commands are understood by the jobs, its tables are those of the code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.replay.archive.options import ArchiveOptions
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.backfill.options import BackfillOptions
from stream_sort.replay.engine import command
from stream_sort.replay.engine.options import COMMAND_LINES, DELIVERING_SINKS, FILE_SINKS, ON_GAP, JobParser
from stream_sort.replay.source import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "spark.md").read_text()
CHECKS: dict[str, Callable[[Any], Any]] = {
    "backfill": BackfillOptions.of,
    "audit": AuditOptions.of,
    "archive": ArchiveOptions.of,
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """The jobs that are started by the document's commands, each with its options."""
    for block in blocks("console"):
        for line in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield from started(shlex.split(line.replace("\\\n", " ")))


def started(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    for place, word in enumerate(words):
        if script := re.fullmatch(r"spark/(\w+)\.py", word):
            yield script[1], words[place + 1 :]
        elif word.removeprefix(".venv/bin/") == "stream-sort" and place == 0:
            yield words[place + 1], words[place + 2 :]
        elif word == "--job-driver":
            submit = json.loads(words[place + 1])["sparkSubmit"]
            yield Path(submit["entryPoint"]).stem, submit["entryPointArguments"]
        elif word == "--arguments":
            job, *given = shlex.split(json.loads(words[place + 1])["--run"])
            yield job, given


def known(job: str) -> set[str]:
    """The options of a job, --help left out."""
    actions = JobParser(job)._actions
    return {name for action in actions for name in action.option_strings if name.startswith("--")} - {"--help"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the tables under a heading, titles left out."""
    section = re.split(r"^#+ ", TEXT.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines if line.startswith("`")]


def named(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def test_commands_of_all_jobs_in_all_places_are_shown() -> None:
    found = [job for job, _ in commands()]
    assert set(found) == set(COMMAND_LINES)
    assert len(found) >= 14


@pytest.mark.parametrize(("job", "given"), list(commands()))
def test_a_command_of_the_document_is_understood_by_its_job(job: str, given: list[str]) -> None:
    assert CHECKS[job](JobParser(job).parse_args(given))


@pytest.mark.parametrize("job", COMMAND_LINES)
def test_the_options_of_a_job_are_those_of_its_parser(job: str) -> None:
    shared = [named(cells[0]) for cells in rows("Where from, and what of it") if job in cells[1] or cells[1] == "all"]
    assert set().union(*shared, *(named(cells[0]) for cells in rows(job))) == known(job)


def test_the_sinks_and_what_a_gap_does_are_those_of_the_code() -> None:
    said = {frozenset(named(cells[0])): cells[1] for cells in rows("backfill")}
    sinks = named(said[frozenset({"--sink"})]) - {"--out"}
    assert sinks == set(FILE_SINKS + DELIVERING_SINKS)
    assert named(said[frozenset({"--on-gap"})]) == set(ON_GAP)


def test_the_options_of_the_data_source_are_those_of_the_code() -> None:
    table = {cells[0].strip("`"): cells[1].strip("`") for cells in rows("The data source")}
    assert set(table) == set(options.KNOWN)
    plain = options.source_options({"itemsTable": "Items", "cursorTable": "Cursor"})
    assert table["rowsPerPartition"] == str(plain.rows_per_partition)
    assert (table["mode"], table["startingPosition"]) == (plain.mode, plain.starting_position)
    assert (table["consistent"], table["released"]) == ("true", "true")


def test_the_exit_codes_are_those_of_the_code() -> None:
    codes = set(map(int, re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)))
    known_codes = (command.COMPLETE, command.INCOMPLETE, command.BAD_INPUT, command.INTERRUPTED)
    assert codes == set(known_codes)


def test_the_python_of_the_document_compiles_and_names_options_that_exist() -> None:
    code = "\n".join(blocks("python no-run"))
    compile(code, "docs/spark.md", "exec")
    spark_own = {"checkpointLocation", "path"}
    assert set(re.findall(r'\.option\("(\w+)"', code)) - spark_own <= set(options.KNOWN)


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "spark").glob("*.py")))
def test_every_script_is_in_the_document(script: str) -> None:
    assert f"`spark/{script}`" in TEXT
