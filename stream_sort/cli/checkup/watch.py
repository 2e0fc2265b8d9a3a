"""What others have noticed: what lies in dead-letter queues, and the alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stream_sort.cli.checkup.finding import Finding, fail, ok, warn
from stream_sort.cli.checkup.functions import logs_of
from stream_sort.cli.checkup.remedies import restore
from stream_sort.cli.refused import hidden_now

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stream_sort.cli.checkup.asking import Aws

LETTERS, ALARMS = "dead letters", "alarms"
# What is in each, and whose log says why.
QUEUES = {
    "EnqueueDeadLetters": ("bodies that could not be stored", "enqueue"),
    "RetryDeadLetters": ("wakes that failed again and again", "process"),
    "StreamFailures": ("places in the tables' streams that Lambda gave up on", "process"),
    "KinesisFailures": ("notes of Kinesis records that Lambda gave up on; the bucket beside it keeps them", "enqueue"),
}
BUCKET = "KinesisFailuresBucket"
# Wakes, which go back to where they came from. All others are for stream-sort dead-letters.
WAKES = "RetryDeadLetters"


def check_letters(name: str, url: str, attributes: Mapping[str, str] | None, aws: Aws) -> Iterator[Finding]:
    """Whether a queue for what failed is empty."""
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
    """Look whether a bucket for what failed is empty: what it keeps outlives the notes of it, and their alarm."""
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
        return f"{logs_of(step, aws)}; once mended, wake them again: {again}"
    command = aws.connection.command
    redrive = command("dead-letters", "redrive", options=["--all"])
    return f"{command('dead-letters', 'list')} and {logs_of(step, aws)}; once mended: {redrive}"


def check_alarms(found: Sequence[Mapping[str, Any]], names: Mapping[str, str], aws: Aws) -> Iterator[Finding]:
    """Which alarms are raised, whether all are there, and whether anybody hears them."""
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
        told = "" if heard else "; nobody is told of them, as AlarmTopic is empty"
        yield ok(ALARMS, f"none of {len(names)} is raised{told}")
