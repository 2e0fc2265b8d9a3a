"""`stream-sort local` where nothing is started: what cannot be used is said at once, in a line, with exit code 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_sort import OrderedConsumer, StreamSorter
from stream_sort.errors import LocalStackFailed, StreamSortError
from stream_sort.local import project
from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.leash import BY_ITSELF
from stream_sort.local.parameters import known_parameters
from stream_sort.local.record import StackRecord
from stream_sort.local.report import local_command, summary
from stream_sort.local.stack import LocalStack, default_home
from stream_sort.program import program
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER_PYTHON = "python3.13" if sys.version_info[:2] != (3, 13) else "python3.11"


class UpWithNothingInIt(LocalStack):
    """What a stack says of itself needs no AWS to look at, as long as it has no queues and no functions."""

    def __init__(self, home: Path) -> None:
        super().__init__(
            DetachedMiniStack(home, 9), home, StackRecord(9, outputs={"ItemsTable": "Items", "TryIt": "aws x"})
        )

    @property
    def parameters(self) -> dict[str, str]:
        return {}

    def workers(self, step: str) -> list[int]:  # noqa: ARG002  # as its parent's
        return []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--set", "foo=1"], "template.yaml has no parameter 'foo'"),
        (["--set", "OnPoisn=park"], "template.yaml has no parameter 'OnPoisn'; did you mean 'OnPoison'?"),
        (["--set", "MaxAttempts=abc"], "parameter MaxAttempts is 'abc'; it must be a number from 1 on"),
        (["--set", "MaxAttempts"], "must be NAME=VALUE"),
        (["--sink", "kafka"], "parameter Sink is 'kafka'"),
        (
            ["--set", "SparkApplication=Enabled"],
            "SparkApplication=Enabled cannot be tried here: the local AWS has no EMR",
        ),
        (["--set", "PythonRuntime=python3.10"], "parameter PythonRuntime is 'python3.10'"),
        (
            ["--set", f"PythonRuntime={OTHER_PYTHON}"],
            f"PythonRuntime={OTHER_PYTHON} cannot be tried here: functions run on",
        ),
        (["--handler", "nofile.py:handle"], "No such file"),
        (["--handler", "nofile"], "must be FILE:FUNCTION"),
    ],
)
def test_up_with_what_cannot_be_used_starts_nothing(tmp_path: Path, words: list[str], problem: str) -> None:
    assert problem in Line().error("local", "up", *words, "--home", str(tmp_path / "home"), code=2)
    assert not (tmp_path / "home").exists()


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}")
    for home in (tmp_path / "a.jsonl", tmp_path / "a.jsonl" / "x"):
        said = Line().error("local", "up", "--home", str(home), code=2)
        assert said.startswith(f"--home {home}: no folder can be made there: ")


@pytest.fixture
def was_up(tmp_path: Path) -> Path:
    """The folder of a stack that was up, and whose AWS has ended since."""
    StackRecord(9, {"MaxAttempts": "3"}).save(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose local stack died: its leash says when and how."""
    for name in project.PARTS:
        (tmp_path / name).mkdir()
    monkeypatch.setattr(project, "__file__", str(tmp_path / "stream_sort" / "local" / "project.py"))
    StackRecord(
        9, outputs=dict.fromkeys(("EnqueueFunction", "AdvanceFunction", "ProcessFunction", "SweepFunction"), "f")
    ).save(tmp_path / ".stream-sort")
    said = f"2026-11-18 04:42:36 {BY_ITSELF}killed by signal 9\n"
    (tmp_path / ".stream-sort" / "ministack.log").write_text(f"2026-11-18 04:42:30 WARNING [sqs] something\n{said}")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--stack", "local"],
        ["gaps", "ada"],
        ["local", "status"],
        ["local", "invoke", "sweep", "{}"],
    ],
)
def test_a_command_for_a_local_stack_that_died_says_when_and_how(checkout: Path, words: list[str]) -> None:
    told = Line().error(*words)
    assert told.startswith(
        f"the local stack in {checkout}/.stream-sort died at 2026-11-18 04:42:36 (killed by signal 9)"
    )
    assert "What it logged: stream-sort local logs (look first: up begins with empty logs); " in told
    assert told.endswith("start it again with: stream-sort local up")


@pytest.mark.parametrize("made", [StreamSorter.from_stack, OrderedConsumer.from_stack])
def test_a_program_for_a_local_stack_that_died_is_told_when_and_how(
    checkout: Path, made: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["my_program.py"])
    with pytest.raises(LocalStackFailed) as caught:
        made("local")
    told = str(caught.value)
    assert told.startswith(
        f"the local stack in {checkout}/.stream-sort died at 2026-11-18 04:42:36 (killed by signal 9)"
    )
    assert told.endswith("start it again with: stream-sort local up")


def test_a_program_that_says_that_aws_is_meant_is_told_nothing_of_a_local_stack_that_died(checkout: Path) -> None:
    assert checkout.exists()
    with pytest.raises(StreamSortError) as caught:
        StreamSorter.from_stack("local", region="eu-west-1", endpoint_url="http://127.0.0.1:9")
    assert "died" not in str(caught.value)


def test_a_command_that_means_another_stack_does_not_care_that_the_local_one_died(checkout: Path) -> None:
    assert checkout.exists()
    assert "died" not in Line().error("status", "--region", "eu-west-1", code=2)


@pytest.mark.usefixtures("checkout")
def test_programs_are_told_of_a_death_too() -> None:
    died = datetime(2026, 11, 18, 4, 42, 36).astimezone(UTC).isoformat()
    assert Line().json("local", "status", code=1) == {"running": False, "died": died, "reason": "killed by signal 9"}


def test_the_logs_of_a_dead_stack_are_read_from_what_was_kept_up_to_a_line_that_was_cut_off(checkout: Path) -> None:
    kept = checkout / ".stream-sort" / "functions.log"
    kept.write_text('{"at": 1, "step": "process", "text": "mine"}\n{"at": 2, "step": "process", "te')
    told = Line().run("local", "logs")
    assert told.stdout.splitlines()[0].endswith(" process  > mine")
    assert "died at 2026-11-18 04:42:36" in told.stderr
    assert Line().json("local", "logs", "process") == {"at": 1, "step": "process", "text": "mine"}
    assert "there is no function 'nobody'" in Line().error("local", "logs", "nobody", code=2)
    meant = "there is no function 'proces'; did you mean 'process'?"
    assert Line().error("local", "logs", "proces", code=2) == meant


def test_one_that_left_no_word_is_dated_by_its_last_sign_of_life(was_up: Path) -> None:
    os.utime(was_up / "stack.json", (1_000_000_000, 1_000_000_000))
    told = Line().error("local", "status", "--home", str(was_up))
    at = datetime.fromtimestamp(1_000_000_000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    assert f"died at {at} (its last sign of life; was the machine restarted?)" in told


def test_up_after_a_death_keeps_the_handler_and_names_one_that_is_gone(
    tmp_path: Path,
) -> None:
    StackRecord(9, handler=f"{tmp_path}/mine.py:handle").save(tmp_path / "home")
    told = Line().error("local", "up", "--home", str(tmp_path / "home"), code=2)
    assert told == f"handler file {tmp_path}/mine.py: No such file or directory"
    assert StackRecord.load(tmp_path / "home") is not None


@pytest.mark.parametrize("words", [[], ["--sink", "log"]])
def test_without_a_handler_there_is_nothing_to_watch(tmp_path: Path, words: list[str]) -> None:
    told = Line().error("local", "up", "--watch", *words, "--home", str(tmp_path / "home"), code=2)
    assert told == "there is no handler to watch; name one: --handler FILE:FUNCTION"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_reset_asks_first_and_changes_nothing_without_a_yes(was_up: Path, answer: str) -> None:
    told = Line().run("local", "reset", "--home", str(was_up), given=answer, code=1).stderr
    assert told.startswith(f"Throw away every message and all state of the local stack in {was_up}, ")
    assert "nothing was changed; --yes goes on without asking" in told
    assert StackRecord.load(was_up) == StackRecord(9, {"MaxAttempts": "3"})


def test_ctrl_c_at_a_question_is_130_and_changes_nothing(was_up: Path) -> None:
    words = ["local", "reset", "--home", str(was_up)]
    with subprocess.Popen(
        [sys.executable, "-c", "from stream_sort.cli.app import main; main()", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A suite that runs in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
    ) as command:
        assert command.stderr is not None
        assert command.stderr.readline().startswith("Throw away ")
        assert command.stderr.read(len("Go on?")) == "Go on?"
        command.send_signal(signal.SIGINT)
        told = command.stderr.read()
    assert (command.returncode, told.splitlines()[-1]) == (130, "stream-sort: nothing was changed")
    assert StackRecord.load(was_up) is not None


def test_hints_name_the_command_so_that_a_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "my venv" / "bin" / "stream-sort"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(command)])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir("/")
    assert program() == f"'{command.relative_to('/')}'"
    monkeypatch.chdir(tmp_path)
    assert program() == "'my venv/bin/stream-sort'"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert program() == f"'{command}'"
    other = tmp_path / "elsewhere" / "stream-sort"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert program() == f"'{command}'"
    monkeypatch.setenv("PATH", str(command.parent))
    assert program() == "stream-sort"
    monkeypatch.setattr(sys, "argv", ["-c"])
    assert program() == "stream-sort"


@pytest.mark.parametrize("words", [["status"], ["logs"], ["invoke", "enqueue", "{}"]])
def test_what_is_not_up_in_a_folder_of_its_own_is_started_there(tmp_path: Path, words: list[str]) -> None:
    home = tmp_path / "my stack"
    told = Line().error("local", *words, "--home", str(home))
    assert told == f"no local stack runs; start it with: stream-sort local up --home '{home}'"


def test_the_commands_to_try_first_name_the_folder_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["-c"])
    monkeypatch.chdir(tmp_path)
    stack = UpWithNothingInIt(tmp_path / "my stack")
    told = summary(stack, partial(local_command, home=Path("my stack")))
    typed = [line for line in told.splitlines() if "stream-sort local" in line]
    assert len(typed) == 3
    assert all(" --home 'my stack'" in line for line in typed)
    assert typed[-1] == "  stream-sort local down --home 'my stack'"
    assert "--home" not in summary(stack, partial(local_command, home=None))
    assert "--home" not in summary(stack, partial(local_command, home=default_home()))


def test_the_help_of_up_names_every_sink_and_says_that_one_takes_the_place_of_a_handler() -> None:
    told = " ".join(Line().run("local", "up", "--help").stdout.split())
    assert f"in place of a handler: {', '.join(known_parameters()['Sink'].allowed)}." in told
    assert "--sink NAME" in told
    assert "takes a handler out" not in told
