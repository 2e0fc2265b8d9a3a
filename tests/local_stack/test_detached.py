"""A local AWS that outlives its command is found again, and ended whole, whatever happened to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stream_sort.errors import LocalStackFailed, PortTaken
from stream_sort.local import stack as local_stack
from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.record import StackRecord, locked
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import choose_port, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.local.ministack import MiniStack

pytestmark = pytest.mark.ministack


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[DetachedMiniStack]:
    stack = DetachedMiniStack(tmp_path / "home", free_port())
    stack.start()
    yield stack
    stack.stop()


def processes(home: Path) -> list[int]:
    """All processes that have to do with a folder, by what they were told."""
    table = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    pids = [int(line.split()[0]) for line in table.splitlines() if str(home) in line]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(home).encode() in (process / "environ").read_bytes():
                pids.append(int(process.name))
        except OSError:
            continue
    return sorted(set(pids) - {os.getpid()})


def test_it_is_found_by_its_folder_and_ended_by_whoever_finds_it(aws: DetachedMiniStack) -> None:
    StackRecord(aws.port, outputs={"ItemsTable": "t"}).save(aws.home)
    again = LocalStack.find(aws.home)
    assert again is not None
    assert (again.endpoint, again.outputs) == (aws.url, {"ItemsTable": "t"})
    assert len(processes(aws.home)) >= 2
    assert LocalStack.take_down(aws.home)
    assert processes(aws.home) == []
    assert not aws.home.exists()
    assert not LocalStack.take_down(aws.home)


def test_one_whose_leash_was_killed_is_ended_by_its_group(aws: DetachedMiniStack) -> None:
    leash = aws._process
    assert leash is not None
    leash.send_signal(signal.SIGKILL)
    leash.wait()
    assert not aws.is_running
    assert processes(aws.home) != []
    aws.stop()
    assert processes(aws.home) == []


def test_one_that_died_is_not_taken_for_running(aws: DetachedMiniStack) -> None:
    StackRecord(aws.port).save(aws.home)
    group = int((aws.state_dir / "group").read_text())
    os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while aws.is_running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert LocalStack.find(aws.home) is None


def test_what_a_reboot_left_behind_is_not_taken_for_running(tmp_path: Path) -> None:
    home = tmp_path / "home"
    StackRecord(free_port()).save(home)
    os.mkfifo(home / "leash")
    (home / "aws").mkdir()
    (home / "aws" / "group").write_text(str(os.getpid()))  # a number that somebody else has now
    assert LocalStack.find(home) is None
    assert LocalStack.take_down(home)
    assert not home.exists()


def test_two_commands_do_not_change_one_stack_at_once(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(LocalStackFailed, match="another command is at work"):
        LocalStack.take_down(tmp_path)


def test_another_one_that_took_its_port_while_it_started_is_not_taken_for_itself(
    tmp_path: Path, ministack: MiniStack
) -> None:
    late = DetachedMiniStack(tmp_path / "home", ministack.port)
    with pytest.raises(PortTaken, match=f"port {ministack.port} is taken"):
        late.start()
    assert processes(late.home) == []


def test_two_that_choose_the_same_port_at_once_end_up_on_two(
    tmp_path: Path, ministack: MiniStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []

    def choose(wanted: int | None, last: int) -> int:
        chosen.append(choose_port(wanted, last) if chosen else ministack.port)
        return chosen[-1]

    monkeypatch.setattr(local_stack, "choose_port", choose)
    late = DetachedMiniStack(tmp_path / "home", 0)
    try:
        local_stack._start(late, None)
        assert late.is_up
        assert [ministack.port, late.port] == chosen
    finally:
        late.stop()
