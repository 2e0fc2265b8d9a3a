"""Each function has a role of its own, which allows what the function does and nothing else."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

LIBRARY_PAGE = Path(__file__).parents[2] / "docs" / "library.md"
STEPS = ("enqueue", "advance", "process", "sweep")
STREAM = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"}
RECEIVE = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
LOG = {"logs:CreateLogStream", "logs:PutLogEvents"}
# X-Ray has no resources to name.
TRACE = {"*": {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}}
# What each function needs, by what it needs it for. Whoever adds to a role has to add it here, and say why there.
NEEDS: dict[str, dict[str, set[str]]] = {
    "enqueue": {
        "EnqueueLogs.Arn": LOG,
        # Stores alone and in batches, looks for what follows, keeps what is late beside its tombstone; takes back
        # what it stored where the queue is trimmed.
        "ItemsTable.Arn": {
            "dynamodb:BatchGetItem",
            "dynamodb:DeleteItem",
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "CursorTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "EnqueueQueue.Arn": RECEIVE,
        # Events of SNS and EventBridge that fail for good, and poison of Kinesis.
        "EnqueueDeadLetters.Arn": {"sqs:SendMessage"},
        "KinesisSource": {
            "kinesis:DescribeStream",
            "kinesis:DescribeStreamSummary",
            "kinesis:GetRecords",
            "kinesis:GetShardIterator",
            "kinesis:ListShards",
        },
        # Batches of Kinesis that Lambda gives up on.
        "${KinesisFailuresBucket.Arn}/*": {"s3:PutObject"},
        "KinesisFailuresBucket.Arn": {"s3:ListBucket"},
    },
    "advance": {
        "AdvanceLogs.Arn": LOG,
        # Reads items, never writes one.
        "ItemsTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:Query"},
        "CursorTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"},
        "ItemsTable.StreamArn": STREAM,
        "StreamFailures.Arn": {"sqs:SendMessage"},
    },
    "process": {
        "ProcessLogs.Arn": LOG,
        "ItemsTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:Query"},
        # Moves and nudges cursors, never makes one. Scan: only to start at the latest messages, see below.
        "CursorTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Scan", "dynamodb:UpdateItem"},
        # ConditionCheckItem: a "latest" consumer's first checkpoints, set only while it is starting; so in sweep.
        # Query and DeleteItem: a redrive that somebody asks for.
        "ControlTable.Arn": {
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "${ControlTable.Arn}/index/listing": {"dynamodb:Query"},
        "CursorTable.StreamArn": STREAM,
        "RetryQueue.Arn": RECEIVE | {"sqs:SendMessage"},
        "StreamFailures.Arn": {"sqs:SendMessage"},
        "the sink": {"the sink's one action"},
    },
    "sweep": {
        "SweepLogs.Arn": LOG,
        # Writes tombstones, never changes an item.
        "ItemsTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:PartiQLInsert", "dynamodb:PutItem", "dynamodb:Query"},
        "CursorTable.Arn": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Scan", "dynamodb:UpdateItem"},
        "${CursorTable.Arn}/index/waiting": {"dynamodb:Query"},
        "${CursorTable.Arn}/index/active": {"dynamodb:Query"},
        "ControlTable.Arn": {
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "${ControlTable.Arn}/index/listing": {"dynamodb:Query"},
    },
}
SINK_ACTIONS = {
    "log": [],
    "sqs-fifo": ["sqs:SendMessage"],
    "kinesis": ["kinesis:PutRecord"],
    "eventbridge": ["events:PutEvents"],
    "sns-fifo": ["sns:Publish"],
    "lambda": ["lambda:InvokeFunction"],
}
TO_SINK = {"Fn::FindInMap": ["SinkAction", {"Ref": "Sink"}, "Allow"]}


def statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    """All statements of a role, those behind a condition too."""
    (policy,) = role["Properties"]["Policies"]
    return [one.get("Fn::If", [None, one])[1] for one in policy["PolicyDocument"]["Statement"]]


def target(resource: Any) -> str:
    match resource:
        case "*":
            return "*"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"{name}.{attribute}"
        case {"Ref": name} | {"Fn::Sub": name}:
            return str(name)
        case {"Fn::If": ["OwnSinkQueue", {"Fn::GetAtt": ["SinkQueue", "Arn"]}, {"Ref": "SinkTarget"}]}:
            return "the sink"
    raise AssertionError(resource)


def actions(action: Any) -> set[str]:
    if action == TO_SINK:
        return {"the sink's one action"}
    return {action} if isinstance(action, str) else set(action)


@pytest.mark.parametrize("step", STEPS)
def test_a_function_may_do_what_it_needs_and_nothing_else(step: str, resources: dict[str, Any]) -> None:
    allowed: dict[str, set[str]] = defaultdict(set)
    for one in statements(resources[f"{step.title()}Role"]):
        allowed[target(one["Resource"])] |= actions(one["Action"])
    assert allowed == NEEDS[step] | TRACE


@pytest.mark.parametrize("step", STEPS)
def test_a_role_has_no_wildcard_and_no_second_policy(step: str, resources: dict[str, Any]) -> None:
    role = resources[f"{step.title()}Role"]
    # Of a bucket it may write every object, whose names are Lambda's.
    named = [one for one in statements(role) if one["Sid"] not in {"Traces", "KinesisFailures"}]
    assert "*" not in json.dumps(named)
    managed = role["Properties"].get("ManagedPolicyArns")
    assert managed == (
        {"Fn::If": ["WithHandlerPolicy", [{"Ref": "HandlerPolicy"}], {"Ref": "AWS::NoValue"}]}
        if step == "process"
        else None
    )


@pytest.mark.parametrize("step", STEPS)
def test_each_function_has_its_own_role_that_only_lambda_takes_on(step: str, resources: dict[str, Any]) -> None:
    assert resources[f"{step.title()}Function"]["Properties"]["Role"] == {"Fn::GetAtt": [f"{step.title()}Role", "Arn"]}
    (trust,) = resources[f"{step.title()}Role"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_sam_adds_no_role_and_no_policy_of_its_own(resources: dict[str, Any]) -> None:
    made = {name for name, one in resources.items() if one["Type"].startswith("AWS::IAM::")}
    assert made == {f"{step.title()}Role" for step in STEPS} | {"SparkRole"}  # see test_replay.py


def test_process_may_do_one_thing_with_its_sink(template: dict[str, Any]) -> None:
    assert {name: one["Allow"] for name, one in template["Mappings"]["SinkAction"].items()} == SINK_ACTIONS


@pytest.mark.parametrize(
    ("step", "conditions"),
    [
        (
            "enqueue",
            {
                "KinesisSource": "FromKinesis",
                "KinesisFailures": "FromKinesis",
                "KinesisFailuresBucket": "FromKinesis",
                "Traces": "WithTracing",
            },
        ),
        ("advance", {"Traces": "WithTracing"}),
        ("process", {"CursorScan": "FromLatest", "Sink": "MayUseSink", "Traces": "WithTracing"}),
        ("sweep", {"Traces": "WithTracing"}),
    ],
)
def test_what_only_some_stacks_need_is_allowed_only_there(
    step: str, conditions: dict[str, str], template: dict[str, Any]
) -> None:
    role = template["Resources"][f"{step.title()}Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    choices = [one["Fn::If"] for one in role if "Fn::If" in one]
    assert {allowed["Sid"]: condition for condition, allowed, _ in choices} == conditions
    assert all(otherwise == {"Ref": "AWS::NoValue"} for _, _, otherwise in choices)


def test_process_may_use_no_sink_where_it_has_a_handler(template: dict[str, Any]) -> None:
    clauses = template["Conditions"]["MayUseSink"]["Fn::And"]
    assert {"Fn::Equals": [{"Ref": "Handler"}, ""]} in clauses


def test_nobody_may_trim_queues_or_make_tables_and_only_who_puts_may_take_an_item_back_and_who_redrives_a_dead_letter(
    resources: dict[str, Any],
) -> None:
    everything = json.dumps([resources[f"{step.title()}Role"] for step in STEPS])
    for action in ("dynamodb:BatchWriteItem", "dynamodb:PartiQLDelete", "dynamodb:CreateTable", "dynamodb:DeleteTable"):
        assert action not in everything
    for step in STEPS:
        for one in statements(resources[f"{step.title()}Role"]):
            takes_back = (step, target(one["Resource"])) in {
                ("enqueue", "ItemsTable.Arn"),
                ("process", "ControlTable.Arn"),
            }
            assert ("dynamodb:DeleteItem" in one["Action"]) is takes_back


def test_the_library_page_gives_a_consumer_of_ones_own_the_rights_that_process_has_on_its_tables() -> None:
    (told,) = re.findall(r"A consumer's role needs (.*?)\.\s", LIBRARY_PAGE.read_text(), re.DOTALL)
    items, cursor, control, index = told.split(";")
    for text, where in (
        (items, "ItemsTable.Arn"),
        (cursor, "CursorTable.Arn"),
        (control, "ControlTable.Arn"),
        (index, "${ControlTable.Arn}/index/listing"),
    ):
        assert {f"dynamodb:{action}" for action in re.findall(r"`([A-Z]\w+)`", text)} == NEEDS["process"][where], where
