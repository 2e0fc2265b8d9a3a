"""`stream-sort doctor` on a whole stack: one thing is broken at a time, found, and told with its remedy."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws

from stream_sort.aws import accounts
from tests.functional.command_line import Line, examples_of
from tests.functional.deployed_stack import DeployedStack, stand_in_for_aws

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeployedStack]:
    monkeypatch.setattr(accounts, "_local", lambda: None)
    names = ("ITEMS_TABLE", "CURSOR_TABLE", "CONTROL_TABLE", "QUEUE_KEY", "SEQ_KEY", "CONSUMER")
    for name in names:
        monkeypatch.delenv(f"STREAM_SORT_{name}", raising=False)
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        made = DeployedStack()
        with made.endpoint() as endpoint:
            yield stand_in_for_aws(made, endpoint, monkeypatch)


def only(found: list[dict[str, str]]) -> tuple[str, str, str, str]:
    (one,) = found
    return one["level"], one["area"], one["text"], one["remedy"]


def test_a_healthy_stack_is_healthy(stack: DeployedStack) -> None:
    assert stack.doctor() == []
    told = Line().json("doctor", "--stack", "orders")
    areas = {one["area"] for one in told["findings"]}
    assert areas >= {"tables", "streams", "stack", "functions", "versions", "dead letters", "mappings", "roles"}
    assert areas >= {"schedules", "alarms", "queues"}
    assert Line().run("doctor", "--stack", "orders").stdout.count("\n") == len(told["findings"]) + 1


@pytest.mark.usefixtures("stack")
def test_the_example_of_the_help_runs() -> None:
    (example,) = examples_of(Line().run("doctor", "--help").stdout)
    name, *words = shlex.split(example)
    assert (name, words[0]) == ("stream-sort", "doctor")
    assert Line().json(*words)["counts"]["OK"]


@pytest.mark.parametrize(
    ("status", "level"),
    [("UPDATE_ROLLBACK_FAILED", "FAIL"), ("UPDATE_IN_PROGRESS", "WARN")],
)
def test_a_deployment_that_did_not_end_well_is_told(status: str, level: str, stack: DeployedStack) -> None:
    stack.status = status
    told = only(stack.doctor(code=1 if level == "FAIL" else 0))
    assert told[:3] == (level, "stack", f"stack 'orders' is {status}")


def test_a_stack_that_could_not_be_created_is_told_at_once(stack: DeployedStack) -> None:
    stack.status = "ROLLBACK_COMPLETE"
    told = Line().error("doctor", "--stack", "orders", code=2)
    assert "could not be created (ROLLBACK_COMPLETE)" in told
    assert "delete it and deploy it again" in told


@pytest.mark.parametrize(
    ("step", "source", "told"),
    [
        ("process", "Cursor", "process on the stream of CursorTable"),
        ("process", "RetryQueue", "process on RetryQueue"),
        ("enqueue", "EnqueueQueue", "enqueue on EnqueueQueue"),
    ],
)
def test_a_mapping_that_is_off_is_found_with_the_command_that_turns_it_on(
    step: str, source: str, told: str, stack: DeployedStack
) -> None:
    uuid = stack.mappings[step, source]
    stack.client("lambda").update_event_source_mapping(UUID=uuid, Enabled=False)
    level, area, text, remedy = only(stack.doctor(code=1))
    assert (level, area, text) == ("FAIL", "mappings", f"{told} is Disabled: nothing is read")
    assert remedy == f"aws lambda update-event-source-mapping --uuid {uuid} --enabled"


def test_advance_may_be_off_unless_the_stack_wants_it(stack: DeployedStack) -> None:
    shown = Line().run("doctor", "--stack", "orders").stdout
    assert "advance on the stream of ItemsTable is Disabled: as AdvanceTrigger says" in shown
    stack.parameters["AdvanceTrigger"] = "Enabled"
    assert only(stack.doctor(code=1))[2] == "advance on the stream of ItemsTable is Disabled: nothing is read"


def test_advance_that_is_on_although_nobody_asked_for_it_is_told(stack: DeployedStack) -> None:
    uuid = stack.mappings["advance", "Items"]
    stack.client("lambda").update_event_source_mapping(UUID=uuid, Enabled=True)
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "mappings")
    assert text.startswith("advance on the stream of ItemsTable is Enabled, though AdvanceTrigger is Disabled")
    assert remedy == f"aws lambda update-event-source-mapping --uuid {uuid} --no-enabled"
    stack.parameters["AdvanceTrigger"] = "Enabled"
    assert stack.doctor() == []


def test_a_mapping_that_is_gone_is_found_and_no_remedy_is_to_deploy_the_same_again(stack: DeployedStack) -> None:
    stack.client("lambda").delete_event_source_mapping(UUID=stack.mappings["process", "RetryQueue"])
    _, _, text, remedy = only(stack.doctor(code=1))
    assert text == "process on RetryQueue: there is no such event source mapping"
    assert "a drift-aware change set of stack 'orders'" in remedy
    assert "make deploy" not in remedy


def test_a_mapping_on_a_stream_that_the_table_no_longer_has_is_found(stack: DeployedStack) -> None:
    stack.client("dynamodb").delete_table(TableName="Cursor")
    stack.sorter.create_tables()
    stack.keep_backups("Cursor", on=True)
    _, _, text, remedy = only(stack.doctor(code=1))
    uuid = stack.mappings["process", "Cursor"]
    assert text == f"process on the stream of CursorTable: mapping {uuid} reads a stream that the table no longer has"
    away, again, _ = remedy.split("; ")
    assert away == f"aws lambda delete-event-source-mapping --uuid {uuid}"
    *words, option, request = shlex.split(again)
    assert (words, option) == (["aws", "lambda", "create-event-source-mapping"], "--cli-input-json")
    stack.client("lambda").delete_event_source_mapping(UUID=uuid)
    stack.client("lambda").create_event_source_mapping(**json.loads(request))
    assert stack.doctor() == []


def test_who_takes_advance_off_an_old_stream_is_told_what_finds_its_unread_queues(stack: DeployedStack) -> None:
    stack.parameters["AdvanceTrigger"] = "Enabled"
    stack.client("dynamodb").delete_table(TableName="Items")
    stack.sorter.create_tables()
    on = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    stack.client("dynamodb").update_table(TableName="Items", StreamSpecification=on)
    (one,) = [one for one in stack.doctor(code=1) if "no longer has" in one["text"]]
    assert "stream-sort audit --repair" in one["remedy"]


def test_a_mapping_that_hears_of_no_single_failure_is_found(stack: DeployedStack) -> None:
    functions = stack.client("lambda")
    functions.delete_event_source_mapping(UUID=stack.mappings["process", "Cursor"])
    stack.map("process", "Cursor", FunctionResponseTypes=[])
    level, _, text, remedy = only(stack.doctor(code=1))
    assert (level, "lacks ReportBatchItemFailures" in text) == ("FAIL", True)
    assert remedy.endswith("--function-response-types ReportBatchItemFailures")


def test_a_function_on_another_table_is_found(stack: DeployedStack) -> None:
    stack.set_variable("sweep", "STREAM_SORT_CONTROL_TABLE", "Other")
    level, area, text, remedy = only(stack.doctor(code=1))
    assert (level, area) == ("FAIL", "functions")
    assert text == "sweep: its STREAM_SORT_CONTROL_TABLE is 'Other', but the stack's table is 'Control'"
    assert "drift-aware" in remedy


def test_functions_that_disagree_on_a_key_are_found(stack: DeployedStack) -> None:
    stack.set_variable("enqueue", "STREAM_SORT_SEQ_KEY", "n")
    text = only(stack.doctor(code=1))[2]
    assert text.startswith("STREAM_SORT_SEQ_KEY is not the same everywhere: enqueue has 'n', advance has 'seq'")


def test_a_function_that_is_gone_is_found(stack: DeployedStack) -> None:
    stack.client("lambda").delete_function(FunctionName="advance")
    found = stack.doctor(code=1)
    assert "advance: its function is gone" in {one["text"] for one in found}


def test_a_function_with_another_layer_is_found(stack: DeployedStack) -> None:
    stack.client("lambda").update_function_configuration(FunctionName="process", Layers=[])
    level, area, text, _ = only(stack.doctor(code=1))
    assert (level, area) == ("FAIL", "versions")
    assert "process has none" in text


def test_another_version_in_the_functions_is_told(stack: DeployedStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_sort.insight.checkup.examination.__version__", "9.9.9")
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "versions")
    assert text.endswith("this command is 9.9.9")
    assert remedy.endswith("make deploy")


def test_a_role_that_may_not_do_what_it_must_is_found(stack: DeployedStack) -> None:
    stack.denied = {("dynamodb:UpdateItem", "table/Cursor")}
    found = stack.doctor(code=1)
    steps = ("enqueue", "advance", "process", "sweep")
    told = [f"{step}: its role may not call dynamodb:UpdateItem on CursorTable" for step in steps]
    assert [one["text"] for one in found] == told
    assert all("drift-aware" in one["remedy"] for one in found)


def test_a_role_that_lacks_much_is_one_finding(stack: DeployedStack) -> None:
    stack.denied = {("sqs:SendMessage", "RetryQueue"), ("sqs:DeleteMessage", "RetryQueue"), ("dynamodb:Scan", "Cursor")}
    process, sweep = stack.doctor(code=1)
    assert process["text"] == "process: its role may not call sqs:DeleteMessage, sqs:SendMessage on RetryQueue"
    assert sweep["text"] == "sweep: its role may not call dynamodb:Scan on CursorTable"
    stack.denied |= {("sqs:SendMessage", "StreamFailures")}
    assert stack.doctor(code=1)[1]["text"].endswith("on RetryQueue; sqs:SendMessage on StreamFailures")


def test_point_in_time_recovery_that_is_off_is_told_with_the_command_that_turns_it_on(stack: DeployedStack) -> None:
    stack.keep_backups("Control", on=False)
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "tables")
    assert text == "control table 'Control' has point-in-time recovery off, which the template has on"
    *words, name, value = shlex.split(remedy)
    assert words == ["aws", "dynamodb", "update-continuous-backups", "--table-name", "Control"]
    assert (name, value) == ("--point-in-time-recovery-specification", "PointInTimeRecoveryEnabled=true")


def test_who_may_not_simulate_is_told_so_in_one_line(stack: DeployedStack) -> None:
    stack.may_simulate = False
    level, area, text, _ = only(stack.doctor())
    assert (level, area, text) == (
        "not checked",
        "roles",
        "what the functions may do: needs iam:SimulatePrincipalPolicy",
    )


def test_a_schedule_that_is_off_is_found_with_the_command_that_turns_it_on(stack: DeployedStack) -> None:
    stack.client("events").disable_rule(Name="SweepFunctionOften")
    level, area, text, remedy = only(stack.doctor(code=1))
    assert (level, area) == ("FAIL", "schedules")
    assert text.startswith("SweepFunctionOften (rate(1 minute)) is DISABLED: no gap policy acts")
    assert remedy == "aws events enable-rule --name SweepFunctionOften"


def test_a_schedule_that_starts_nothing_is_found(stack: DeployedStack) -> None:
    stack.client("events").remove_targets(Rule="SweepFunctionSeldom", Ids=["sweep"])
    assert "does not start the sweep" in only(stack.doctor(code=1))[2]


@pytest.mark.parametrize(
    ("name", "then"),
    [
        ("EnqueueDeadLetters", "stream-sort dead-letters redrive --all --stack orders"),
        ("RetryDeadLetters", "aws sqs start-message-move-task --source-arn"),
        ("StreamFailures", "stream-sort dead-letters redrive --all --stack orders"),
    ],
)
def test_what_lies_in_dead_letter_queues_is_counted_and_purged_by_nobody(
    name: str, then: str, stack: DeployedStack
) -> None:
    url = stack.resources[name][0]
    stack.client("sqs").send_message(QueueUrl=url, MessageBody="{}")
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "dead letters")
    assert text.startswith(f"{name} holds 1 ")
    assert then in remedy
    assert "purge" not in remedy
    assert "/stream-sort/orders/" in remedy


@pytest.mark.parametrize(("seen", "text"), [(0, "nothing can be seen in"), (2, "holds 2 ")])
def test_a_dead_letter_queue_whose_letters_are_hidden_is_not_called_empty(
    seen: int, text: str, stack: DeployedStack
) -> None:
    url, sqs = stack.resources["EnqueueDeadLetters"][0], stack.client("sqs")
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    assert len(sqs.receive_message(QueueUrl=url, VisibilityTimeout=300)["Messages"]) == 1
    for _ in range(seen):
        sqs.send_message(QueueUrl=url, MessageBody="{}")
    level, area, told, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "dead letters")
    assert text in told
    assert told.endswith(
        "1 more is hidden now, as another command works on it or was interrupted; look again in 5 minutes"
    )
    assert "stream-sort dead-letters list --stack orders" in remedy


def test_a_mapping_that_gives_records_of_kinesis_up_without_keeping_them_is_found(stack: DeployedStack) -> None:
    stack.read_kinesis()
    destination = {"OnFailure": {"Destination": stack.arns["StreamFailures"]}}
    stack.map("enqueue", "Source", DestinationConfig=destination)
    level, area, text, remedy = only(stack.doctor(code=1))
    assert (level, area) == ("FAIL", "mappings")
    assert text.startswith("enqueue on the stream of KinesisSource gives records up without keeping them")
    assert remedy.endswith("make deploy")
    stack.client("lambda").delete_event_source_mapping(UUID=stack.mappings["enqueue", "Source"])
    stack.map("enqueue", "Source", DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::kept"}})
    assert stack.doctor() == []


@pytest.mark.parametrize(("step", "source"), [("enqueue", "Source"), ("advance", "Items")])
def test_a_mapping_that_gives_up_too_soon_is_told_with_the_command_that_mends_it(
    step: str, source: str, stack: DeployedStack
) -> None:
    stack.read_kinesis()
    stack.parameters["AdvanceTrigger"] = "Enabled"
    stack.client("lambda").delete_event_source_mapping(UUID=stack.mappings["advance", "Items"])
    for one, reads in (("enqueue", "Source"), ("advance", "Items")):
        kept = {"OnFailure": {"Destination": "arn:aws:s3:::kept"}}
        tries = {"MaximumRetryAttempts": 5} if (one, reads) == (step, source) else {}
        stack.map(one, reads, DestinationConfig=kept, **tries)
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "mappings")
    assert "gives records up after 5 tries, not 1,000" in text
    uuid = stack.mappings[step, source]
    assert remedy == f"aws lambda update-event-source-mapping --uuid {uuid} --maximum-retry-attempts 1000"


@pytest.mark.parametrize(
    ("options", "told", "mend"),
    [
        (
            {"MaximumRecordAgeInSeconds": 60},
            "gives records up after 60 seconds, not when they leave the stream",
            "--maximum-record-age-in-seconds -1",
        ),
        (
            {"BisectBatchOnFunctionError": False},
            "gives up a whole batch for one record",
            "--bisect-batch-on-function-error",
        ),
    ],
    ids=str,
)
def test_a_mapping_of_kinesis_that_gives_up_too_much_is_told_with_the_command_that_mends_it(
    options: dict[str, Any], told: str, mend: str, stack: DeployedStack
) -> None:
    stack.read_kinesis()
    kept = {"OnFailure": {"Destination": "arn:aws:s3:::kept"}}
    stack.map("enqueue", "Source", DestinationConfig=kept, **options)
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "mappings")
    assert told in text
    uuid = stack.mappings["enqueue", "Source"]
    assert remedy == f"aws lambda update-event-source-mapping --uuid {uuid} {mend}"


def test_a_role_that_may_not_read_kinesis_or_keep_what_lambda_gives_up_is_found(stack: DeployedStack) -> None:
    stack.read_kinesis()
    stack.map("enqueue", "Source", DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::kept"}})
    stack.denied = {("s3:PutObject", "kept/"), ("s3:ListBucket", "kept"), ("kinesis:GetRecords", "stream/source")}
    level, area, text, _ = only(stack.doctor(code=1))
    assert (level, area) == ("FAIL", "roles")
    assert text == (
        "enqueue: its role may not call kinesis:GetRecords on KinesisSource/stream; "
        "s3:ListBucket on KinesisFailuresBucket; s3:PutObject on KinesisFailuresBucket/*"
    )


def test_what_lambda_gave_up_on_of_kinesis_is_told(stack: DeployedStack) -> None:
    stack.read_kinesis()
    stack.map("enqueue", "Source", DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::kept"}})
    stack.client("sqs").send_message(QueueUrl=stack.resources["KinesisFailures"][0], MessageBody="{}")
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "dead letters")
    assert text.startswith("KinesisFailures holds 1 ")
    assert "stream-sort dead-letters redrive --all --stack orders" in remedy


def test_records_of_kinesis_that_are_kept_are_told_although_their_notes_have_expired(stack: DeployedStack) -> None:
    stack.read_kinesis()
    stack.map("enqueue", "Source", DestinationConfig={"OnFailure": {"Destination": "arn:aws:s3:::kept"}})
    for name in ("first", "second"):
        stack.client("s3").put_object(Bucket="kept", Key=name, Body=b"{}")
    level, area, text, remedy = only(stack.doctor())
    assert (level, area) == ("WARN", "dead letters")
    assert text == "KinesisFailuresBucket keeps 2 batches of Kinesis that Lambda gave up on"
    assert "stream-sort dead-letters redrive --all --stack orders" in remedy


def test_a_mapping_of_kinesis_that_is_gone_is_made_again_with_the_bucket(stack: DeployedStack) -> None:
    stack.read_kinesis()
    found = only(stack.doctor(code=1))
    assert found[2] == "enqueue on the stream of KinesisSource: there is no such event source mapping"


def test_an_alarm_is_told_with_its_own_advice(stack: DeployedStack) -> None:
    stack.client("cloudwatch").set_alarm_state(AlarmName="orders-ParkedAlarm", StateValue="ALARM", StateReason="1 > 0")
    level, area, text, remedy = only(stack.doctor())
    assert (level, area, text) == ("WARN", "alarms", "ParkedAlarm is raised: 1 > 0")
    assert remedy == "A queue is parked. stream-sort parked list"


DENIED = {
    "GetFunctionConfiguration": {"functions", "versions", "roles"},
    "ListEventSourceMappings": {"mappings"},
    "GetQueueAttributes": {"dead letters", "mappings"},
    "DescribeRule": {"schedules"},
    "DescribeAlarms": {"alarms"},
    "GetLayerVersion": {"versions"},
    "ListStackResources": {"stack"},
    "DescribeTable": {"tables", "mappings"},
    "Scan": {"queues"},
    "BatchGetItem": {"queues"},
}


@pytest.mark.parametrize("operation", DENIED)
def test_a_missing_permission_is_a_line_and_not_the_end(
    operation: str, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BaseClient._make_api_call  # where botocore's own stubber stands, too

    def call(client: Any, name: str, request: Any) -> Any:
        if name == operation:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, name)
        return real(client, name, request)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    found = stack.doctor()
    assert {one["level"] for one in found} == {"not checked"}
    assert {one["area"] for one in found} == DENIED[operation]
    assert any(f":{operation}" in one["text"] and "needs " in one["text"] for one in found)
