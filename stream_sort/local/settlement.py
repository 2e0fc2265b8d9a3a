"""Bring the parameters of the deployed stack to what was asked for, and read them back.

MiniStack's change sets do not evaluate conditions: if a parameter only switches resources, `sam deploy` finds "no
changes". An update without a change set evaluates them.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stream_sort.errors import LocalStackFailed
from stream_sort.local.sam import STACK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_sort.local.ministack import MiniStack

POLL = 0.1
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
NEXT_STEP = "To have it on a new stack: local down, which throws away all messages, then local up"


def deployed_parameters(aws: MiniStack) -> dict[str, str]:
    """Read the parameters that the stack has now."""
    with closing(aws.client("cloudformation")) as client:
        return _parameters(_stack(client))


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
    given = [{"ParameterKey": name, "ParameterValue": value} for name, value in values.items()]
    try:
        client.update_stack(StackName=STACK, UsePreviousTemplate=True, Parameters=given, Capabilities=CAPABILITIES)
    except client.exceptions.ClientError as error:
        told = error.response["Error"]["Message"]
        raise LocalStackFailed(f"the local AWS refuses {changes}: {told}. {NEXT_STEP}") from error
    while _stack(client)["StackStatus"].endswith("IN_PROGRESS"):
        time.sleep(POLL)


def _differences(deployed: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, tuple[str | None, str]]:
    return {name: (deployed.get(name), value) for name, value in wanted.items() if deployed.get(name) != value}


def _stack(client: Any) -> Any:
    (stack,) = client.describe_stacks(StackName=STACK)["Stacks"]
    return stack


def _parameters(stack: Any) -> dict[str, str]:
    return {one["ParameterKey"]: one["ParameterValue"] for one in stack.get("Parameters", [])}
