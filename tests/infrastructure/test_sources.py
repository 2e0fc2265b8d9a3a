"""Queues and mappings lose nothing silently, hold nobody up for ever, and keep the order where it matters."""

from __future__ import annotations

from typing import Any

import pytest

FAILURES = {
    "AdvanceFunctionItems": "StreamFailures",
    "ProcessFunctionCursor": "StreamFailures",
    "EnqueueKinesisMapping": "KinesisFailuresBucket",
}
STREAMS = {
    "AdvanceFunctionItems": {"Fn::GetAtt": ["ItemsTable", "StreamArn"]},
    "ProcessFunctionCursor": {"Fn::GetAtt": ["CursorTable", "StreamArn"]},
    "EnqueueKinesisMapping": {"Ref": "KinesisSource"},
}
QUEUES = {
    "EnqueueFunctionQueue": {"Fn::GetAtt": ["EnqueueQueue", "Arn"]},
    "ProcessFunctionRetry": {"Fn::GetAtt": ["RetryQueue", "Arn"]},
}
FOURTEEN_DAYS = 14 * 86_400


def mapping(resources: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[name]["Properties"]
    return found


def test_all_mappings_of_the_template_are_looked_at(resources: dict[str, Any]) -> None:
    found = {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::EventSourceMapping"}
    assert found == set(STREAMS) | set(QUEUES)


@pytest.mark.parametrize("name", STREAMS | QUEUES)
def test_a_mapping_reports_what_failed_and_filters_nothing(name: str, resources: dict[str, Any]) -> None:
    properties = mapping(resources, name)
    assert properties["EventSourceArn"] == (STREAMS | QUEUES)[name]
    assert properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "FilterCriteria" not in properties


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_read_from_its_beginning_and_never_held_up_for_ever(name: str, resources: dict[str, Any]) -> None:
    properties = mapping(resources, name)
    assert properties["StartingPosition"] == "TRIM_HORIZON"
    assert properties["BisectBatchOnFunctionError"] is True
    assert 1 <= properties["MaximumRetryAttempts"] <= 1000
    assert properties["DestinationConfig"] == {"OnFailure": {"Destination": {"Fn::GetAtt": [FAILURES[name], "Arn"]}}}
    assert properties["ParallelizationFactor"]


def test_a_wake_of_process_is_given_up_after_hours_at_most_because_the_sweep_wakes_too(
    resources: dict[str, Any],
) -> None:
    assert 60 <= mapping(resources, "ProcessFunctionCursor")["MaximumRecordAgeInSeconds"] <= 6 * 3600


@pytest.mark.parametrize("name", ["EnqueueKinesisMapping", "AdvanceFunctionItems"])
def test_an_outage_of_minutes_does_not_make_lambda_give_up_what_nobody_else_looks_for(
    name: str, resources: dict[str, Any]
) -> None:
    properties = mapping(resources, name)
    assert properties["MaximumRetryAttempts"] >= 1000
    # A limit of age gives old records up untried, where a stream is read from its beginning.
    assert properties["MaximumRecordAgeInSeconds"] == -1


def test_a_batch_of_kinesis_that_is_given_up_is_kept_with_its_records(
    resources: dict[str, Any], template: dict[str, Any]
) -> None:
    bucket = resources[FAILURES["EnqueueKinesisMapping"]]
    # A queue or a topic would get the places of the records only.
    assert bucket["Type"] == "AWS::S3::Bucket"
    assert "LifecycleConfiguration" not in bucket["Properties"]
    made = template["Resources"]["KinesisFailuresBucket"]
    assert made["DeletionPolicy"] == made["UpdateReplacePolicy"] == "Retain"
    assert all(bucket["Properties"]["PublicAccessBlockConfiguration"].values())


def test_a_batch_of_kinesis_that_is_given_up_is_noted_in_a_queue_of_its_own(resources: dict[str, Any]) -> None:
    told = resources["KinesisFailuresBucket"]["Properties"]["NotificationConfiguration"]
    # Not to a queue: S3 sends a first note of nothing there, which would raise the alarm of every new stack.
    assert told == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    rule = resources["KinesisFailuresRule"]["Properties"]
    assert rule["EventPattern"]["detail"] == {"bucket": {"name": [{"Ref": "KinesisFailuresBucket"}]}}
    assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": ["KinesisFailures", "Arn"]}]
    (allowed,) = resources["KinesisFailuresPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": ["KinesisFailuresRule", "Arn"]}}}
    names = [name for name in resources if name.startswith("KinesisFailures") and name != "KinesisFailuresAlarm"]
    assert len(names) == 5
    assert {resources[name]["Condition"] for name in names} == {"FromKinesis"}


def test_batches_of_sqs_over_ten_have_a_window(resources: dict[str, Any]) -> None:
    for name in QUEUES:
        properties = mapping(resources, name)
        assert properties["BatchSize"] <= 10 or properties["MaximumBatchingWindowInSeconds"] >= 1, name


def test_the_items_stream_runs_advance_only_when_wanted(resources: dict[str, Any], defaults: dict[str, str]) -> None:
    assert mapping(resources, "AdvanceFunctionItems")["Enabled"] == {"Fn::If": ["WithAdvance", True, False]}
    assert defaults["AdvanceTrigger"] == "Disabled"
    assert "Enabled" not in mapping(resources, "ProcessFunctionCursor")


@pytest.mark.parametrize(
    ("queue", "dead"), [("EnqueueQueue", "EnqueueDeadLetters"), ("RetryQueue", "RetryDeadLetters")]
)
def test_a_queue_sets_aside_what_fails_again_and_again(queue: str, dead: str, resources: dict[str, Any]) -> None:
    redrive = resources[queue]["Properties"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"] == {"Fn::GetAtt": [dead, "Arn"]}
    assert redrive["maxReceiveCount"] >= 5
    assert resources[dead]["Properties"]["MessageRetentionPeriod"] == FOURTEEN_DAYS
    assert (
        resources[dead]["Properties"]["MessageRetentionPeriod"]
        >= resources[queue]["Properties"]["MessageRetentionPeriod"]
    )


def test_the_dead_letters_take_what_is_as_large_as_a_message_can_be(resources: dict[str, Any]) -> None:
    assert resources["EnqueueDeadLetters"]["Properties"]["MaximumMessageSize"] == 1024 * 1024


def test_a_message_is_not_handed_out_again_while_a_function_may_be_at_it(
    template: dict[str, Any], defaults: dict[str, str]
) -> None:
    functions = template["Resources"]
    assert functions["EnqueueFunction"]["Properties"]["Timeout"] * 6 <= int(defaults["VisibilityTimeout"])
    assert functions["ProcessFunction"]["Properties"]["Timeout"] == {"Ref": "ProcessTimeout"}
    assert int(defaults["ProcessTimeout"]) * 6 <= int(defaults["RetryVisibilityTimeout"])


def test_the_sink_queue_keeps_the_order_of_each_queue_and_moves_nothing_aside(resources: dict[str, Any]) -> None:
    sink = resources["SinkQueue"]
    assert sink["Condition"] == "OwnSinkQueue"
    assert sink["Properties"]["FifoQueue"] is True
    assert sink["Properties"]["DeduplicationScope"] == "messageGroup"
    assert sink["Properties"]["FifoThroughputLimit"] == "perMessageGroupId"
    assert "RedrivePolicy" not in sink["Properties"]


def test_every_queue_is_encrypted(resources: dict[str, Any]) -> None:
    for name, one in resources.items():
        if one["Type"] == "AWS::SQS::Queue":
            assert one["Properties"]["SqsManagedSseEnabled"] is True, name


def retried(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What happens to asynchronous invokes that fail, by function."""
    found = [one["Properties"] for one in resources.values() if one["Type"] == "AWS::Lambda::EventInvokeConfig"]
    return {one["FunctionName"]["Ref"]: one for one in found}


def test_what_is_sent_and_forgotten_is_kept_when_it_cannot_be_stored(resources: dict[str, Any]) -> None:
    kept = retried(resources)["EnqueueFunction"]["DestinationConfig"]["OnFailure"]["Destination"]
    assert kept == {"Fn::GetAtt": ["EnqueueDeadLetters", "Arn"]}


@pytest.mark.parametrize("queue", ["EnqueueQueue", "EnqueueDeadLetters", "SinkQueue"])
def test_a_queue_whose_messages_are_nowhere_else_is_not_deleted_with_them(queue: str, template: dict[str, Any]) -> None:
    assert template["Resources"][queue]["DeletionPolicy"] == "Retain"
    assert template["Resources"][queue]["UpdateReplacePolicy"] == "Retain"


def test_the_sweep_ends_before_its_next_run_and_is_not_repeated(resources: dict[str, Any]) -> None:
    assert resources["SweepFunction"]["Properties"]["Timeout"] < 60
    assert retried(resources)["SweepFunction"]["MaximumRetryAttempts"] == 0
    rules = {
        one["Properties"]["ScheduleExpression"]["Ref"]
        for one in resources.values()
        if one["Type"] == "AWS::Events::Rule" and "ScheduleExpression" in one["Properties"]
    }
    assert rules == {"SweepSchedule", "SweepAllSchedule"}


def test_the_http_api_is_off_by_default_and_closed_to_strangers(
    resources: dict[str, Any], defaults: dict[str, str]
) -> None:
    assert defaults["HttpApi"] == "Disabled"
    api = {name: one for name, one in resources.items() if one["Type"].startswith("AWS::ApiGatewayV2::")}
    assert {one["Condition"] for one in api.values()} == {"WithHttpApi"}
    (route,) = (one["Properties"] for one in api.values() if one["Type"] == "AWS::ApiGatewayV2::Route")
    assert route["AuthorizationType"] == "AWS_IAM"


def test_every_function_writes_to_a_log_group_that_forgets(resources: dict[str, Any]) -> None:
    for step in ("Enqueue", "Advance", "Process", "Sweep"):
        assert resources[f"{step}Function"]["Properties"]["LoggingConfig"] == {"LogGroup": {"Ref": f"{step}Logs"}}
        assert resources[f"{step}Logs"]["Properties"]["RetentionInDays"] == {"Ref": "LogRetention"}
