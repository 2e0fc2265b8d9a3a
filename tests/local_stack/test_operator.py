"""An operator at a deployed stack, with the command line only: what is stuck is found, freed and proved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from stream_sort.cli.app import app as command
from stream_sort.local.settlement import STACK
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import ACCESS_KEY, REGION
from tests.local_stack.app import App, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

pytestmark = pytest.mark.ministack

HANDLER = """
from pathlib import Path

def handle(batch):
    for message in batch:
        if message.get("needs") and not Path(message["needs"]).exists():
            raise ValueError("not there yet")
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    file = tmp_path_factory.mktemp("handler") / "wait.py"
    file.write_text(HANDLER)
    parameters = {"MaxAttempts": "1", "OnPoison": "park"}
    with LocalStack.leashed(handler=f"{file}:handle", parameters=parameters) as stack, App(stack) as app:
        yield app


def run(app: App, *arguments: str) -> Result:
    env = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": ACCESS_KEY, "NO_COLOR": "1"}
    where = ("--stack", STACK, "--endpoint-url", app.stack.endpoint, "--region", REGION)
    return CliRunner().invoke(command, [*arguments, *where, "--json"], env=env)


def told(app: App, *arguments: str) -> Any:
    done = run(app, *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_parked_queue_is_redriven_by_the_function_that_has_the_handler(app: App, tmp_path: Path) -> None:
    needed = tmp_path / "it"
    app.put({"queue": "ada", "seq": 0}, {"queue": "ada", "seq": 1, "needs": str(needed)}, {"queue": "ada", "seq": 2})
    assert eventually(lambda: told(app, "consumers", "list") and told(app, "parked", "list"), seconds=60)
    (parked,) = told(app, "parked", "list")
    assert (parked["queue"], parked["seq"], parked["error"]) == ("ada", 1, "ValueError: not there yet")
    again = run(app, "parked", "redrive", "ada", "--yes")
    assert (again.exit_code, [one["outcome"] for one in json.loads(again.stdout)]) == (1, ["failed again"])
    needed.touch()
    assert [one["delivered"] for one in told(app, "parked", "redrive", "--all", "--yes")] == [2]
    assert told(app, "parked", "list") == []
    assert app.consumer("process").checkpoint("ada") == 2


def test_a_reset_lets_the_deployed_consumer_deliver_again_by_itself(app: App) -> None:
    app.put({"queue": "bob", "seq": 0}, {"queue": "bob", "seq": 1})
    process = app.consumer("process")
    assert eventually(lambda: process.checkpoint("bob") == 1, seconds=60)
    refused = run(app, "consumers", "reset", "bob", "--to", "earliest", "--yes")
    assert refused.exit_code == 1
    assert "is at work" in refused.stderr
    (reset,) = told(app, "consumers", "reset", "bob", "--to", "earliest", "--yes", "--force")
    assert (reset["old"], reset["new"], reset["outcome"]) == (1, -1, "reset")
    assert eventually(lambda: process.checkpoint("bob") == 1, seconds=60)
    assert told(app, "trim", "bob", "--through", "0", "--yes")["deleted"] == 1
