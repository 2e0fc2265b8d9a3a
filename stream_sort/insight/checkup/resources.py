"""What a deployed stack consists of: its status, its queues and its bucket for what failed, and its alarms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.insight.checkup.aws import logs_of, restore
from stream_sort.insight.checkup.finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stream_sort.insight.checkup.aws import Aws

AREA, LETTERS, ALARMS = "stack", "dead letters", "alarms"
STEPS = ("enqueue", "advance", "process", "sweep")
# What is in each, and whose log says why.
QUEUES = {
    "EnqueueDeadLetters": ("bodies that could not be stored", "enqueue"),
    "RetryDeadLetters": ("wakes that failed again and again", "process"),
    "StreamFailures": ("places in the tables' streams that Lambda gave up on", "process"),
    "KinesisFailures": ("notes of Kinesis records that Lambda gave up on; the bucket beside it keeps them", "enqueue"),
}
BUCKET = "KinesisFailuresBucket"
# How many seconds a command hides the letters that it works on.
WORK = 300
# Wakes, which go back to where they came from. All others are for stream-sort dead-letters.
WAKES = "RetryDeadLetters"


@dataclass(frozen=True, slots=True)
class Resources:
    """A stack, and the ids and types of its resources by their names in the template."""

    stack: str
    ids: Mapping[str, str]
    kinds: Mapping[str, str]
    status: str = ""

    @classmethod
    def read(cls, aws: Aws) -> Resources:
        """Read those of the stack."""
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
        """Return the ids of all resources of a type, by name."""
        return {name: self.ids[name] for name, one in self.kinds.items() if one == kind}


def function_of(step: str) -> str:
    """Return the name of a step's function in the template."""
    return f"{step.title()}Function"


def check_status(found: Resources, aws: Aws) -> Iterator[Finding]:
    """Check that the last deployment came to its end."""
    events = aws.command("cloudformation", "describe-stack-events", "--stack-name", found.stack)
    if found.status.endswith("_IN_PROGRESS"):
        yield warn(AREA, f"stack {found.stack!r} is {found.status}", "wait, and look again")
    elif "ROLLBACK" in found.status or not found.status.endswith("_COMPLETE"):
        level = warn if found.status == "UPDATE_ROLLBACK_COMPLETE" else fail
        yield level(AREA, f"stack {found.stack!r} is {found.status or 'not there'}", events)
    else:
        yield ok(AREA, f"stack {found.stack!r} is {found.status}: {len(found.ids)} resources")


def variables_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of a function."""
    variables: dict[str, str] = config.get("Environment", {}).get("Variables", {})
    return variables


def hidden_now(count: int) -> str:
    """Say of letters that are hidden when they can be seen again, at the latest."""
    what, which = ("is", "it") if count == 1 else ("are", "them")
    why = f"as another command works on {which} or was interrupted"
    return f"{count:,} more {what} hidden now, {why}; look again in {WORK // 60} minutes"


def check_letters(name: str, url: str, attributes: Mapping[str, str] | None, aws: Aws) -> Iterator[Finding]:
    """Check that a queue for what failed is empty."""
    what, step = QUEUES[name]
    if attributes is None:
        yield fail(LETTERS, f"the queue {name} is gone", restore(aws))
        return
    count = int(attributes.get("ApproximateNumberOfMessages", 0))
    hidden = int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0))
    if not count and not hidden:
        yield ok(LETTERS, f"{name} is empty")
        return
    told = f"{name} holds {count:,} {what}" if count else f"nothing can be seen in {name}"
    told += f"; {hidden_now(hidden)}" if hidden else ""
    yield warn(LETTERS, told, f"see why: {_then(name, step, attributes.get('QueueArn', url), aws)}")


def check_bucket(name: str, bucket: str, aws: Aws) -> Iterator[Finding]:
    """Check that a bucket for what failed is empty: what it keeps outlives the notes of it, and their alarm."""
    listed = aws.ask("s3", "list_objects_v2", Bucket=bucket)
    if listed is None:
        yield fail(LETTERS, f"the bucket {name} is gone", restore(aws))
        return
    count = len(listed.get("Contents", ()))
    if not count:
        yield ok(LETTERS, f"{name} is empty")
        return
    known = "at least " if listed.get("IsTruncated") else ""
    told = f"{name} keeps {known}{count:,} {'batch' if count == 1 else 'batches'} of Kinesis that Lambda gave up on"
    yield warn(LETTERS, told, f"see why: {_then(name, 'enqueue', '', aws)}")


def _then(name: str, step: str, arn: str, aws: Aws) -> str:
    """Name the commands that show what a queue holds and try it again. None deletes what nobody looked at."""
    if name == WAKES:
        again = aws.command("sqs", "start-message-move-task", "--source-arn", arn)
        return f"{logs_of(step, aws)}; once fixed, wake them again: {again}"
    redrive = aws.stream_sort("dead-letters", "redrive", options=["--all"])
    return f"{aws.stream_sort('dead-letters', 'list')} and {logs_of(step, aws)}; once fixed: {redrive}"


def check_alarms(found: Sequence[Mapping[str, Any]], names: Mapping[str, str], aws: Aws) -> Iterator[Finding]:
    """Check that no alarm is raised, that all are there, and that somebody hears them."""
    there = {alarm["AlarmName"]: alarm for alarm in found}
    for name, called in names.items():
        alarm = there.get(called)
        if alarm is None:
            yield warn(ALARMS, f"{name} is gone", restore(aws))
        elif alarm.get("StateValue") == "ALARM":
            yield warn(ALARMS, f"{name} is raised: {alarm.get('StateReason', '')}", alarm.get("AlarmDescription", ""))
    raised = [alarm for alarm in found if alarm.get("StateValue") == "ALARM"]
    if names and not raised and len(there) == len(names):
        heard = any(alarm.get("AlarmActions") for alarm in found)
        told = "" if heard else "; nobody gets them, as AlarmTopic is empty"
        yield ok(ALARMS, f"none of {len(names)} is raised{told}")
