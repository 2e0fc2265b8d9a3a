"""What to do about a stack that is no longer what its template says. Nothing here points a local stack at AWS.

CloudFormation compares templates, not resources: to deploy the same template again leaves alone what was changed or
deleted past it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.cli.checkup.asking import Aws

RESET = "local reset, which throws away all messages: nothing less restores it"


def update(aws: Aws) -> str:
    """What brings the functions to another version: a deployment does, as their layer differs."""
    if aws.is_local:
        return f"{program()} local up"
    return "in a checkout of the version that you want: make deploy"


def restore(aws: Aws) -> str:
    """What makes a resource again what the template says, be it changed or gone."""
    if aws.is_local:
        return f"{program()} {RESET}"
    return (
        "to deploy again restores nothing, as the template is the same; make a drift-aware change set of stack "
        f"{aws.stack!r} with its present template (in the console of CloudFormation, or by aws cloudformation "
        "create-change-set --deployment-mode REVERT_DRIFT), look at it, then execute it"
    )


def retouch(aws: Aws) -> str:
    """What restores the policy of a role or the variables of a function: both are written anew if Tracing differs."""
    if not aws.is_local:
        return restore(aws)
    before = aws.connection.stack.parameters.get("Tracing", "")
    other = "PassThrough" if before == "Active" else "Active"
    up = f"{program()} local up --set Tracing="
    there_and_back = f"{up}{other} && {up}{before}"
    return f"have it written anew, which keeps all messages: {there_and_back}"


def map_again(request: Mapping[str, object], aws: Aws) -> str:
    """What makes an event source mapping as the template has it; nothing that is stored is touched."""
    make = aws.command("lambda", "create-event-source-mapping", "--cli-input-json", json.dumps(request))
    return make if aws.is_local else f"{make}; CloudFormation does not know of it: delete it by hand with the stack"
