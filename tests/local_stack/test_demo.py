"""The real `stream-sort demo`, as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.ministack

SMALL = ["--messages", "400", "--queues", "3", "--seed", "5"]
COMMAND = [sys.executable, "-c", "from stream_sort.cli.app import main; main()", "demo", *SMALL]


def start(home: Path, *, command: list[str] | None = None) -> subprocess.Popen[str]:
    """Start the demo with a temporary directory of its own, so that what it leaves behind can be seen."""
    return subprocess.Popen(
        command or COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(home), "COLUMNS": "100"},
        # A suite that runs in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
    )


def left_behind(home: Path) -> list[str]:
    """Processes that were told to use this directory, and files in it."""
    found = [str(path) for path in home.iterdir()]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(home).encode() in environment:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def eventually(question: Callable[[], bool], seconds: float = 10.0) -> bool:
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
    said, _ = (demo := start(tmp_path)).communicate(timeout=120)
    assert demo.returncode == 0, said
    assert "PASS  400 messages read back: each once, unchanged, in order" in said
    assert "one unbroken chain for each queue" in said
    assert '"payments [eu]" jumped from 52 to 132: 80 messages released by one put' in said
    assert "\x1b" not in said
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("when", ["starting MiniStack", "writers at once"])
def test_ctrl_c_ends_the_demo_and_its_local_aws(tmp_path: Path, when: str) -> None:
    demo = start(tmp_path)
    read_until(demo, when)
    time.sleep(0.5)
    assert left_behind(tmp_path) != []
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=30)
    assert demo.returncode == 130, said
    assert "Stopped by Ctrl-C" in said
    assert "Traceback" not in said
    assert left_behind(tmp_path) == []


def test_a_killed_demo_leaves_no_local_aws_behind(tmp_path: Path) -> None:
    demo = start(tmp_path)
    read_until(demo, "made the tables")
    demo.kill()
    demo.communicate()
    assert eventually(lambda: left_behind(tmp_path) == []), left_behind(tmp_path)


def test_a_lost_message_makes_the_demo_fail(tmp_path: Path) -> None:
    forget = "import sys; from stream_sort.cli.demo import play as demo; "
    forget += "from stream_sort.cli.demo.traffic import make_traffic; "
    break_it = "traffic = make_traffic(200, 2, 1); traffic.lengths['orders'] += 1; sys.exit(demo.run(traffic))"
    demo = start(tmp_path, command=[sys.executable, "-c", forget + break_it])
    said, _ = demo.communicate(timeout=120)
    assert demo.returncode == 1, said
    assert 'FAIL  "orders": 100 of 101 messages released' in said
