"""Deploy the stack, bring its parameters to what was asked for, and do by calls what MiniStack leaves undone.

Without change sets: those of MiniStack do not evaluate conditions, so that one which only switches resources is empty.
"""

from __future__ import annotations

import json
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from stream_sort.errors import LocalStackFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_sort.local.ministack import MiniStack

STACK = "stream-sort"
POLL = 0.1
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
# CloudFormation's answer to the same template and parameters: a source can change and what is built of it not.
NOTHING_TO_DO = "No updates are to be performed."
DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
NEXT_STEP = "To get it on a new stack: local down, which throws away all messages, then local up"
# What SAM calls the mapping of advance, and the parameter that switches it.
ADVANCE, SWITCH = "AdvanceFunctionItems", "AdvanceTrigger"
TABLES = ("ItemsTable", "CursorTable", "ControlTable")


def deployed_parameters(aws: MiniStack) -> dict[str, str]:
    """Read the parameters that the stack has now."""
    with closing(aws.client("cloudformation")) as client:
        return _parameters(_stack(client))


def deployed_outputs(aws: MiniStack) -> dict[str, str]:
    """Read the outputs that the stack has now."""
    with closing(aws.client("cloudformation")) as client:
        return {one["OutputKey"]: one["OutputValue"] for one in _stack(client)["Outputs"]}


def create_or_update(aws: MiniStack, template_url: str, parameters: Mapping[str, str]) -> None:
    """Deploy a template as a new stack, or over the one there is; LocalStackFailed says what went wrong."""
    with closing(aws.client("cloudformation")) as client:
        is_there = any(one["StackName"] == STACK for one in client.describe_stacks()["Stacks"])
        deploy = client.update_stack if is_there else client.create_stack
        try:
            deploy(StackName=STACK, TemplateURL=template_url, Parameters=_given(parameters), Capabilities=CAPABILITIES)
        except client.exceptions.ClientError as error:
            if _message(error) == NOTHING_TO_DO:
                return
            raise LocalStackFailed(f"the local AWS refuses template.yaml: {_message(error)}") from error
        stack = _finished(client)
        if stack["StackStatus"] not in DONE:
            events = client.describe_stack_events(StackName=STACK)["StackEvents"]
            failed = [one for one in events if one["ResourceStatus"].endswith("FAILED")]
            lines = [f"    {one['LogicalResourceId']}: {one.get('ResourceStatusReason')}" for one in failed]
            told = "\n".join([f"template.yaml was not deployed: {stack['StackStatus']}", *lines])
            raise LocalStackFailed(told)


def settle(aws: MiniStack, wanted: Mapping[str, str], report: Callable[[str], None]) -> dict[str, str]:
    """Update the stack unless it has the wanted parameters; return those it has then.

    LocalStackFailed names each value that the stack does not take.
    """
    with closing(aws.client("cloudformation")) as client:
        before = _parameters(_stack(client))
        changes = " ".join(f"{name}={value}" for name, (_, value) in _differences(before, wanted).items())
        if not changes:
            return before
        report(f"setting {changes}")
        _update(client, {**before, **wanted}, changes)
        stack = _stack(client)
    if missed := _differences(_parameters(stack), wanted):
        told = ", ".join(f"{name} is {has!r} and not {value!r}" for name, (has, value) in missed.items())
        why = stack.get("StackStatusReason") or stack["StackStatus"]
        raise LocalStackFailed(f"the local stack did not take what was asked for: {told} ({why}). {NEXT_STEP}")
    return _parameters(stack)


def _update(client: Any, values: Mapping[str, str], changes: str) -> None:
    """Deploy the template that is there with other parameters, and wait until that is over."""
    given = _given(values)
    try:
        client.update_stack(StackName=STACK, UsePreviousTemplate=True, Parameters=given, Capabilities=CAPABILITIES)
    except client.exceptions.ClientError as error:
        raise LocalStackFailed(f"the local AWS refuses {changes}: {_message(error)}. {NEXT_STEP}") from error
    _finished(client)


def _given(parameters: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]


def _message(error: Any) -> str:
    return str(error.response["Error"]["Message"])


def _finished(client: Any) -> Any:
    """Wait until the stack is what it will be."""
    while (stack := _stack(client))["StackStatus"].endswith("IN_PROGRESS"):
        time.sleep(POLL)
    return stack


def _differences(deployed: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
    return {name: (deployed.get(name), value) for name, value in wanted.items() if deployed.get(name) != value}


def _stack(client: Any) -> Any:
    (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    return stack


def _parameters(stack: Any) -> dict[str, str]:
    return {one["ParameterKey"]: one["ParameterValue"] for one in stack.get("Parameters", [])}


def make_amends(aws: MiniStack, outputs: Mapping[str, str], parameters: Mapping[str, str]) -> None:
    """Do for the stack that was just deployed what MiniStack leaves undone."""
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
    """Return the id of a resource, by its name in the template."""
    with closing(aws.client("cloudformation")) as client:
        found = client.describe_stack_resource(StackName=STACK, LogicalResourceId=name)
    return str(found["StackResourceDetail"]["PhysicalResourceId"])
