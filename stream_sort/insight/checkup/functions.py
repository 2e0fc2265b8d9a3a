"""Are the functions there, can they run, mean all the same tables, run one stream_sort, and may do what they must."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stream_sort.insight.checkup.aws import Unanswered, restore, retouch, update
from stream_sort.insight.checkup.finding import Finding, fail, not_checked, ok, warn
from stream_sort.insight.checkup.resources import function_of, variables_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stream_sort.insight.checkup.aws import Aws

AREA, VERSIONS, ROLES = "functions", "versions", "roles"
# What a function must be told as the stack has it, by the output of the stack.
TABLES = {"STREAM_SORT_ITEMS_TABLE": "ItemsTable", "STREAM_SORT_CURSOR_TABLE": "CursorTable"}
CONTROL = {"STREAM_SORT_CONTROL_TABLE": "ControlTable"}
READERS = ("process", "sweep")
# What all functions that are told it must be told alike, or they disagree on what a queue is.
SHARED = (
    "STREAM_SORT_QUEUE_KEY",
    "STREAM_SORT_SEQ_KEY",
    "STREAM_SORT_FIRST_SEQ",
    "STREAM_SORT_GAP_POLICY",
    "STREAM_SORT_CONSUMER",
)

# The layer's description begins with it.
NAMED = re.compile(r"stream_sort (\d+\.\d+\.\d+\S*?),")

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

Configs = dict[str, dict[str, Any] | None]


def check_function(step: str, config: Mapping[str, Any] | None, aws: Aws) -> Iterator[Finding]:
    """Check that a function can run, and on the stack's tables."""
    if config is None:
        yield fail(AREA, f"{step}: its function is gone", restore(aws))
        return
    name = config["FunctionName"]
    wrong = [*_state(step, config, aws), *_tables(step, config, aws)]
    yield from wrong or [ok(AREA, f"{step}: {name} is {config.get('State', 'Active')}, on the stack's tables")]


def check_agreement(configs: Configs, aws: Aws) -> Iterator[Finding]:
    """Check that all functions are told the same, and run on the same Python."""
    there = {step: config for step, config in configs.items() if config is not None}
    told = {name: {step: variables_of(config).get(name) for step, config in there.items()} for name in SHARED}
    told["runtime"] = {step: config.get("Runtime") for step, config in there.items()}
    apart = {
        name: {step: value for step, value in values.items() if value is not None}
        for name, values in told.items()
        if len(set(values.values()) - {None}) > 1
    }
    for name, values in apart.items():
        differ = ", ".join(f"{step} has {value!r}" for step, value in values.items())
        yield fail(AREA, f"{name} is not the same everywhere: {differ}", retouch(aws))
    if not apart and there:
        yield ok(AREA, f"all have the same keys, first seq and policy, and run on {_runtime(there)}")


def read_configs(aws: Aws, ids: Mapping[str, str], steps: tuple[str, ...]) -> Configs:
    """Return the configuration of each step's function; None where it is gone."""
    return {
        step: aws.ask("lambda", "get_function_configuration", FunctionName=ids[function_of(step)])
        if function_of(step) in ids
        else None
        for step in steps
    }


def layers_of(configs: Configs) -> dict[str, tuple[str, ...]]:
    """Return the layers of each step's function."""
    return {
        step: tuple(layer["Arn"] for layer in config.get("Layers", ()))
        for step, config in configs.items()
        if config is not None
    }


def check_layers(layers: dict[str, tuple[str, ...]], aws: Aws) -> Iterator[Finding]:
    """Check that all functions have the same layers."""
    if len(set(layers.values())) > 1:
        told = "; ".join(f"{step} has {', '.join(arns) or 'none'}" for step, arns in layers.items())
        yield fail(VERSIONS, f"the functions have different layers: {told}", restore(aws))
    elif any(layers.values()):
        yield ok(VERSIONS, f"all functions have the layer {next(iter(layers.values()))[0].partition(':layer:')[2]}")
    elif layers:
        yield fail(VERSIONS, "no function has the layer with stream_sort in it", restore(aws))


def check_version(description: str, ours: str, aws: Aws) -> Iterator[Finding]:
    """Check that the layer's stream_sort is the one of this command."""
    match = NAMED.search(description)
    if match is None:
        yield warn(VERSIONS, f"the layer does not say which stream_sort it holds; this is {ours}", update(aws))
    elif match[1] != ours:
        yield warn(VERSIONS, f"the functions run stream_sort {match[1]}, this command is {ours}", update(aws))
    else:
        yield ok(VERSIONS, f"the functions run stream_sort {ours}, as this command")


def check_roles(configs: Configs, arns: Mapping[str, str | None], aws: Aws) -> Iterator[Finding]:
    """Check every function; one line if nobody may ask."""
    if not configs:
        yield not_checked(ROLES, "which roles the functions have is not known, see above")
    try:
        for step, config in configs.items():
            if config is not None:
                yield from _check_role(step, config["Role"], arns, aws)
    except Unanswered as problem:
        yield not_checked(ROLES, f"what the functions may do: {problem}")


def _state(step: str, config: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    name = config["FunctionName"]
    show = aws.command("lambda", "get-function-configuration", "--function-name", name)
    state, update = config.get("State", "Active"), config.get("LastUpdateStatus", "Successful")
    # One that was idle for long is Inactive, and is made ready by its next run.
    if state == "Failed":
        yield fail(AREA, f"{step}: {name} is Failed: {config.get('StateReason', 'AWS does not say why')}", show)
    elif state == "Pending" or update == "InProgress":
        yield warn(AREA, f"{step}: {name} is being changed", "wait, and look again")
    if update == "Failed":
        why = config.get("LastUpdateStatusReason", "AWS does not say why")
        yield fail(AREA, f"{step}: the last update of {name} failed: {why}", show)


def _tables(step: str, config: Mapping[str, Any], aws: Aws) -> Iterator[Finding]:
    told, outputs = variables_of(config), aws.outputs
    for variable, output in (TABLES | (CONTROL if step in READERS else {})).items():
        wanted, there = outputs.get(output), told.get(variable)
        if wanted is not None and there != wanted:
            told_apart = f"{step}: its {variable} is {there!r}, but the stack's table is {wanted!r}"
            yield fail(AREA, told_apart, retouch(aws))


def _runtime(there: Mapping[str, Mapping[str, Any]]) -> str:
    return next((config["Runtime"] for config in there.values() if config.get("Runtime")), "one Python")


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
            yield fail(ROLES, f"{step}: its role {role} is gone", restore(aws))
            return
        if refused := [one["EvalActionName"] for one in answer["EvaluationResults"] if _is_denied(one)]:
            denied[name] = refused
    if denied:
        told = "; ".join(f"{', '.join(refused)} on {name}" for name, refused in denied.items())
        yield fail(ROLES, f"{step}: its role may not call {told}", retouch(aws))
    else:
        yield ok(ROLES, f"{step}: its role allows all {sum(map(len, asked.values()))} actions that it needs")


def _is_denied(result: Mapping[str, Any]) -> bool:
    return bool(result["EvalDecision"] != "allowed")
