"""What a deployed stack says of itself: its outputs and parameters, and the settings that they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import AccessDenied, CredentialsError, SettingsError, StoreUnavailable, StreamSortError
from stream_sort.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the local stack is called, while it is up and nothing says that AWS is meant.
LOCAL = "local"
# Outputs and parameters of the template that a reader of its tables must know, by the variable that says the same.
OUTPUTS = {"ITEMS_TABLE": "ItemsTable", "CURSOR_TABLE": "CursorTable", "CONTROL_TABLE": "ControlTable"}
PARAMETERS = {
    "QUEUE_KEY": "QueueKey",
    "SEQ_KEY": "SeqKey",
    "FIRST_SEQ": "FirstSeq",
    "GAP_POLICY": "GapPolicy",
    "CONSUMER": "Consumer",
    "START": "Start",
    "BATCH_SIZE": "BatchSize",
    "MAX_ATTEMPTS": "MaxAttempts",
    "ON_POISON": "OnPoison",
}
# A stack without these is not ours; a control table is asked for where it is needed.
NEEDED = ("ItemsTable", "CursorTable")
BEING_MADE = ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")
FAILED = ("CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")
GOING = ("DELETE_IN_PROGRESS", "DELETE_COMPLETE")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a caller gives what an error speaks of: as options of a command, or as keywords."""

    stack: str = "--stack {}"
    region: str = "--region"
    profile: str = "--profile"
    profile_value: str = "--profile {}"
    endpoint_url: str = "--endpoint-url"
    tables: str = "--items-table and --cursor-table"
    local: str = "leave out --stack"


OPTIONS = Spelling()
KEYWORDS = Spelling(
    "stack {!r}",
    "region=",
    "profile=",
    "profile={}",
    "endpoint_url=",
    "StreamSorter(items_table=..., cursor_table=...)",
    "name it 'local'",
)


@dataclass(frozen=True, slots=True)
class Stack:
    """What is known of a deployed stack; nothing, if none was asked for."""

    name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the STREAM_SORT_* variables that say the same."""
        values = {name: self.outputs.get(output) for name, output in OUTPUTS.items()}
        values |= {name: self.parameters.get(parameter) for name, parameter in PARAMETERS.items()}
        return {PREFIX + name: value for name, value in values.items() if value}


def deployed_stack(name: str, cloudformation: Any, spelling: Spelling = OPTIONS) -> Stack:
    """Return the stack of that name, as CloudFormation knows it.

    Raises SettingsError if there is none, it is not ours, or it has no tables: it failed, or is being deleted. A stack
    of which an update is under way or rolled back has the tables it had.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # who asks for no stack needs no AWS

    subject = spelling.stack.format(name)
    try:
        stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except (ClientError, BotoCoreError) as error:
        raise _translated(error, subject, cloudformation.meta.region_name, spelling) from error
    _check_status(subject, name, stack.get("StackStatus", ""))
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}
    parameters = {one["ParameterKey"]: one["ParameterValue"] for one in stack.get("Parameters", [])}
    for output in NEEDED:
        if output not in outputs:
            raise SettingsError(f"{subject}: it has no output {output}; is it a stack of stream_sort?")
    return Stack(name, outputs, parameters)


def _check_status(subject: str, name: str, status: str) -> None:
    aws = "aws cloudformation"
    if status in BEING_MADE:
        wait = f"{aws} wait stack-create-complete --stack-name {name}"
        raise StoreUnavailable(f"{subject}: it is still being created ({status}); wait for it: {wait}")
    if status in FAILED:
        why = f"{aws} describe-stack-events --stack-name {name}"
        raise SettingsError(
            f"{subject}: it could not be created ({status}), and has no tables to rely on. See why: {why}; "
            "then delete it and deploy it again"
        )
    if status in GOING:
        raise SettingsError(f"{subject}: it is deleted, or about to be ({status}); deploy it again, or name another")


def _translated(error: Exception, subject: str, region: str, spelling: Spelling) -> StreamSortError:
    """Return our error for one of CloudFormation's; its code decides, its text only where the code says too little."""
    from botocore.exceptions import ClientError, NoCredentialsError  # noqa: PLC0415  # as above

    from stream_sort.aws.errors import code_of, is_denied, is_retryable, lacks_credentials, said_of  # noqa: PLC0415

    code, said = code_of(error), said_of(error) or str(error).rstrip(".")
    facts = {"operation": "DescribeStacks", "code": code, "said": said_of(error)}
    login = f"give {spelling.profile}, or set AWS_PROFILE, or log in"
    if isinstance(error, NoCredentialsError):
        return CredentialsError(f"{subject}: no AWS credentials are found; {login}", **facts)
    if lacks_credentials(error):
        return CredentialsError(f"{subject}: no usable AWS credentials: {said}; {login} again", **facts)
    if is_denied(error):
        right = f"not allowed to call cloudformation:DescribeStacks in {region}"
        ways = f"add it to the policy of whoever runs this, or name the tables: {spelling.tables}"
        return AccessDenied(f"{subject}: {right}; {ways}. AWS says: {said}", **facts)
    if is_retryable(error):
        where = f"is it the right {spelling.region} or {spelling.endpoint_url}, and reachable from here?"
        again = "the same call can be made again" if isinstance(error, ClientError) else where
        return StoreUnavailable(f"{subject}: {said}; {again}", **facts)
    if code == "ValidationError" and said.endswith("does not exist"):
        said = f"there is no stack of that name in {region}"
    else:
        said += f" (region {region})"
    return SettingsError(f"{subject}: {said}; check the name, {spelling.region} and {spelling.profile}")
