"""Where a job's tables are: what options leave out comes from variables, a stack, or the local stack that is near."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stream_sort.aws.stacks import LOCAL, OUTPUTS, Stack, deployed_stack
from stream_sort.errors import SettingsError
from stream_sort.settings import PREFIX, aws_region, variables

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

KEYS = ("queue_key", "seq_key")
# Of those jobs that ask for it.
START = "first_seq"
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")


@dataclass(frozen=True, slots=True)
class Nearby:
    """A stack on this machine; `key` is the access key of its AWS, which is its secret, too."""

    stack: Stack
    region: str | None
    endpoint_url: str | None
    key: str | None


FindNearby = Callable[[], Nearby | None]


@contextmanager
def located(given: argparse.Namespace, find_nearby: FindNearby | None = None) -> Iterator[None]:
    """Fill in the names that the options left out, and act as --profile says, until it ends."""
    near = find_nearby() if find_nearby is not None and _may_be_near(given) else None
    with _acting_as(given.profile, near):
        if near is not None:
            given.region, given.endpoint_url = near.region, near.endpoint_url
        stack = near.stack if near else _stack_of(given)
        known = stack.variables() | variables()
        if _reads_files(given):
            # Tables beside an export or an archive are for those who ask for them.
            known = stack.variables() | {name: value for name, value in known.items() if name.endswith("_KEY")}
        for name in (*(name.lower() for name in OUTPUTS), *KEYS, *((START,) if hasattr(given, START) else ())):
            if not getattr(given, name) and _uses(given, name):
                setattr(given, name, known.get(PREFIX + name.upper()))
        yield


def _may_be_near(given: argparse.Namespace) -> bool:
    """Return True if the local stack may be meant: nothing else is said."""
    deployed = given.stack not in {None, "", LOCAL}
    elsewhere = deployed or given.profile or given.region or given.endpoint_url or _reads_files(given)
    named = any(getattr(given, name.lower()) or PREFIX + name in variables() for name in OUTPUTS)
    return not (elsewhere or named)


def _reads_files(given: argparse.Namespace) -> bool:
    """Return True if history is read from files; the archive that the archive job writes is not."""
    return hasattr(given, "export") and bool(given.export or given.archive)


def _uses(given: argparse.Namespace, name: str) -> bool:
    """Return False for the control table of a backfill that joins nobody: a resumed one is compared by its names."""
    return name != "control_table" or bool(getattr(given, "until_position", True))


def _stack_of(given: argparse.Namespace) -> Stack:
    if not given.stack:
        return Stack()
    import boto3  # noqa: PLC0415  # --help has no use for it
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    region = given.region or aws_region()
    try:
        client = boto3.session.Session().client("cloudformation", region_name=region, endpoint_url=given.endpoint_url)
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(f"--stack {given.stack}: {str(error).rstrip('.')}; give --region or --profile") from error
    try:
        return deployed_stack(given.stack, client)
    finally:
        client.close()


@contextmanager
def _acting_as(profile: str | None, near: Nearby | None) -> Iterator[None]:
    """Through the environment, which Spark's workers on this machine inherit; keys in it would go before a profile."""
    if profile:
        _check_profile(profile)
        changed: Mapping[str, str] = {"AWS_PROFILE": profile}
    elif near is not None and near.key:
        changed = {"AWS_ACCESS_KEY_ID": near.key, "AWS_SECRET_ACCESS_KEY": near.key}
    else:
        yield
        return
    touched = (*CREDENTIALS, "AWS_PROFILE")
    before = {name: os.environ.pop(name) for name in touched if name in os.environ}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in touched:
            os.environ.pop(name, None)
        os.environ.update(before)


def _check_profile(profile: str) -> None:
    import boto3  # noqa: PLC0415  # as above
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415

    try:
        boto3.session.Session(profile_name=profile)
    except BotoCoreError as error:
        raise SettingsError(f"--profile {profile}: {str(error).rstrip('.')}; see ~/.aws/config") from error
