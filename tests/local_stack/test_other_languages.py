"""docs/other-languages.md: what can be run of it runs, as it stands there, on a deployed stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest

from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import environment
from tests.docs.pages import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ministack

PAGE = page("docs/other-languages.md")
# What the SDK does for the page's example, without its signatures, which the local AWS does not check.
SDK = """
class Command { constructor(input) { this.input = input; } }
export class SendMessageCommand extends Command {}
export class ReceiveMessageCommand extends Command {}
export class DeleteMessageCommand extends Command {}
export class SQSClient {
  async send(command) {
    const headers = {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `AmazonSQS.${command.constructor.name.replace("Command", "")}`,
      authorization: "AWS4-HMAC-SHA256 Credential=local/2026/us-east-1/sqs/aws4_request, SignedHeaders=, Signature=",
    };
    const body = JSON.stringify(command.input);
    const answer = await fetch(process.env.AWS_ENDPOINT_URL, { method: "POST", headers, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(text);
    return JSON.parse(text || "{}");
  }
}
"""


def block(language: str) -> str:
    """The one example of a language."""
    (found,) = PAGE.blocks(language)
    return found


@pytest.fixture(scope="module")
def variables() -> Iterator[dict[str, str]]:
    """The variables that the page speaks of, for a stack that is up."""
    stack = LocalStack.leashed(parameters={"HttpApi": "Enabled"})
    try:
        host = stack.outputs["ApiUrl"].split("//")[1].split(".")[0]
        yield environment() | {
            "AWS_ENDPOINT_URL": stack.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_SESSION_TOKEN": "",
            "API_URL": f"{stack.endpoint.replace('127.0.0.1', f'{host}.execute-api.localhost')}/messages",
            "ENQUEUE_QUEUE_URL": stack.outputs["EnqueueQueueUrl"],
            "SINK_QUEUE_URL": stack.outputs["SinkQueueUrl"],
        }
    finally:
        stack.down()


@pytest.fixture
def python(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the Python of the page defines."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    names: dict[str, Any] = {}
    exec(compile(block("python no-run"), PAGE.name, "exec"), names)
    return names


def received(python: dict[str, Any], count: int) -> list[tuple[str, int]]:
    """What the page's consumer is handed."""
    got: list[tuple[str, int]] = []
    for _ in range(10):
        python["receive"](lambda message: got.append((message["queue"], message["seq"])))
        if len(got) >= count:
            break
    return got


def test_the_curl_of_the_page_stores_messages_and_the_python_receives_them(
    variables: dict[str, str], python: dict[str, Any]
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    done = subprocess.run(
        ["bash", "-euc", block("bash")], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert json.loads(done.stdout or "{}").get("accepted") == 2, done.stdout + done.stderr
    assert received(python, 2) == [("ada", 0), ("ada", 1)]


def test_the_python_of_the_page_sends_and_receives_in_order_and_passes_over_repeats(python: dict[str, Any]) -> None:
    python["send"]([{"queue": "eve", "seq": seq} for seq in (2, 0, 1)])
    assert received(python, 3) == [("eve", 0), ("eve", 1), ("eve", 2)]
    assert python["done"] == {"eve": 2}


def test_the_python_of_the_page_leaves_what_failed_and_all_behind_it_in_the_queue(python: dict[str, Any]) -> None:
    python["send"]([{"queue": "dan", "seq": seq} for seq in (1, 0)])
    tried: list[int] = []

    def fail(message: dict[str, Any]) -> None:
        tried.append(message["seq"])
        raise ValueError(message)

    for _ in range(10):
        try:
            python["receive"](fail)
        except ValueError:
            break
    assert (tried, python["done"]) == ([0], {})


def test_the_typescript_of_the_page_sends_and_receives_in_order(variables: dict[str, str], tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    sdk = tmp_path / "node_modules" / "@aws-sdk" / "client-sqs"
    sdk.mkdir(parents=True)
    (sdk / "package.json").write_text('{"name": "@aws-sdk/client-sqs", "type": "module", "exports": "./index.js"}')
    (sdk / "index.js").write_text(SDK)
    (tmp_path / "main.mjs").write_text(block("typescript"))
    kept = {"PATH": os.environ["PATH"]} | variables
    with subprocess.Popen([node, "main.mjs"], cwd=tmp_path, env=kept, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        limit = Timer(60, program.kill)
        limit.start()
        try:
            lines = [line for line in (program.stdout.readline().strip() for _ in range(2)) if line]
        finally:
            limit.cancel()
            program.kill()
    assert lines == ["bob 0", "bob 1"]
