"""A local stack that runs and does not answer: it is busy, or it hangs."""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from stream_sort.local import stack as local_stack
from stream_sort.local.ministack import VERSION
from stream_sort.local.record import StackRecord, locked
from stream_sort.local.report import how_it_is
from stream_sort.local.stack import LocalStack
from tests.functional.command_line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class SlowAws:
    """What a command sees of a MiniStack: a leash that is held, and an answer to who asks for its health, later."""

    def __init__(self, home: Path) -> None:
        self.asked, self.silent_for = 0, 0
        self._identity = str((home / "aws").resolve())
        os.mkfifo(home / "leash")
        self._leash = os.open(home / "leash", os.O_RDWR)
        aws = self

        class Health(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                aws.asked += 1
                is_well = aws.asked > aws.silent_for
                said = json.dumps({"version": VERSION if is_well else "", "edition": aws._identity}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Health)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        os.close(self._leash)


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[SlowAws]:
    made = SlowAws(tmp_path)
    StackRecord(made.port).save(tmp_path)
    yield made
    made.close()


def found(home: Path) -> LocalStack:
    stack = LocalStack.known(home)
    assert stack is not None
    return stack


def test_a_stack_whose_handler_is_being_swapped_is_waited_for(aws: SlowAws, tmp_path: Path) -> None:
    aws.silent_for = 3
    told: list[str] = []
    with locked(tmp_path):
        assert found(tmp_path).await_answer(told.append)
    said = "the local stack is busy: another command changes it, or the watcher swaps the handler"
    assert told == [f"{said}; waiting up to 30 s for it"]


def test_a_stack_that_stays_busy_is_not_to_be_started_again(
    aws: SlowAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_stack, "BUSY", 0.3)
    aws.silent_for = 1_000
    with locked(tmp_path):
        result = Line().run("local", "status", "--home", str(tmp_path), code=1)
    assert result.stderr.splitlines()[-1].endswith(
        "the local stack is busy: another command changes it, or the watcher swaps the handler; wait, and do this again"
    )
    assert "local up" not in result.stderr
    # Nobody is at work on it: it hangs.
    assert "start it again with: stream-sort local up" in how_it_is(found(tmp_path), tmp_path)


def test_a_program_that_asks_a_silent_stack_for_its_status_gets_json_alone(
    aws: SlowAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_stack, "BUSY", 0.3)
    aws.silent_for = 1_000
    result = Line().run("local", "status", "--home", str(tmp_path), "--json", code=1)
    assert (json.loads(result.stdout), result.stderr) == ({"running": False}, "")


def test_a_stack_that_ended_is_not_waited_for(tmp_path: Path) -> None:
    StackRecord(9).save(tmp_path)
    told: list[str] = []
    assert not found(tmp_path).await_answer(told.append)
    assert told == []
