"""`stream-sort local up` where there is no checkout: from the wheel, in an empty environment, with a new home."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.installed import Installed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.ministack, pytest.mark.slow]

HANDLER = """
import json
import stream_sort

def handle(batch):
    with open({path!r}, "a") as file:
        for message in batch:
            file.write(json.dumps([message["seq"], stream_sort.__file__]) + "\\n")
"""


def test_the_app_comes_up_from_the_wheel_works_and_leaves_nothing(tmp_path: Path) -> None:
    installed = Installed.make(tmp_path)
    before = files(installed.package)
    handler, done = installed.home / "my_handler.py", installed.home / "done.jsonl"
    handler.write_text(HANDLER.format(path=str(done)))
    told = json.loads(installed.run("stream-sort", "local", "up", "--handler", "my_handler.py:handle", "--json"))
    try:
        assert told["home"] == str(installed.home / ".stream-sort")
        messages = json.dumps([{"queue": "ada", "seq": seq} for seq in (1, 2, 0)])
        answer = json.loads(installed.run("stream-sort", "local", "invoke", "enqueue", messages))
        assert answer["accepted"] == 3
        lines = given(done, 3)
        assert [seq for seq, _ in lines] == [0, 1, 2]
        # From the layer, not from where the command runs.
        assert not any(file.startswith(str(tmp_path / "env")) for _, file in lines)
        assert "ada" in installed.run("stream-sort", "status")
    finally:
        installed.run("stream-sort", "local", "down")
    # What begins with a dot is of sam and uv.
    assert not (installed.home / ".stream-sort").exists()
    assert {path.name for path in installed.home.glob("[!.]*")} == {"my_handler.py", "done.jsonl"}
    assert files(installed.package) == before


def files(folder: Path) -> set[str]:
    """What is in an installed package, but for bytecode, which Python adds."""
    return {str(path) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def given(done: Path, count: int) -> list[list[object]]:
    """Wait for what the handler wrote."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if done.exists() and len(lines := done.read_text().splitlines()) >= count:
            return [json.loads(line) for line in lines]
        time.sleep(0.1)
    raise AssertionError(f"the handler was not given {count} messages")
