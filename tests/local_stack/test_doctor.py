"""`stream-sort doctor` at a deployed stack: what is well is well, what is broken is found, and the remedies cure it."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from typer.testing import CliRunner

from stream_sort.aws.accounts import AwsPlace, Stack
from stream_sort.cli.app import app as command
from stream_sort.cli.connection import Connection
from stream_sort.cli.doctor import examined_by
from stream_sort.insight.checkup.examination import CheckupTerms, examine
from stream_sort.local.settlement import STACK
from stream_sort.local.stack import LocalStack
from stream_sort.local.tools import ACCESS_KEY, REGION
from stream_sort.settings import Settings
from tests.local_stack.app import App, eventually
from tests.local_stack.test_status import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from stream_sort.insight.checkup.finding import Finding
    from stream_sort.local.ministack import MiniStack
    from tests.conftest import Tables

QUEUES = 5_000
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": ACCESS_KEY, "NO_COLOR": "1"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    home = tmp_path_factory.mktemp("doctor") / "stack"
    with LocalStack.up(home=home) as stack, App(stack) as app:
        app.put({"queue": "ada", "seq": 0}, {"queue": "ada", "seq": 1})
        assert eventually(lambda: app.consumer("process").checkpoint("ada") == 1, seconds=60)
        yield app


def run(app: App, *words: str) -> Result:
    where = ("--stack", STACK, "--endpoint-url", app.stack.endpoint, "--region", REGION)
    return CliRunner().invoke(command, [*words, *where], env=ENVIRONMENT)


def findings(app: App, *, code: int = 0) -> list[dict[str, str]]:
    """All that is not well."""
    done = run(app, "doctor", "--json")
    assert done.exit_code == code, done.output
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] != "OK"]


@pytest.mark.ministack
def test_a_healthy_stack_is_healthy(app: App) -> None:
    assert findings(app) == []
    shown = run(app, "doctor")
    assert shown.exit_code == 0
    print(shown.stdout)
    assert all(line.startswith("OK") for line in shown.stdout.splitlines()[:-1])


@pytest.mark.ministack
def test_the_local_stack_that_is_up_is_checked_as_any_other(app: App) -> None:
    found = examined(app)
    assert {one.level for one in found} == {"OK"}
    assert any(one.text.startswith(f"stack {STACK!r} is ") for one in found)


def examined(app: App) -> tuple[Finding, ...]:
    """What is found without --stack, of the local stack that is up."""
    outputs = app.stack.outputs
    settings = Settings(items_table=outputs["ItemsTable"], cursor_table=outputs["CursorTable"])
    place = AwsPlace(region=REGION, endpoint_url=app.stack.endpoint, key=ACCESS_KEY)
    stack = Stack("the local stack", outputs, {})
    with closing(Connection(settings, place, outputs["ControlTable"], stack=stack)) as connection:
        return examine(examined_by(connection), CheckupTerms()).findings


@pytest.mark.ministack
def test_mappings_and_backups_are_as_the_template_says(app: App) -> None:
    texts = [one.text for one in examined(app)]
    assert "advance on the stream of ItemsTable is Disabled: as AdvanceTrigger says" in texts
    assert sum(text.endswith("; point-in-time recovery on") for text in texts) == 3


@pytest.mark.ministack
@pytest.mark.timeout(600)
def test_what_the_local_stack_lost_is_restored_by_the_remedies_and_no_message_goes(app: App) -> None:
    functions, iam = app.stack.client("lambda"), app.stack.client("iam")
    with closing(functions), closing(iam):
        arn = functions.get_function_configuration(FunctionName=app.stack.outputs["AdvanceFunction"])["Role"]
        iam.delete_role_policy(RoleName=arn.rpartition("/")[2], PolicyName="advance")
        listed = functions.list_event_source_mappings(FunctionName=app.stack.outputs["ProcessFunction"])
        (uuid,) = (one["UUID"] for one in listed["EventSourceMappings"] if ":sqs:" in one["EventSourceArn"])
        functions.delete_event_source_mapping(UUID=uuid)
        mapping, role = (one for one in examined(app) if one.level != "OK")
        assert mapping.text == "process on RetryQueue: there is no such event source mapping"
        words = shlex.split(mapping.remedy)
        functions.create_event_source_mapping(**json.loads(words[words.index("--cli-input-json") + 1]))
    assert role.text.startswith("advance: its role may not call dynamodb:BatchGetItem, dynamodb:Query on ItemsTable; ")
    for line in role.remedy.partition(": ")[2].split(" && "):
        program, *words = shlex.split(line)
        assert (program, words[:2]) == ("stream-sort", ["local", "up"])
        done = CliRunner().invoke(command, [*words, "--home", str(app.stack.home)])
        assert done.exit_code == 0, done.output
    # Functions may be changed for some seconds still, and doctor says so: "wait, and look again".
    assert eventually(lambda: all(one.level == "OK" for one in examined(app)), every=1.0), examined(app)
    assert app.consumer("process").checkpoint("ada") is not None


@pytest.mark.ministack
def test_a_mapping_that_is_off_and_a_cursor_beyond_its_items_are_found_and_cured(app: App) -> None:
    functions, dynamodb = app.stack.client("lambda"), app.stack.client("dynamodb")
    process, cursor = app.stack.outputs["ProcessFunction"], app.stack.outputs["CursorTable"]
    listed = functions.list_event_source_mappings(FunctionName=process)["EventSourceMappings"]
    (uuid,) = (one["UUID"] for one in listed if cursor in one["EventSourceArn"])
    with closing(functions), closing(dynamodb):
        functions.update_event_source_mapping(UUID=uuid, Enabled=False)
        dynamodb.update_item(
            TableName=cursor,
            Key={"queue": {"S": "ada"}},
            UpdateExpression="SET #seq = :far",
            ExpressionAttributeNames={"#seq": "seq"},
            ExpressionAttributeValues={":far": {"N": "2"}},
        )
        off, lost = findings(app, code=1)
        assert (off["level"], off["area"]) == ("FAIL", "mappings")
        assert off["text"] == "process on the stream of CursorTable is Disabled: nothing is read"
        words = shlex.split(off["remedy"])
        assert words[:6] == ["aws", "lambda", "update-event-source-mapping", "--uuid", uuid, "--enabled"]
        assert (lost["level"], lost["area"]) == ("FAIL", "queues")
        assert lost["text"] == "'ada' is released through seq 2, but that is not stored: items are lost"
        functions.update_event_source_mapping(UUID=uuid, Enabled=True)
    app.put({"queue": "ada", "seq": 2})
    assert eventually(lambda: app.consumer("process").checkpoint("ada") == 2, seconds=60)
    assert findings(app) == []


@pytest.mark.ministack
def test_a_role_that_lost_its_policy_is_found(app: App) -> None:
    functions, iam = app.stack.client("lambda"), app.stack.client("iam")
    with closing(functions), closing(iam):
        arn = functions.get_function_configuration(FunctionName=app.stack.outputs["SweepFunction"])["Role"]
        role = arn.rpartition("/")[2]
        policy = iam.get_role_policy(RoleName=role, PolicyName="sweep")["PolicyDocument"]
        iam.delete_role_policy(RoleName=role, PolicyName="sweep")
        found = findings(app, code=1)
        iam.put_role_policy(RoleName=role, PolicyName="sweep", PolicyDocument=json.dumps(policy))
    (lost,) = found
    assert (lost["level"], lost["area"]) == ("FAIL", "roles")
    assert lost["text"].startswith("sweep: its role may not call dynamodb:")
    assert findings(app) == []


def test_5000_queues_are_looked_at_by_key_a_hundred_slots_a_request(
    ministack: MiniStack, dynamodb: Any, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"queue-{number}" for number in range(QUEUES)]
    slots = [{"queue": {"S": name}, "seq": {"N": "9"}} for name in names]
    write(dynamodb, tables.items, slots[1:])
    write(dynamodb, tables.cursor, [{**slot, "_ss_first_seq": {"N": "0"}} for slot in slots])
    asked: list[str] = []
    made = boto3.session.Session.client

    def client(*arguments: Any, **options: Any) -> Any:
        one = made(*arguments, **options)
        one.meta.events.register("before-call.dynamodb", lambda model, **_: asked.append(model.name))
        return one

    monkeypatch.setattr(boto3.session.Session, "client", client)
    where = ("--items-table", tables.items, "--cursor-table", tables.cursor, "--endpoint-url", ministack.url)
    began = time.perf_counter()
    done = CliRunner().invoke(command, ["doctor", *where, "--region", REGION, "--json"], env=ENVIRONMENT)
    spent = time.perf_counter() - began
    assert done.exit_code == 1, done.stderr
    (lost,) = [one for one in json.loads(done.stdout)["findings"] if one["level"] == "FAIL"]
    assert lost["text"].startswith("'queue-0' is released through seq 9, but that is not stored")
    print(f"doctor over {QUEUES:,} queues: {len(asked)} requests, {spent:.1f} s")
    assert asked.count("BatchGetItem") == 2 * QUEUES // 100
    # One page of cursor rows; the lost item is looked at again.
    assert (asked.count("Scan"), asked.count("Query"), asked.count("GetItem")) == (1, 1, 1)
