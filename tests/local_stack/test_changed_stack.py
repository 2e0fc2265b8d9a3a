"""A local stack that is changed while it runs, and then dies: it says what it is. One stack for all, in order."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cfnlint.decode import cfn_yaml

from stream_sort.local.deployment import upload
from stream_sort.local.detached import DetachedMiniStack
from stream_sort.local.parameters import NOT_HERE
from stream_sort.local.settlement import STACK, create_or_update, deployed_parameters, settle
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import REGION
from stream_sort.local.watch import watch_handler
from tests.functional.command_line import Line
from tests.local_stack.app import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.ministack

ROOT = Path(__file__).parents[2]
PLACE = "mine.py:5 in handle"
HANDLER = """
def handle(batch):
    print("{word}", batch.queue)
    if batch.queue == "bad":
        raise ValueError("not this one")
"""
# What switches the resources of each parameter on, or off.
VALUES = {
    "HttpApi": "Enabled",
    "KinesisSource": f"arn:aws:kinesis:{REGION}:000000000000:stream/source",
    "AdvanceTrigger": "Enabled",
    "ArchiveBucket": "Enabled",
    "Sink": "log",
    "SinkTarget": f"arn:aws:sqs:{REGION}:000000000000:mine.fifo",
}
# Handler is put in by --handler, and has tests of its own below.
LEFT_OUT = {name for name, _ in NOT_HERE} | {"Handler"}


def template() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(ROOT / "template.yaml"))))
    return loaded


def used_by(condition: Any, conditions: dict[str, Any]) -> set[str]:
    """The parameters that a condition depends on."""
    match condition:
        case {"Ref": name}:
            return {name}
        case {"Condition": name}:
            return used_by(conditions[name], conditions)
        case dict():
            return {name for part in condition.values() for name in used_by(part, conditions)}
        case list():
            return {name for part in condition for name in used_by(part, conditions)}
    return set()


def switched() -> dict[str, set[str]]:
    """The resources that each parameter switches."""
    loaded, found = template(), dict[str, set[str]]()
    for resource, body in loaded["Resources"].items():
        if "Condition" in body:
            for name in used_by(loaded["Conditions"][body["Condition"]], loaded["Conditions"]):
                found.setdefault(name, set()).add(resource)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("changed") / "stack"
    with LocalStack.up(home=folder):
        yield folder


@pytest.fixture(scope="module")
def aws(home: Path) -> DetachedMiniStack:
    return DetachedMiniStack(home, running(home).record.port)


@pytest.fixture(scope="module")
def handler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("handler") / "mine.py"


def running(home: Path) -> LocalStack:
    stack = LocalStack.find(home)
    assert stack is not None
    return stack


def local(*words: str, home: Path, code: int = 0) -> str:
    """What `stream-sort local` says, on stdout and stderr."""
    result = Line().run("local", *words, "--home", str(home), code=code)
    return result.stdout + result.stderr


def resources(home: Path) -> set[str]:
    with closing(running(home).client("cloudformation")) as client:
        pages = list(client.get_paginator("list_stack_resources").paginate(StackName=STACK))
    return {one["LogicalResourceId"] for page in pages for one in page["StackResourceSummaries"]}


def logged(home: Path, text: str, *options: str) -> bool:
    return eventually(lambda: text in local("logs", "process", *options, home=home), seconds=180, every=0.5)


def test_every_parameter_that_switches_resources_is_tried() -> None:
    only_where_spark_is = {"ArchiveTrim", "SparkPolicy"}
    assert switched().keys() - only_where_spark_is == VALUES.keys() | LEFT_OUT


@pytest.mark.parametrize("name", VALUES)
def test_a_parameter_that_switches_resources_does_so_on_a_running_stack(home: Path, name: str) -> None:
    before = resources(home)
    on = json.loads(Line().run("local", "up", "--set", f"{name}={VALUES[name]}", "--json", "--home", str(home)).stdout)
    assert on["parameters"] == {name: VALUES[name]}
    after = resources(home)
    changed = before ^ after
    assert changed
    # Those of EMR Serverless need a parameter more.
    assert changed == {one for one in switched()[name] if not one.startswith("Spark")}
    local("up", "--set", f"{name}=", home=home)
    assert resources(home) == before
    assert running(home).parameters == {}


def test_a_source_that_changes_nothing_in_what_is_deployed_is_no_error(home: Path, aws: DetachedMiniStack) -> None:
    before = deployed_parameters(aws)
    create_or_update(aws, upload(aws, home / "build"), before)
    assert deployed_parameters(aws) == before


def test_status_shows_what_the_stack_has_and_up_brings_back_what_was_asked_for(
    home: Path, aws: DetachedMiniStack
) -> None:
    settle(aws, {"HttpApi": "Enabled", "MaxAttempts": "9"}, lambda _: None)
    assert json.loads(Line().run("local", "status", "--json", "--home", str(home)).stdout)["parameters"] == {
        "HttpApi": "Enabled",
        "MaxAttempts": "9",
    }
    said = local("up", home=home)
    assert "setting HttpApi=Disabled MaxAttempts=5" in said
    assert "ApiUrl" not in said
    assert running(home).parameters == {}


def test_a_value_that_the_local_aws_refuses_is_an_error_with_the_next_step(home: Path) -> None:
    said = local("up", "--set", "SinkTarget=", "--sink", "kinesis", home=home, code=1)
    assert "refuses Sink=kinesis: " in said
    assert "needs SinkTarget" in said
    assert "local down" in said
    assert running(home).parameters == {}


def test_a_value_that_does_not_take_effect_is_an_error_that_names_it(home: Path, handler: Path) -> None:
    with closing(running(home).client("lambda")) as client:
        code = client.get_function_configuration(FunctionName=running(home).function("process"))["CodeSha256"]
    handler.write_text(HANDLER.format(word="never"))
    words = ("--handler", f"{handler}:handle", "--set", "SweepAllSchedule=rate(never)")
    said = local("up", *words, home=home, code=1)
    assert "SweepAllSchedule is 'rate(1 hour)' and not 'rate(never)'" in said
    assert "local down" in said
    assert running(home).parameters == {}
    assert (running(home).record.parameters, running(home).record.handler) == ({}, None)
    with closing(running(home).client("lambda")) as client:
        assert client.get_function_configuration(FunctionName=running(home).function("process"))["CodeSha256"] == code


def built(home: Path) -> int:
    """How much sam wrote: nothing where all was built before."""
    log = home / "sam.log"
    return log.stat().st_size if log.exists() else 0


def test_a_changed_handler_is_swapped_in_without_a_build(home: Path, handler: Path) -> None:
    before = built(home)
    handler.write_text(HANDLER.format(word="first"))
    local("up", "--handler", f"{handler}:handle", home=home)
    running(home).invoke("enqueue", {"queue": "one", "seq": 0})
    assert logged(home, "> first one")
    handler.write_text(HANDLER.format(word="second"))
    local("up", home=home)
    running(home).invoke("enqueue", {"queue": "two", "seq": 0})
    assert logged(home, "> second two")
    assert built(home) == before


def test_a_watched_handler_is_swapped_in_by_itself_and_one_that_cannot_work_is_not(home: Path, handler: Path) -> None:
    said: list[str] = []
    done = threading.Event()

    class Stop(Exception):
        pass

    def pause(seconds: float) -> None:
        if done.wait(seconds):
            raise Stop

    def watch() -> None:
        with pytest.raises(Stop):
            watch_handler(lambda: LocalStack.known(home), said.append, pause)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        handler.write_text("import nosuchmodule\n")
        assert eventually(lambda: len(said) == 1)
        assert "the previous handler stays: " in said[0]
        handler.write_text(HANDLER.format(word="third"))
        assert eventually(lambda: len(said) == 2)
        assert f"{handler}:handle is swapped in" in said[1]
    finally:
        done.set()
        watching.join()
    running(home).invoke("enqueue", {"queue": "three", "seq": 0})
    assert logged(home, "> third three")
    assert len(said) == 2


def test_logs_are_a_line_an_event_and_raw_is_all_of_it(home: Path) -> None:
    running(home).invoke("enqueue", {"queue": "bad", "seq": 0})
    assert logged(home, f"! queue parked: ValueError: not this one at {PLACE} (queue bad, ")
    said = local("logs", home=home)
    assert "RequestId" not in said
    assert "_aws" not in said
    assert "  queue served (queue three, delivered 1)" in said
    raw = local("logs", "--raw", home=home)
    assert "START RequestId: " in raw
    assert '{"_aws":' in raw


def test_a_dead_one_is_said_to_be_dead_and_its_logs_are_still_shown(home: Path, aws: DetachedMiniStack) -> None:
    kept = home / "functions.log"
    assert eventually(lambda: "not this one" in kept.read_text())
    os.killpg(int((aws.state_dir / "group").read_text()), signal.SIGKILL)
    assert eventually(lambda: "died" in json.loads(local("status", "--json", home=home, code=1)))
    for words in (("status",), ("invoke", "enqueue", "{}")):
        said = local(*words, home=home, code=1)
        assert f"the local stack in {home} died at 20" in said
        assert "(killed by signal 9)" in said
        assert "start it again with: stream-sort local up --home " in said
    said = local("logs", "process", home=home)
    assert "> third three" in said
    assert f"! queue parked: ValueError: not this one at {PLACE} (queue bad, " in said
    assert "died at 20" in said
