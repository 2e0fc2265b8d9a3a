"""The AWS around a checkup: how it is asked, what its stack says of itself, and what to type to mend it. Reads only.

CloudFormation compares templates, not resources: to deploy the same template again leaves alone what was changed or
deleted past it. Nothing here points a local stack at AWS.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stream_sort.program import program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_sort.insight.wording import CommandText

RESET = "local reset, which throws away all messages: nothing else restores it"
# How a listing says that it goes on, and how the next page is asked for.
MARKS = {"cloudformation": ("NextToken", "NextToken"), "lambda": ("NextMarker", "Marker")}


class Unanswered(Exception):
    """AWS did not say; the text tells why, and never leaves a checkup as an error."""


class Ask(Protocol):
    """Asks a service of AWS."""

    def __call__(self, service: str, method: str, **request: Any) -> dict[str, Any] | None:
        """Return what it answers; None if there is no such thing, Unanswered if it does not tell."""


class AwsCommand(Protocol):
    """Writes commands of the AWS command line."""

    def __call__(self, *words: str) -> str:
        """Return a command with the options that lead to the same place."""


@dataclass(frozen=True, slots=True)
class Aws:
    """Where a checkup looks.

    `where` returns the region. `stack` is what CloudFormation calls the stack, empty if there is none; `is_local` says
    that it is the local one.
    """

    ask: Ask
    command: AwsCommand
    stream_sort: CommandText
    where: Callable[[], str | None]
    stack: str = ""
    is_local: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)

    def parameter(self, name: str, default: str) -> str:
        """Return a parameter of the stack."""
        return self.parameters.get(name) or default

    def pages(self, service: str, method: str, part: str, **request: Any) -> list[dict[str, Any]]:
        """Return all of a listing; empty if what is asked for is not there."""
        found: list[dict[str, Any]] = []
        out, into = MARKS[service]
        while True:
            answer = self.ask(service, method, **request) or {}
            found += answer.get(part, [])
            if not answer.get(out):
                return found
            request[into] = answer[out]


def update(aws: Aws) -> str:
    """Return what brings the functions to another version: a deployment does, as their layer differs."""
    if aws.is_local:
        return f"{program()} local up"
    return "in a checkout of the version that you want: make deploy"


def restore(aws: Aws) -> str:
    """Return what makes a resource again what the template says, be it changed or gone."""
    if aws.is_local:
        return f"{program()} {RESET}"
    return (
        "to deploy again restores nothing, as the template is the same; make a drift-aware change set of stack "
        f"{aws.stack!r} with its present template (in the console of CloudFormation, or by aws cloudformation "
        "create-change-set --deployment-mode REVERT_DRIFT), look at it, then execute it"
    )


def retouch(aws: Aws) -> str:
    """Return what restores the policy of a role or the variables of a function: both are new if Tracing differs."""
    if not aws.is_local:
        return restore(aws)
    before = aws.parameters.get("Tracing", "")
    other = "PassThrough" if before == "Active" else "Active"
    up = f"{program()} local up --set Tracing="
    there_and_back = f"{up}{other} && {up}{before}"
    return f"deploy it again, which keeps all messages: {there_and_back}"


def map_again(request: Mapping[str, object], aws: Aws) -> str:
    """Return what makes an event source mapping as the template has it; nothing that is stored is touched."""
    make = aws.command("lambda", "create-event-source-mapping", "--cli-input-json", json.dumps(request))
    return make if aws.is_local else f"{make}; CloudFormation does not know of it: delete it by hand with the stack"


def logs_of(step: str, aws: Aws) -> str:
    """Return the command that shows what a step logged."""
    if aws.is_local:
        return f"{program()} local logs {step}"
    return aws.command("logs", "tail", f"/stream-sort/{aws.stack}/{step}", "--since", "1h")
