"""The local AWS comes up, says why when it does not, and leaves nothing behind."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from stream_sort import LocalStackFailed
from stream_sort.local import ministack, tools
from stream_sort.local.ministack import MiniStack

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.ministack


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_two_run_side_by_side_and_leave_nothing_behind(temporary: Path, ministack: MiniStack) -> None:
    told: list[str] = []
    with MiniStack(report=told.append) as other:
        assert other.port != ministack.port
        assert len(list(temporary.iterdir())) == 1
        client = other.client("sqs")
        assert client.create_queue(QueueName="here")["QueueUrl"]
        client.close()
    assert told == [f"starting MiniStack 1.5.33 (a local AWS) on {other.url}"]
    assert list(temporary.iterdir()) == []
    other.stop()


def test_one_that_cannot_start_shows_the_end_of_its_log(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ministack, "_command", lambda: ["sh", "-c", "echo no such thing; exit 3"])
    with pytest.raises(LocalStackFailed, match=r"(?s)ended while it was starting.*no such thing"):
        MiniStack().start()
    assert list(temporary.iterdir()) == []


def test_one_that_does_not_come_up_is_given_up(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ministack, "_command", lambda: ["sh", "-c", "echo Downloading the world; sleep 60"])
    told: list[str] = []
    with pytest.raises(LocalStackFailed, match="is not up after 1 s"):
        MiniStack(deadline=1.0, report=told.append).start()
    assert told[1:] == ["downloading the world, once for this machine"]
    assert list(temporary.iterdir()) == []


def test_without_uv_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uv", None)
    monkeypatch.setattr(tools.shutil, "which", lambda _: None)
    with pytest.raises(LocalStackFailed, match=r"pip install '\.\[cli\]' in the checkout"):
        MiniStack().start()
