"""A local AWS whose processes do not end when they are asked to: here a leash that is stopped, around a `sleep`."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from stream_sort.local import detached, ministack, stack
from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.record import StackRecord
from tests.functional.command_line import Line

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DetachedMiniStack]:
    monkeypatch.setattr(detached, "STOP_DEADLINE", 0.3)
    # The name of the folder stands in for the program's, by which it is known again.
    made = DetachedMiniStack(tmp_path / "ministack", 9)
    StackRecord(9, {"MaxAttempts": "3"}).save(made.home)
    made._prepare()
    made._process = made._spawn(["sleep", "600"], 0)
    while not (made.state_dir / "group").exists():
        pass
    yield made
    made.stop()


def leash_of(aws: DetachedMiniStack) -> subprocess.Popen[bytes]:
    assert aws._process is not None
    return aws._process


def test_down_kills_what_does_not_end_and_says_so(aws: DetachedMiniStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "LAST_DEADLINE", 0.3)
    leash_of(aws).send_signal(signal.SIGSTOP)
    assert Line().run("local", "down", "--home", str(aws.home)).stderr.splitlines() == [
        "the local AWS did not end within 1 s; it was killed",
        "down; nothing is left",
    ]
    assert leash_of(aws).wait(10) == -signal.SIGKILL
    assert not aws.home.exists()
    assert detached._args_of("-A").count(str(aws.home)) == 0


def test_down_asks_again_what_was_only_slow(aws: DetachedMiniStack) -> None:
    leash = leash_of(aws)
    leash.send_signal(signal.SIGSTOP)
    assert not aws._ends(0.1)
    leash.send_signal(signal.SIGCONT)
    assert Line().run("local", "down", "--home", str(aws.home)).stderr == "down; nothing is left\n"
    assert leash.wait(10) != -signal.SIGKILL


def test_up_keeps_what_was_asked_for_when_the_local_aws_hangs_and_does_not_come_up_again(
    aws: DetachedMiniStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack, "HANGS", 0.3)
    monkeypatch.setattr(ministack, "tool", lambda *_: ["false"])
    (aws.home / detached.LOG).write_text("what it said last\n")
    said = Line().run("local", "up", "--home", str(aws.home), code=1).stderr
    log = aws.home / "ministack-that-hung.log"
    assert "the local stack runs but does not answer yet; waiting up to 0 s before it is ended" in said
    assert f"it hangs, and is ended: all messages in it are gone; its log stays: {log}" in said
    assert "ended while it was starting" in said
    assert log.read_text().startswith("what it said last\n")
    assert StackRecord.load(aws.home) == StackRecord(9, {"MaxAttempts": "3"})
    told = Line().error("local", "status", "--home", str(aws.home))
    assert "(it could not be started again), and what was stored is gone" in told


def test_a_first_up_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ministack, "tool", lambda *_: ["false"])
    Line().run("local", "up", "--home", str(tmp_path / "home"), code=1)
    assert not (tmp_path / "home").exists()
