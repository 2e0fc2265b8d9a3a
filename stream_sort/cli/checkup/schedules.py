"""Does the sweep run by itself: the rules that start it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stream_sort.cli.checkup.finding import Finding, fail, ok
from stream_sort.cli.checkup.remedies import restore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stream_sort.cli.checkup.asking import Aws

AREA = "schedules"
# The names that SAM gives to the two schedules of SweepFunction, and what is not done without each.
RULES = {
    "SweepFunctionOften": "no gap policy acts, and nobody wakes consumers that sleep",
    "SweepFunctionSeldom": "nobody finds a queue whose last writer died",
}


class Rule(NamedTuple):
    """A rule by its name in the template, as EventBridge has it (None if it is gone), and the ARNs that it calls."""

    name: str
    found: Mapping[str, Any] | None
    targets: Collection[str] = ()


def check_rule(rule: Rule, function: str | None, aws: Aws) -> Iterator[Finding]:
    """Whether a rule is on and starts the function of that ARN."""
    name, found = rule.name, rule.found
    without = RULES[name]
    if found is None:
        yield fail(AREA, f"the rule {name} is gone: {without}", restore(aws))
        return
    told = f"{name} ({found.get('ScheduleExpression', 'no schedule')})"
    if not str(found.get("State", "")).startswith("ENABLED"):
        enable = aws.command("events", "enable-rule", "--name", found["Name"])
        yield fail(AREA, f"{told} is {found.get('State')}: {without}", enable)
    elif function is not None and function not in rule.targets:
        yield fail(AREA, f"{told} does not start the sweep: {without}", restore(aws))
    else:
        yield ok(AREA, f"{told} is ENABLED and starts the sweep")
