"""May each function do what it must: asked of IAM's simulator, action by action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.insight.checkup.aws import Unanswered, restore, retouch
from stream_sort.insight.checkup.finding import Finding, fail, not_checked, ok

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stream_sort.insight.checkup.aws import Aws
    from stream_sort.insight.checkup.functions import Configs

AREA = "roles"
# ListStreams is asked of no stream in particular, so that the simulator's answer for one would say nothing.
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
KINESIS = (
    "kinesis:DescribeStream",
    "kinesis:DescribeStreamSummary",
    "kinesis:GetRecords",
    "kinesis:GetShardIterator",
    "kinesis:ListShards",
)
RECEIVE = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
SEND = ("sqs:SendMessage",)
READ = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem")

# By step, then by the resource's name in the template, what its role must allow; a test compares it with the template.
NEEDS: dict[str, dict[str, tuple[str, ...]]] = {
    "enqueue": {
        "ItemsTable": (
            "dynamodb:BatchGetItem",
            "dynamodb:DeleteItem",
            "dynamodb:PartiQLInsert",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        ),
        "CursorTable": (*READ, "dynamodb:PutItem"),
        "EnqueueQueue": RECEIVE,
        "EnqueueDeadLetters": SEND,
        # If the stack reads Kinesis.
        "KinesisSource/stream": KINESIS,
        "KinesisFailuresBucket": ("s3:ListBucket",),
        "KinesisFailuresBucket/*": ("s3:PutObject",),
    },
    "advance": {
        "ItemsTable": ("dynamodb:BatchGetItem", "dynamodb:Query"),
        "CursorTable": (*READ, "dynamodb:PutItem"),
        "ItemsTable/stream": STREAM,
        "StreamFailures": SEND,
    },
    "process": {
        "ItemsTable": ("dynamodb:BatchGetItem", "dynamodb:Query"),
        "CursorTable": READ,
        "ControlTable": (
            *READ,
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
        ),
        "ControlTable/index/listing": ("dynamodb:Query",),
        "CursorTable/stream": STREAM,
        "RetryQueue": (*RECEIVE, *SEND),
        "StreamFailures": SEND,
        # If the stack has made it.
        "SinkQueue": SEND,
    },
    "sweep": {
        "ItemsTable": ("dynamodb:BatchGetItem", "dynamodb:PartiQLInsert", "dynamodb:PutItem", "dynamodb:Query"),
        "CursorTable": (*READ, "dynamodb:Scan"),
        "CursorTable/index/waiting": ("dynamodb:Query",),
        "CursorTable/index/active": ("dynamodb:Query",),
        "ControlTable": (*READ, "dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:Query"),
        "ControlTable/index/listing": ("dynamodb:Query",),
    },
}


def check_roles(configs: Configs, arns: Mapping[str, str | None], aws: Aws) -> Iterator[Finding]:
    """Check every function; one line if nobody may ask."""
    if not configs:
        yield not_checked(AREA, "which roles the functions have is not known, see above")
    try:
        for step, config in configs.items():
            if config is not None:
                yield from _check_role(step, config["Role"], arns, aws)
    except Unanswered as problem:
        yield not_checked(AREA, f"what the functions may do: {problem}")


def _check_role(step: str, role: str, arns: Mapping[str, str | None], aws: Aws) -> Iterator[Finding]:
    denied: dict[str, list[str]] = {}
    asked = {name: actions for name, actions in NEEDS[step].items() if arns.get(name) is not None}
    for name, actions in asked.items():
        answer = aws.ask(
            "iam",
            "simulate_principal_policy",
            PolicySourceArn=role,
            ActionNames=list(actions),
            ResourceArns=[arns[name]],
        )
        if answer is None:
            yield fail(AREA, f"{step}: its role {role} is gone", restore(aws))
            return
        if refused := [one["EvalActionName"] for one in answer["EvaluationResults"] if _is_denied(one)]:
            denied[name] = refused
    if denied:
        told = "; ".join(f"{', '.join(refused)} on {name}" for name, refused in denied.items())
        yield fail(AREA, f"{step}: its role may not call {told}", retouch(aws))
    else:
        yield ok(AREA, f"{step}: its role allows all {sum(map(len, asked.values()))} actions that it needs")


def _is_denied(result: Mapping[str, Any]) -> bool:
    return bool(result["EvalDecision"] != "allowed")
