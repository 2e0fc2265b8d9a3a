"""A user's handler is tried before the local stack starts: in a process of its own, as the function will import it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stream_sort.errors import InvalidInput
from stream_sort.local import handlers
from stream_sort.local.handlers import HandlerFile, try_handler


def handler_file(folder: Path, code: str) -> HandlerFile:
    file = folder / "mine.py"
    file.write_text(code)
    return HandlerFile.parse(f"{file}:handle")


@pytest.mark.parametrize(
    "code",
    [
        "def handle(batch): ...",
        "print('noise')\ndef handle(batch): ...",
        "from stream_sort import PartlyDone\ndef handle(batch): ...",
        "import boto3\ntable = boto3.resource('dynamodb').Table('Payments')\ndef handle(batch): ...",
    ],
)
def test_a_handler_that_can_be_imported_passes(tmp_path: Path, code: str) -> None:
    try_handler(handler_file(tmp_path, code))


def test_a_handler_that_calls_aws_at_its_import_has_the_benefit_of_the_doubt(tmp_path: Path) -> None:
    code = "import boto3\nfrom botocore.config import Config\nonce = Config(retries={'total_max_attempts': 1})\n"
    code += "boto3.client('sqs', config=once).list_queues()\ndef handle(batch): ...\n"
    try_handler(handler_file(tmp_path, code))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import nosuchmodule\ndef handle(batch): ...", "'mine' needs 'nosuchmodule'.*functions/process"),
        ("import os as handle", "must be a function that takes a batch"),
        ("def handle(batch):\n    yield", "is a coroutine or a generator"),
        ("async def handle(batch): ...", "is a coroutine or a generator"),
        ("def handle(): ...", "it must take one batch"),
        ("1 / 0\ndef handle(batch): ...", "fails at import: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\ndef handle(batch): ...", "ends the process at import: exit code 3"),
        ("import os\nos._exit(0)\ndef handle(batch): ...", "ends the process at import: exit code 0"),
        ("import os\nos.kill(os.getpid(), 9)\ndef handle(batch): ...", "ends the process at import: signal 9"),
        ("if True:\n    handle = None\nhandle = None", "has no 'handle'"),
    ],
)
def test_a_handler_that_cannot_work_is_refused_with_the_cause(tmp_path: Path, code: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        try_handler(handler_file(tmp_path, code))


def test_what_lies_beside_the_file_does_not_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    with pytest.raises(InvalidInput, match=r"'mine' needs 'beside'.*only this file goes into the function"):
        try_handler(handler_file(tmp_path, "import beside\ndef handle(batch): ..."))


def test_a_bare_trial_sees_the_folders_it_is_given_and_nothing_that_is_installed_here(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    with pytest.raises(InvalidInput, match="needs 'pytest'"):
        try_handler(handler_file(tmp_path, "import pytest\ndef handle(batch): ..."), bare=[root])
    try_handler(handler_file(tmp_path, "import json\ndef handle(batch): ..."), bare=[root])


def test_a_handler_that_hangs_is_given_up_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "LIMIT", 2.0)
    beat = tmp_path / "beat"
    loop = f"import time\nwhile True: open({str(beat)!r}, 'a').write('.'); time.sleep(.05)"
    code = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {loop!r}]).wait()\n"
    code += "def handle(batch): ..."
    with pytest.raises(InvalidInput, match="still being imported after 2 s"):
        try_handler(handler_file(tmp_path, code))
    time.sleep(0.3)
    size = beat.stat().st_size
    time.sleep(0.5)
    assert beat.stat().st_size == size
