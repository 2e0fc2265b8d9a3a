"""The small parts of the local stack: ports, handler files, what is remembered, what tools may see."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.errors import InvalidInput, LocalStackFailed
from stream_sort.local import project
from stream_sort.local.handlers import HandlerFile
from stream_sort.local.project import project_root
from stream_sort.local.record import FILE, StackRecord, locked
from stream_sort.local.stack import LocalStack, asked_over
from stream_sort.local.tools import choose_port, environment, free_port, worker_pids
from stream_sort.local.watch import watch_handler

if TYPE_CHECKING:
    from pathlib import Path


def test_a_taken_port_is_refused_if_wanted_and_passed_over_if_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalStackFailed, match=f"port {port} is taken"):
            choose_port(port, 0)
        assert choose_port(None, port) != port


def test_the_last_port_is_taken_again_if_it_is_free() -> None:
    port = free_port()
    assert choose_port(None, port) == port
    assert choose_port(port, 0) == port


@pytest.mark.parametrize(
    "code",
    ["def handle(batch): ...", "handle = print", "handle: object = print", "from os import getcwd as handle"],
)
def test_a_handler_file_may_bind_its_function_in_any_way(tmp_path: Path, code: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(code)
    handler = HandlerFile.parse(f"{file}:handle")
    assert handler.reference == "mine:handle"
    assert str(handler) == f"{file}:handle"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mine.py", "must be FILE:FUNCTION"),
        ("mine.py:", "must be FILE:FUNCTION"),
        ("mine.py:not a name", "must be FILE:FUNCTION"),
        ("mine.txt:handle", "name its file with .py, such as mine.py:handle"),
        ("mine:handle", "name its file with .py, such as mine.py:handle"),
        ("not-a-name.py:handle", "a name that Python can import"),
        ("app.py:handle", "not app or stream_sort"),
        ("missing.py:handle", "No such file"),
        ("broken.py:handle", "is not Python"),
        ("mine.py:handle", "has no 'handle' at its top level"),
    ],
)
def test_a_handler_file_that_cannot_work_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "broken.py").write_text("def handle(:")
    (tmp_path / "mine.py").write_text("def other(batch):\n    handle = 1\n")
    with pytest.raises(InvalidInput, match=problem):
        HandlerFile.parse(str(tmp_path / text))


def test_a_record_that_cannot_be_read_is_none_at_all(tmp_path: Path) -> None:
    assert StackRecord.load(tmp_path) is None
    StackRecord(4566, {"Sink": "log"}).save(tmp_path)
    assert StackRecord.load(tmp_path) == StackRecord(4566, {"Sink": "log"})
    for text in ("", "{", "[]", '{"other": 1}'):
        (tmp_path / FILE).write_text(text)
        assert StackRecord.load(tmp_path) is None


def test_what_was_asked_for_before_stays_unless_it_is_asked_for_anew() -> None:
    before = StackRecord(4566, {"MaxAttempts": "3", "OnPoison": "dead_letter"}, "mine.py:handle", {"MaxAttempts": "3"})
    asked = asked_over(before, StackRecord(0, {"MaxAttempts": "4"}))
    assert asked.parameters == {"MaxAttempts": "4", "OnPoison": "dead_letter"}
    assert asked.handler == "mine.py:handle"
    assert asked_over(before, StackRecord(0, {}, "other.py:handle")).handler == "other.py:handle"


def test_an_empty_value_asks_for_the_default_and_a_sink_for_no_handler() -> None:
    before = StackRecord(4566, {"MaxAttempts": "3", "OnPoison": "dead_letter"}, "mine.py:handle")
    assert asked_over(before, StackRecord(0, {"OnPoison": ""})).parameters == {"MaxAttempts": "3"}
    assert asked_over(None, StackRecord(0, {"OnPoison": "", "Sink": "log"})).parameters == {"Sink": "log"}
    assert asked_over(before, StackRecord(0, {"Sink": "log"})).handler is None
    assert asked_over(before, StackRecord(0, {"Handler": ""})).handler is None


@pytest.mark.parametrize("home", ["file", "file/stack", "/proc/stack"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, home: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInput, match="no folder can be made there"), locked(tmp_path / home):
        pass


def test_a_folder_with_the_users_own_files_is_not_taken_for_a_local_stack(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidInput, match="holds something other"):
        LocalStack.take_down(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
    StackRecord(4566).save(tmp_path)
    with locked(tmp_path):
        pass


def test_what_is_left_in_the_folder_of_a_checkout_is_taken_over(tmp_path: Path) -> None:
    home = tmp_path / ".stream-sort"
    (home / "build").mkdir(parents=True)
    assert LocalStack.take_down(home)
    assert not home.exists()


def test_without_a_checkout_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (project_root() / "template.yaml").is_file()
    monkeypatch.setattr(project, "__file__", str(tmp_path / "site-packages" / "stream_sort" / "local" / "project.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocalStackFailed, match="run this in a checkout of stream_sort"):
        project_root()


def test_tools_see_nothing_of_the_users_own_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://example.com")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("NO_PROXY", "intranet")
    seen = environment()
    assert {name for name in seen if name.startswith("AWS_")} == {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_DEFAULT_REGION",
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
    }
    assert "PYTHONPATH" not in seen
    assert seen["NO_PROXY"] == "intranet,127.0.0.1,localhost"


def test_workers_are_told_apart_by_folder_and_function(tmp_path: Path) -> None:
    pids = {}
    for name in ("a-Process-1", "a-Process-2"):
        script = tmp_path / f"ministack-lambda-{name}-x7_k" / "_worker.py"
        script.parent.mkdir()
        script.write_text("input()")
        worker = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE)
        pids[name] = worker
    try:
        assert worker_pids(str(tmp_path), "a-Process-1") == [pids["a-Process-1"].pid]
        assert worker_pids(str(tmp_path / "other"), "a-Process-1") == []
    finally:
        for worker in pids.values():
            worker.communicate(b"\n")


class Swapped:
    """A stack as its watch sees it: a handler's file, and the digest of what runs; a broken file is refused."""

    death = None

    def __init__(self, file: HandlerFile) -> None:
        self.record = StackRecord(9, handler=str(file), digest=file.digest)

    def swap_handler(self) -> bool:
        file = HandlerFile.parse(self.record.handler or "")
        changed = file.digest != self.record.digest
        self.record = replace(self.record, digest=file.digest)
        return changed


def watched(file: Path, *saves: str) -> list[str]:
    """What a watch says of some saves, each of which it has time for."""
    stack: Any = Swapped(HandlerFile(file, "handle"))
    said: list[str] = []
    # It takes three looks: to see a change, to see it twice, and to see that nothing is new.
    left = iter([save for save in saves for _ in range(3)])

    def pause(_: float) -> None:
        file.write_text(next(left))

    with pytest.raises(StopIteration):
        watch_handler(lambda: stack, said.append, pause)
    return [line.partition(" ")[2] for line in said]


def test_a_watch_says_that_a_broken_save_that_is_undone_is_again_what_runs(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    good, broken = "def handle(batch): ...\n", "def handle(batch:\n"
    file.write_text(good)
    refused, undone = watched(file, good, broken, good, good)
    assert refused.startswith("the previous handler stays: ")
    assert undone == f"{file}:handle runs again"


def test_a_watch_says_so_of_each_undoing(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    good, broken = "def handle(batch): ...\n", "def handle(batch:\n"
    file.write_text(good)
    said = watched(file, good, broken, good, broken, good)
    assert [line.startswith("the previous handler stays: ") for line in said] == [True, False, True, False]


def test_a_watch_says_nothing_of_a_file_that_never_was_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def handle(batch): ...\n")
    assert watched(file, "def handle(batch): ...\n") == []
