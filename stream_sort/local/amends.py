"""What the template says and MiniStack leaves undone, done by calls, so that a local stack is what AWS would make."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from stream_sort.local.settlement import STACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.local.ministack import MiniStack

# What SAM calls the mapping of advance, and the parameter that switches it.
ADVANCE, SWITCH = "AdvanceFunctionItems", "AdvanceTrigger"
TABLES = ("ItemsTable", "CursorTable", "ControlTable")


def make_amends(aws: MiniStack) -> None:
    """Do it for the stack that was just deployed."""
    with closing(aws.client("cloudformation")) as client:
        (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    parameters = {one["ParameterKey"]: one["ParameterValue"] for one in stack["Parameters"]}
    _switch_advance(aws, parameters)
    _keep_backups(aws, outputs)
    # AWS asks for dynamodb:PartiQLInsert, which the roles have; MiniStack asks for what AWS does not know.
    for step in ("enqueue", "sweep"):
        allow(aws, step, ["dynamodb:BatchExecuteStatement"], "*")


def allow(aws: MiniStack, step: str, actions: list[str], resource: str) -> None:
    """Let a function do more than the template says, until its role is deployed again."""
    statement = {"Effect": "Allow", "Action": actions, "Resource": resource}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    name = _called(aws, f"{step.title()}Role")
    with closing(aws.client("iam")) as iam:
        iam.put_role_policy(RoleName=name, PolicyName="-".join(actions).replace(":", "."), PolicyDocument=document)


def _switch_advance(aws: MiniStack, parameters: Mapping[str, str]) -> None:
    """Made with Enabled: false, a mapping reads nothing, and yet says that it is Enabled."""
    # What was deleted by hand is no reason not to deploy: doctor finds it.
    with closing(aws.client("lambda")) as client, suppress(client.exceptions.ResourceNotFoundException):
        client.update_event_source_mapping(UUID=_called(aws, ADVANCE), Enabled=parameters[SWITCH] == "Enabled")


def _keep_backups(aws: MiniStack, outputs: Mapping[str, str]) -> None:
    wanted = {"PointInTimeRecoveryEnabled": True}
    with closing(aws.client("dynamodb")) as client, suppress(client.exceptions.ResourceNotFoundException):
        for name in TABLES:
            client.update_continuous_backups(TableName=outputs[name], PointInTimeRecoverySpecification=wanted)


def _called(aws: MiniStack, name: str) -> str:
    """The id of a resource, by its name in the template."""
    with closing(aws.client("cloudformation")) as client:
        found = client.describe_stack_resource(StackName=STACK, LogicalResourceId=name)
    return str(found["StackResourceDetail"]["PhysicalResourceId"])
