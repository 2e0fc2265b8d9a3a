"""The real `stream-sort demo`, as a user runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.command_line import example_of
from tests.local_stack.commands import command

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.ministack

# The example of its help, which is a small one.
WORDS = example_of("demo")


def start(home: Path, *, as_json: bool = False, builds: Path | None = None) -> subprocess.Popen[str]:
    """Start the demo with a temporary directory of its own, so that what it leaves behind can be seen."""
    return subprocess.Popen(
        command(*WORDS, *(["--json"] if as_json else []), builds=builds),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if as_json else subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(home), "COLUMNS": "100"},
        # A suite that runs in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
    )


@pytest.fixture
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where nothing was built before."""
    return tmp_path_factory.mktemp("builds")


def left_behind(home: Path) -> list[str]:
    """Processes that were told to use this directory, and files in it."""
    return [str(path) for path in home.iterdir()] + processes_of(home)


def processes_of(home: Path) -> list[str]:
    """Processes that were told to use this directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(home).encode() in environment:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def eventually(question: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not question():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def read_until(demo: subprocess.Popen[str], text: str) -> str:
    assert demo.stdout is not None
    said = ""
    for line in demo.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(said)


def test_the_demo_ends_with_a_verdict_that_it_checked(tmp_path: Path) -> None:
    told, said = (demo := start(tmp_path, as_json=True)).communicate(timeout=400)
    assert demo.returncode == 0, said
    outcome = json.loads(told)
    assert (outcome["good"], outcome["messages"]) == (True, 300)
    assert [(one["delivered"], one["problem"]) for one in outcome["queues"]] == [(100, None)] * 3
    assert "PASS  300 messages came out: every queue in order, nothing missing" in said
    assert '"payments [eu]" jumped from 39 to 99: 60 messages released by one message' in said
    assert "Lambda processes killed: process, enqueue, process" in said
    assert "the poison body delayed no queue" in said
    assert re.search(r"enqueue +[1-9][0-9,]* requests to the tables", said)
    assert re.search(r"process +[1-9][0-9,]* requests to the tables", said)
    assert "\x1b" not in said
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("when", ["sam build", "writers at once"])
def test_ctrl_c_ends_the_demo_and_its_local_aws(tmp_path: Path, builds: Path, when: str) -> None:
    demo = start(tmp_path, builds=builds if when == "sam build" else None)
    read_until(demo, when)
    time.sleep(0.5)
    assert left_behind(tmp_path) != []
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, said
    assert "Stopped by Ctrl-C" in said
    assert "Traceback" not in said
    assert left_behind(tmp_path) == []


def test_a_killed_demo_leaves_no_local_aws_behind(tmp_path: Path, builds: Path) -> None:
    demo = start(tmp_path, builds=builds)
    read_until(demo, "sam build")
    demo.kill()
    demo.communicate()
    assert eventually(lambda: not processes_of(tmp_path), seconds=60), processes_of(tmp_path)
