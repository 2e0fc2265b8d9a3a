"""The checks of `stream-sort doctor` on answers of AWS that no local AWS gives."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from json import dumps
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber

from stream_sort.aws.accounts import AwsPlace, Stack
from stream_sort.aws.asking import TRIES, AwsReader
from stream_sort.cli.connection import Connection
from stream_sort.cli.doctor import aws_of
from stream_sort.insight.checkup.aws import Aws, Unanswered, logs_of, restore, retouch, update
from stream_sort.insight.checkup.finding import Checkup, fail, ok
from stream_sort.insight.checkup.functions import check_function, check_layers, check_version
from stream_sort.insight.checkup.resources import check_alarms, check_letters
from stream_sort.insight.checkup.tables import Table, check_table
from stream_sort.insight.checkup.triggers import MAPPINGS, Rule, check_mapping, check_rule
from stream_sort.model.message import KeyNames
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.tables import OPTIONAL_INDEXES, TableNames, cursor_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stream_sort.insight.checkup.finding import Finding

WANTED = cursor_table(TableNames("Items", "Cursor", KeyNames("queue", "seq")))
INDEXES = WANTED["GlobalSecondaryIndexes"]
QUEUE = next(one for one in MAPPINGS if one.source == "RetryQueue")


@pytest.fixture
def sqs() -> Iterator[Any]:
    with closing(boto3.client("sqs", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")) as client:
        yield client


@pytest.fixture
def reader(sqs: Any) -> AwsReader:
    return AwsReader(AwsPlace(region="eu-west-1"), sleep=lambda _: None, clients={"sqs": sqs})


@pytest.fixture
def aws() -> Aws:
    stack = Stack("orders", {"ItemsTable": "Items", "CursorTable": "Cursor"}, {})
    return aws_of(Connection(Settings(), AwsPlace(profile="ops", region="eu-west-1"), stack=stack))


@pytest.fixture
def local() -> Aws:
    place = AwsPlace(region="us-east-1", endpoint_url="http://127.0.0.1:4566", key="test")
    outputs = {"ItemsTable": "Items", "CursorTable": "Cursor", "ControlTable": "Control"}
    return aws_of(Connection(Settings(), place, stack=Stack("the local stack", outputs)))


def told(found: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(one.level.value, one.text) for one in found]


def function(**answers: str) -> dict[str, Any]:
    variables = {"STREAM_SORT_ITEMS_TABLE": "Items", "STREAM_SORT_CURSOR_TABLE": "Cursor"}
    return {"FunctionName": "f", "Environment": {"Variables": variables}, **answers}


@pytest.mark.parametrize(
    ("answers", "level", "text"),
    [
        ({"State": "Failed", "StateReason": "no role"}, "FAIL", "enqueue: f is Failed: no role"),
        ({"State": "Pending"}, "WARN", "enqueue: f is being changed"),
        ({"LastUpdateStatus": "InProgress"}, "WARN", "enqueue: f is being changed"),
        (
            {"LastUpdateStatus": "Failed", "LastUpdateStatusReason": "no image"},
            "FAIL",
            "enqueue: the last update of f failed: no image",
        ),
        ({"State": "Inactive"}, "OK", "enqueue: f is Inactive, on the stack's tables"),
    ],
)
def test_a_function_that_cannot_run_is_told(answers: dict[str, str], level: str, text: str, aws: Aws) -> None:
    assert told(check_function("enqueue", function(**answers), aws)) == [(level, text)]


@pytest.mark.parametrize("said", ["PROBLEM: Function call failed", "FAILED"])
def test_a_mapping_whose_last_batch_failed_points_to_the_log(said: str, aws: Aws) -> None:
    one = {"UUID": "u", "EventSourceArn": "arn", "State": "Enabled", "LastProcessingResult": said}
    one["FunctionResponseTypes"] = ["ReportBatchItemFailures"]  # type: ignore[assignment]
    (found,) = check_mapping(QUEUE, {"EventSourceArn": "arn"}, [one], aws)
    assert (found.level, found.text) == ("FAIL", f"process on RetryQueue: {said}")
    assert found.remedy == logs_of("process", aws)
    assert found.remedy == "aws logs tail /stream-sort/orders/process --since 1h --profile ops --region eu-west-1"


@pytest.mark.parametrize(("state", "level"), [("Creating", "WARN"), ("Enabling", "WARN"), ("Disabling", "FAIL")])
def test_a_mapping_that_is_being_changed_is_told(state: str, level: str, aws: Aws) -> None:
    one = {"UUID": "u", "EventSourceArn": "arn", "State": state, "FunctionResponseTypes": ["ReportBatchItemFailures"]}
    (found,) = check_mapping(QUEUE, {"EventSourceArn": "arn"}, [one], aws)
    assert (found.level, found.text.split(":")[0]) == (level, f"process on RetryQueue is {state}")


@pytest.mark.parametrize(
    ("change", "level", "text"),
    [
        ({"TableStatus": "UPDATING"}, "WARN", "cursor table 'Cursor' is UPDATING"),
        (
            {"TableStatus": "INACCESSIBLE_ENCRYPTION_CREDENTIALS"},
            "FAIL",
            "cursor table 'Cursor' is INACCESSIBLE_ENCRYPTION_CREDENTIALS",
        ),
        (
            {"GlobalSecondaryIndexes": [{**INDEXES[0], "IndexStatus": "CREATING"}, INDEXES[1]]},
            "WARN",
            "index 'waiting' of cursor table 'Cursor' is CREATING",
        ),
        (
            {"GlobalSecondaryIndexes": INDEXES[:1]},
            "WARN",
            "cursor table 'Cursor' lacks its index 'active': the sweep looks through all queues instead, in turns",
        ),
        (
            {"GlobalSecondaryIndexes": INDEXES[1:]},
            "FAIL",
            "cursor table 'Cursor' lacks its index 'waiting': the sweep finds nothing by it",
        ),
        ({}, "OK", "cursor table 'Cursor': queue (S); provisioned; point-in-time recovery on"),
    ],
)
def test_a_table_that_is_not_ready_is_told(change: dict[str, Any], level: str, text: str, aws: Aws) -> None:
    assert told(check_table(Table("cursor", WANTED, {**WANTED, **change}, "on", OPTIONAL_INDEXES), aws)) == [
        (level, text)
    ]


def test_an_index_with_other_keys_is_found(aws: Aws) -> None:
    index = {**INDEXES[0], "KeySchema": [{"AttributeName": "queue", "KeyType": "HASH"}]}
    (found,) = check_table(Table("cursor", WANTED, {**WANTED, "GlobalSecondaryIndexes": [index, INDEXES[1]]}), aws)
    assert (found.level, found.text) == (
        "FAIL",
        "cursor table 'Cursor' has an index 'waiting' with other keys: queue (S)",
    )


def test_a_rule_or_a_queue_or_an_alarm_that_is_gone_is_found(aws: Aws) -> None:
    (rule,) = check_rule(Rule("SweepFunctionOften", None), "arn", aws)
    (queue,) = check_letters("StreamFailures", "url", None, aws)
    (alarm,) = check_alarms([], {"ParkedAlarm": "orders-ParkedAlarm"}, aws)
    assert [one.level for one in (rule, queue, alarm)] == ["FAIL", "FAIL", "WARN"]
    assert all("gone" in one.text and "REVERT_DRIFT" in one.remedy for one in (rule, queue, alarm))


def test_a_layer_that_does_not_name_its_version_is_told(aws: Aws) -> None:
    assert told(check_version("stream_sort, boto3", "1.2.3", aws))[0][0] == "WARN"
    assert told(check_version("stream_sort 1.2.3, boto3", "1.2.3", aws))[0][0] == "OK"
    assert told(check_layers({"enqueue": (), "process": ()}, aws))[0][0] == "FAIL"


def test_cloudformation_can_revert_drift(aws: Aws) -> None:
    assert "create-change-set --deployment-mode REVERT_DRIFT" in restore(aws)
    with closing(boto3.client("cloudformation", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")) as one:
        model = one.meta.service_model.operation_model("CreateChangeSet").input_shape
    assert "REVERT_DRIFT" in model.members["DeploymentMode"].enum


@pytest.mark.parametrize(
    ("tracing", "commands"),
    [
        ("", "stream-sort local up --set Tracing=Active && stream-sort local up --set Tracing="),
        ("Active", "stream-sort local up --set Tracing=PassThrough && stream-sort local up --set Tracing=Active"),
    ],
)
def test_no_remedy_of_a_local_stack_leads_to_a_real_account(tracing: str, commands: str, local: Aws) -> None:
    given = {"Tracing": tracing} if tracing else {}
    local = replace(local, parameters=given)
    request = QUEUE.request("process", "arn", None, local)
    (mapping,) = check_mapping(QUEUE, request, [], local)
    assert mapping.remedy == local.command("lambda", "create-event-source-mapping", "--cli-input-json", dumps(request))
    assert update(local) == "stream-sort local up"
    assert restore(local).startswith("stream-sort local reset, which throws away all messages")
    assert retouch(local) == f"deploy it again, which keeps all messages: {commands}"
    (gone,) = check_function("sweep", None, local)
    (other,) = check_function("sweep", function(), local)
    assert (gone.remedy, other.remedy) == (restore(local), retouch(local))


@pytest.mark.parametrize("code", ["ThrottlingException", "Throttling"])
def test_a_throttled_question_is_asked_again_as_each_protocol_says_it(reader: AwsReader, sqs: Any, code: str) -> None:
    with Stubber(sqs) as said:
        said.add_client_error("get_queue_attributes", code, http_status_code=400)
        said.add_response("get_queue_attributes", {"Attributes": {"QueueArn": "arn"}})
        assert reader.ask("sqs", "get_queue_attributes", QueueUrl="u")["Attributes"] == {"QueueArn": "arn"}  # type: ignore[index]
        for _ in range(TRIES):
            said.add_client_error("get_queue_attributes", code, http_status_code=400)
        with pytest.raises(Unanswered, match="sqs:GetQueueAttributes did not answer"):
            reader.ask("sqs", "get_queue_attributes", QueueUrl="u")


def test_what_is_not_there_is_none_and_what_is_denied_names_the_permission(reader: AwsReader, sqs: Any) -> None:
    with Stubber(sqs) as said:
        said.add_client_error("get_queue_attributes", "AWS.SimpleQueueService.NonExistentQueue")
        assert reader.ask("sqs", "get_queue_attributes", QueueUrl="u") is None
        said.add_client_error("get_queue_attributes", "AccessDenied")
        with pytest.raises(Unanswered, match=r"^needs sqs:GetQueueAttributes$"):
            reader.ask("sqs", "get_queue_attributes", QueueUrl="u")


def test_commands_for_the_local_aws_carry_its_keys(local: Aws) -> None:
    assert local.command("events", "enable-rule", "--name", "a b") == (
        "AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test "
        "aws events enable-rule --name 'a b' --region us-east-1 --endpoint-url http://127.0.0.1:4566"
    )
    assert logs_of("sweep", local) == "stream-sort local logs sweep"


def test_only_a_fail_fails() -> None:
    assert not Checkup((ok("tables", "well"),)).failed
    found = Checkup((ok("tables", "well"), fail("tables", "bad", "mend it")))
    assert found.failed
    assert found.summary == "2 checks: 1 OK, 1 FAIL"
