"""What a deployed stack consists of: its resources by their names in the template, and what stands behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.cli.checkup.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stream_sort.cli.checkup.asking import Aws

AREA = "stack"
STEPS = ("enqueue", "advance", "process", "sweep")


@dataclass(frozen=True, slots=True)
class Resources:
    """A stack, and the ids and types of its resources by their names in the template."""

    stack: str
    ids: Mapping[str, str]
    kinds: Mapping[str, str]
    status: str = ""

    @classmethod
    def read(cls, aws: Aws) -> Resources:
        """Those of the stack that a connection names."""
        name = aws.stack
        stacks = (aws.ask("cloudformation", "describe_stacks", StackName=name) or {}).get("Stacks", [])
        listed = aws.pages("cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=name)
        there = [one for one in listed if one.get("PhysicalResourceId")]
        return cls(
            name,
            {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in there},
            {one["LogicalResourceId"]: one["ResourceType"] for one in there},
            stacks[0].get("StackStatus", "") if stacks else "",
        )

    def of_kind(self, kind: str) -> dict[str, str]:
        """The ids of all resources of a type, by name."""
        return {name: self.ids[name] for name, one in self.kinds.items() if one == kind}


def function_of(step: str) -> str:
    """The name of a step's function in the template."""
    return f"{step.title()}Function"


def check_status(found: Resources, aws: Aws) -> Iterator[Finding]:
    """Whether the last deployment came to its end."""
    events = aws.command("cloudformation", "describe-stack-events", "--stack-name", found.stack)
    if found.status.endswith("_IN_PROGRESS"):
        yield warn(AREA, f"stack {found.stack!r} is {found.status}", "wait, and look again")
    elif "ROLLBACK" in found.status or not found.status.endswith("_COMPLETE"):
        level = warn if found.status == "UPDATE_ROLLBACK_COMPLETE" else fail
        yield level(AREA, f"stack {found.stack!r} is {found.status or 'not there'}", events)
    else:
        yield ok(AREA, f"stack {found.stack!r} is {found.status}: {len(found.ids)} resources")


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a function."""
    variables: dict[str, str] = config.get("Environment", {}).get("Variables", {})
    return variables
