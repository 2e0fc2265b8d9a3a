"""`stream-sort local`, as a user runs it: one deployment for all, then what happens when things go wrong."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.local.readable_logs import STEPS
from stream_sort.local.stack import LocalStack
from tests.functional.command_line import example_of
from tests.local_stack.commands import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.ministack

ROOT = Path(__file__).parents[2]
MESSAGES = [{"queue": "ada", "seq": seq} for seq in (2, 0, 1)]
HANDLER = """
import json

def handle(batch):
    with open({path!r}, "a") as file:
        for message in batch:
            file.write(json.dumps(message) + "\\n")
"""


def start(*words: str, home: Path, builds: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("local", *words, "--home", str(home), builds=builds),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The user's own AWS is set up, and must not be reached.
        env={**os.environ, "COLUMNS": "120", "AWS_PROFILE": "mine", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"},
        # A suite that runs in the background ignores Ctrl-C, and its children would too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads here
    )


def run(*words: str, home: Path, code: int = 0) -> str:
    """What the command prints; what it says on the way if it fails."""
    out, err = (command := start(*words, home=home)).communicate(timeout=300)
    assert command.returncode == code, out + err
    assert "Traceback" not in err
    return out if code == 0 else out + err


def example(command: str) -> list[str]:
    """The example that the help of a command shows."""
    return example_of("local", command)[1:]


def left_behind(home: Path) -> list[str]:
    """Files in the folder, and processes that have to do with it."""
    found = [str(path) for path in home.glob("**/*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:
            continue
        if str(home).encode() in environment + command and int(process.name) != os.getpid():
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def eventually(question: Callable[[], Any], seconds: float = 120.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("local") / "stack"


@pytest.fixture(scope="module")
def told(home: Path) -> Iterator[dict[str, Any]]:
    """What the first `up` told; taken down at the end, and then nothing is left."""
    try:
        yield json.loads(run(*example("up"), "--json", home=home))
    finally:
        assert json.loads(run(*example("down"), "--json", home=home)) == {"running": False, "was_there": True}
        assert left_behind(home) == []


def found(home: Path) -> LocalStack:
    stack = LocalStack.find(home)
    assert stack is not None
    return stack


def sunk(stack: LocalStack) -> list[Any]:
    """What is in the sink's queue, in order; receiving it takes it out."""
    with closing(stack.client("sqs")) as sqs:
        url = stack.outputs["SinkQueueUrl"]
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        messages = answer.get("Messages", [])
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return [json.loads(message["Body"]) for message in messages]


def test_up_tells_what_to_call_and_status_says_the_same(told: dict[str, Any], home: Path) -> None:
    status = json.loads(run("status", "--json", home=home))
    assert {key: status[key] for key in ("endpoint", "outputs", "parameters")} == {
        key: told[key] for key in ("endpoint", "outputs", "parameters")
    }
    names = {"ItemsTable", "CursorTable", "ControlTable", "EnqueueFunction", "EnqueueQueueUrl", "ProcessFunction"}
    assert names | {"SinkQueueUrl"} <= set(status["outputs"])
    said = run("status", home=home)
    assert "With the AWS CLI, version 2\n  export AWS_ENDPOINT_URL=" in said
    assert told["endpoint"] in said
    assert f"local invoke --home {shlex.quote(str(home))} enqueue '" in said
    assert told["parameters"] == {"MaxAttempts": "3"}


@pytest.mark.usefixtures("told")
def test_messages_go_in_by_the_command_and_come_out_of_the_sink_in_order(home: Path) -> None:
    run("invoke", "enqueue", json.dumps(MESSAGES), home=home)
    stack, got = found(home), list[Any]()
    assert eventually(lambda: got.extend(sunk(stack)) or len(got) >= len(MESSAGES))
    assert [message["seq"] for message in got] == [0, 1, 2]


@pytest.mark.usefixtures("told")
def test_the_logs_of_one_function_or_of_all_are_shown(home: Path) -> None:
    run("invoke", "sweep", "{}", home=home)
    lines = [json.loads(line) for line in run("logs", "--json", home=home).splitlines()]
    assert "sweep" in {line["step"] for line in lines}
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert " sweep " in run("logs", "sweep", "--raw", home=home)
    assert "there is no function 'nobody'" in run("logs", "nobody", home=home, code=2)


@pytest.mark.usefixtures("told")
def test_the_logs_of_the_last_second_leave_out_what_is_older(home: Path) -> None:
    run("invoke", "sweep", "{}", home=home)
    time.sleep(1.1)
    began = int(time.time() * 1_000)
    older = [json.loads(line) for line in run("logs", "--json", "--since", "1h", home=home).splitlines()]
    assert min(line["at"] for line in older) < began - 1_000
    lines = [json.loads(line) for line in run("logs", "--json", "--since", "1s", home=home).splitlines()]
    assert all(line["at"] >= began - 1_000 for line in lines)
    assert "--since 'soon' is no duration" in run("logs", "--since", "soon", home=home, code=2)


@pytest.mark.usefixtures("told")
def test_the_examples_in_the_help_of_status_invoke_and_logs_run(home: Path) -> None:
    assert json.loads(run(*example("status"), "--json", home=home))["running"]
    answer = json.loads(run(*example("invoke"), "--json", home=home))
    assert answer["rejected"] == []
    lines = [json.loads(line) for line in run(*example("logs"), "--json", home=home).splitlines()]
    assert {line["step"] for line in lines} == {"enqueue"}


@pytest.mark.usefixtures("told")
def test_a_sample_of_the_cursor_stream_wakes_its_queue(home: Path) -> None:
    run("invoke", "process", "events/process_cursor_stream.json", home=home)
    assert "record ignored" not in run("logs", "process", home=home)


@pytest.mark.usefixtures("told")
def test_a_killed_function_runs_again(home: Path) -> None:
    stack = found(home)
    stack.invoke("sweep", {})
    before = stack.workers("sweep")
    assert before
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    stack.invoke("sweep", {})
    after = stack.workers("sweep")
    assert after
    assert not set(before) & set(after)
    assert set(stack.workers("process")).isdisjoint(after)


@pytest.mark.parametrize("step", STEPS)
def test_a_function_is_denied_what_it_does_not_need(step: str, told: dict[str, Any], home: Path) -> None:
    stack = found(home)
    with closing(role_client(stack, step, "dynamodb")) as dynamodb:
        # enqueue may take back what it stored where its queue is trimmed.
        for table in ("CursorTable",) if step == "enqueue" else ("ItemsTable", "CursorTable"):
            with pytest.raises(dynamodb.exceptions.ClientError, match="AccessDenied"):
                dynamodb.delete_item(TableName=told["outputs"][table], Key={})
    with closing(role_client(stack, step, "s3")) as s3, pytest.raises(s3.exceptions.ClientError, match="AccessDenied"):
        s3.list_buckets()


def role_client(stack: LocalStack, step: str, service: str) -> Any:
    """A client with the permissions of a function."""
    import boto3  # noqa: PLC0415  # for this test only

    with closing(stack.client("lambda")) as functions, closing(stack.client("sts")) as sts:
        role = functions.get_function_configuration(FunctionName=stack.function(step))["Role"]
        got = sts.assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    return boto3.session.Session().client(
        service,
        endpoint_url=stack.endpoint,
        region_name="us-east-1",
        aws_access_key_id=got["AccessKeyId"],
        aws_secret_access_key=got["SecretAccessKey"],
        aws_session_token=got["SessionToken"],
    )


def test_a_reset_leaves_no_message_and_the_app_as_it_was(told: dict[str, Any], home: Path) -> None:
    before = json.loads(run("status", "--json", home=home))
    anew = json.loads(run(*example("reset"), "--json", home=home))
    assert (anew["parameters"], anew["handler"]) == (before["parameters"], before["handler"])
    assert set(anew["outputs"]) == set(told["outputs"])
    stack = found(home)
    with closing(stack.client("dynamodb")) as dynamodb:
        assert dynamodb.scan(TableName=stack.outputs["ItemsTable"])["Items"] == []


def test_up_again_keeps_what_is_stored_and_puts_a_handler_in(told: dict[str, Any], home: Path, tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    file = tmp_path / "my_handler.py"
    file.write_text(HANDLER.format(path=str(done)))
    sources = sorted((ROOT / "functions").rglob("*"))
    again = json.loads(run("up", "--json", "--handler", f"{file}:handle", "--set", "OnPoison=dead_letter", home=home))
    assert again["endpoint"] == told["endpoint"]
    assert again["handler"] == f"{file}:handle"
    assert again["parameters"] == {"MaxAttempts": "3", "OnPoison": "dead_letter"}
    assert re.search(r"parameters +MaxAttempts=3 OnPoison=dead_letter\n", run("status", home=home))
    assert again["outputs"]["ItemsTable"] == told["outputs"]["ItemsTable"]
    assert sorted((ROOT / "functions").rglob("*")) == sources
    stack = found(home)
    stack.invoke("enqueue", [{"queue": "bob", "seq": seq} for seq in (1, 0)])
    assert eventually(lambda: done.exists() and len(done.read_text().splitlines()) >= 2)
    bob = [message["seq"] for message in map(json.loads, done.read_text().splitlines()) if message["queue"] == "bob"]
    assert bob == [0, 1]


@pytest.mark.usefixtures("told")
def test_a_handler_that_needs_what_the_layer_has_not_is_refused_and_the_old_one_stays(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("import pytest\ndef handle(batch): ...\n")
    before = found(home).record
    said = run("up", "--handler", f"{tmp_path}/mine.py:handle", home=home, code=2)
    assert "needs 'pytest', which is not installed" in said
    assert found(home).record == before


@pytest.mark.usefixtures("told")
def test_the_logs_say_why_a_function_did_not_start(home: Path, tmp_path: Path) -> None:
    code = "import os\nif 'STREAM_SORT_ITEMS_TABLE' in os.environ:\n    raise ValueError('only there')\n"
    (tmp_path / "mine.py").write_text(f"{code}def handle(batch): ...\n")
    run("up", "--handler", f"{tmp_path}/mine.py:handle", home=home)
    run("invoke", "process", '{"Records": []}', home=home, code=1)
    assert "the function did not start: the handler's module 'mine' fails at import: ValueError: only there" in run(
        "logs", "process", home=home
    )


def test_another_port_is_refused_while_it_runs(told: dict[str, Any], home: Path) -> None:
    assert "runs on port" in run("up", "--port", "1", home=home, code=1)
    assert json.loads(run("status", "--json", home=home))["endpoint"] == told["endpoint"]


def test_a_taken_port_that_was_asked_for_is_a_plain_error_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("up", "--port", str(port), home=tmp_path / "stack", code=1)
    assert said.startswith(f"stream-sort: port {port} is taken")
    assert left_behind(tmp_path / "stack") == []


def test_a_handler_that_cannot_work_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def other(batch): ...\n")
    said = run("up", "--handler", f"{tmp_path}/mine.py:handle", home=tmp_path / "stack", code=2)
    assert "has no 'handle' at its top level" in said
    (tmp_path / "mine.py").write_text("import nosuchmodule\ndef handle(batch): ...\n")
    said += run("up", "--handler", f"{tmp_path}/mine.py:handle", home=tmp_path / "stack", code=2)
    assert "needs 'nosuchmodule', which is not installed" in said
    assert "MiniStack" not in said


def test_what_is_not_up_says_how_to_start_it(tmp_path: Path) -> None:
    assert "local up" in run("status", home=tmp_path, code=1)
    assert json.loads(run("status", "--json", home=tmp_path, code=1)) == {"running": False}
    assert "local up" in run("invoke", "enqueue", "{}", home=tmp_path, code=1)
    assert "to reset" in run("reset", home=tmp_path, code=1)


@pytest.mark.usefixtures("told")
def test_ctrl_c_leaves_a_stack_up_that_was_up(home: Path) -> None:
    # As if a source had changed, so that it builds.
    before = replace(found(home).record, sources="")
    before.save(home)
    assert "the local stack stays up" in stopped_while_building("up", "--set", "MaxAttempts=7", home=home)
    assert found(home).record == before


def test_ctrl_c_takes_back_what_up_started(tmp_path: Path) -> None:
    home = tmp_path / "stack"
    assert "what was started was removed" in stopped_while_building("up", home=home)
    assert left_behind(home) == []


def stopped_while_building(*words: str, home: Path) -> str:
    """What the command says when Ctrl-C is pressed."""
    with TemporaryDirectory() as builds:
        building = start(*words, home=home, builds=Path(builds))
        assert building.stderr is not None
        for line in building.stderr:
            if "sam build" in line:
                break
        time.sleep(1)
        assert left_behind(home) != []
        building.send_signal(signal.SIGINT)
        out, err = building.communicate(timeout=60)
    assert building.returncode == 130, out + err
    return err
