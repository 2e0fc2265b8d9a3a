from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stream_sort.cli.lazy_group import COMMANDS, load
from tests.functional.command_line import Line

PROGRAM = [sys.executable, "-c", "from stream_sort.cli.app import main; main()"]
COST = ["cost", "--messages", "10M"]


def test_help_loads_nothing_of_aws_and_no_command() -> None:
    code = "from stream_sort.cli.app import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
    script = f"import sys, json\n{code}print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & {"boto3", "botocore", "pynamodb", "pyspark", "rich"}
    ours = {name for name in loaded if name.startswith("stream_sort.cli.")}
    assert ours == {"stream_sort.cli.app", "stream_sort.cli.lazy_group"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_there_under_its_name(name: str) -> None:
    assert load(name).name == name
    assert f"  {name} " in Line().run("--help").stdout


@pytest.mark.parametrize("name", [name for name in COMMANDS if COMMANDS[name].module != "replay"])
def test_every_command_has_help(name: str) -> None:
    assert f"Usage: stream-sort {name}" in Line().run(name, "--help").stdout


@pytest.mark.parametrize("group", ["parked", "dead", "dead-letters", "late", "consumers", "local"])
def test_the_list_of_a_groups_commands_cuts_no_sentence(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = Line().run(group, "--help").stdout.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nonsense"], "No such command 'nonsense'; see stream-sort --help"),
        (["--bad"], "No such option: --bad; see stream-sort --help"),
        (["skip"], "Missing argument 'QUEUE'; see stream-sort skip --help"),
        (["local", "nothing"], "No such command 'nothing'; see stream-sort local --help"),
        (["local", "up", "--sink"], "Option '--sink' requires an argument; see stream-sort local up --help"),
        (["explain", "--stack"], "Option '--stack' requires an argument; see stream-sort explain --help"),
        (["local", "up", "--watch=1"], "Option '--watch' does not take a value; see stream-sort local up --help"),
        (["\x1b[2J"], r"No such command '\x1b[2J'; see stream-sort --help"),
    ],
)
def test_bad_usage_is_one_line(words: list[str], told: str) -> None:
    assert Line().error(*words, code=2) == told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["staus"], "No such command 'staus'; did you mean 'status'? See stream-sort --help"),
        (["consumer"], "No such command 'consumer'; did you mean 'consumers'? See stream-sort --help"),
        (["parked", "lst"], "No such command 'lst'; did you mean 'list'? See stream-sort parked --help"),
        (
            ["consumers", "rest"],
            "No such command 'rest'; did you mean 'reset' or 'retire'? See stream-sort consumers --help",
        ),
        (["local", "upp"], "No such command 'upp'; did you mean 'up'? See stream-sort local --help"),
        (["retire"], "No such command 'retire'; did you mean 'consumers retire'? See stream-sort --help"),
        (["logs"], "No such command 'logs'; did you mean 'local logs'? See stream-sort --help"),
        (
            ["redrive"],
            (
                "No such command 'redrive'; did you mean 'parked redrive', 'dead redrive' or 'dead-letters redrive'? "
                "See stream-sort --help"
            ),
        ),
        (["parked", "ada"], "No such command 'ada'; did you mean 'parked list ada'? See stream-sort parked --help"),
        (["parked", "eve"], "No such command 'eve'; did you mean 'parked list eve'? See stream-sort parked --help"),
        (["late", "a b"], "No such command 'a b'; did you mean \"late list 'a b'\"? See stream-sort late --help"),
        (["status", "--dep"], "No such option: --dep; did you mean --deep? See stream-sort status --help"),
        (["parked", "--jsn"], "No such option: --jsn; did you mean --json? See stream-sort parked list --help"),
        (
            ["backfill", "--snk", "parquet"],
            "no such option: --snk; did you mean --sink? See stream-sort backfill --help",
        ),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_what_is_mistyped_gets_a_did_you_mean(words: list[str], told: str) -> None:
    assert Line().error(*words, code=2) == told


@pytest.mark.parametrize("group", ["parked", "dead", "dead-letters", "late", "withdrawn", "consumers"])
def test_a_group_says_in_its_help_that_it_lists(group: str) -> None:
    shown = Line().run(group, "--help").stdout
    assert f"Usage: stream-sort {group} [OPTIONS] [COMMAND] [ARGS]..." in shown
    assert "Without a command it lists them, with the options of list." in shown


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is full")
@pytest.mark.parametrize("words", [COST, [*COST, "--json"], ["--help"]], ids=["table", "json", "help"])
def test_output_that_cannot_be_written_is_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "stream-sort: No space left on device; can its output be written?\n"
    assert done.returncode == 1


def test_a_closed_stdout_is_one_line() -> None:
    closed = shlex.join([*PROGRAM, *COST]) + " >&-"
    done = subprocess.run(["bash", "-c", closed], stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr.startswith("stream-sort: stdout is closed; ")
    assert done.returncode == 1


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    enough = f"set -o pipefail; {shlex.join([*PROGRAM, *COST])} | (exec <&-; sleep 0.1)"
    done = subprocess.run(["bash", "-c", enough], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_no_command_at_all_shows_the_help() -> None:
    result = Line().run(code=2)
    assert "Usage: stream-sort" in result.stdout + result.stderr


def test_the_shell_completes_commands() -> None:
    shown = Line().runner.invoke(
        Line.app,
        prog_name="stream-sort",
        env={"_STREAM_SORT_COMPLETE": "complete_bash", "COMP_WORDS": "stream-sort sta", "COMP_CWORD": "1"},
    )
    assert shown.stdout.split() == ["status"]
