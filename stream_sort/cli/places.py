"""An account and region, or the local AWS: its clients, and the stack that is deployed there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stream_sort.errors import LocalStackFailed, SettingsError
from stream_sort.settings import aws_region

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_sort.settings import Settings

CONNECT_TIMEOUT = 3.0


@dataclass(frozen=True)
class Place:
    """Where AWS is and who asks; `key` is the access key of a local AWS, which is its secret, too."""

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    key: str | None = None
    made: list[Any] = field(default_factory=list)

    @cached_property
    def session(self) -> Any:
        """The boto3 session."""
        import boto3  # noqa: PLC0415  # as all imports of commands
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        try:
            return boto3.session.Session(
                profile_name=self.profile,
                region_name=self.region,
                aws_access_key_id=self.key,
                aws_secret_access_key=self.key,
            )
        except BotoCoreError as error:
            raise SettingsError(f"--profile {self.profile}: {error}; see ~/.aws/config") from error

    @property
    def where(self) -> str | None:
        """The region that is meant."""
        return self.region or self.session.region_name or aws_region()

    def dynamodb(self, settings: Settings) -> Any:
        """The client of a sorter."""
        from stream_sort.stores.dynamodb.connection import make_client  # noqa: PLC0415  # as all imports of commands

        return self._kept(
            make_client(settings, region=self.region, endpoint_url=self.endpoint_url, session=self.session)
        )

    def client(self, service: str, *, read_timeout: float) -> Any:
        """A client of any service; a call that may have been heard is not made again."""
        from botocore.config import Config  # noqa: PLC0415  # as all imports of commands
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        once = {"total_max_attempts": 1}
        config = Config(connect_timeout=CONNECT_TIMEOUT, read_timeout=read_timeout, retries=once)
        try:
            return self._kept(
                self.session.client(service, region_name=self.where, endpoint_url=self.endpoint_url, config=config)
            )
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(
                f"no {service} client can be made: {_told(error)}; give --region or --profile"
            ) from error

    def close(self) -> None:
        """Close all clients."""
        while self.made:
            self.made.pop().close()

    def _kept(self, client: Any) -> Any:
        self.made.append(client)
        return client


@dataclass(frozen=True, slots=True)
class Stack:
    """What is known of a deployed stack; nothing, if none was asked for."""

    name: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


def find_stack(name: str | None, place: Place, *, may_be_local: bool) -> tuple[Stack, Place]:
    """The stack of that name; without one, the local stack if it may be meant and is up. And where it is."""
    if name:
        return _deployed(name, place), place
    local = _local() if may_be_local else None
    if local is None:
        return Stack(), place
    from stream_sort.local.tools import ACCESS_KEY, REGION  # noqa: PLC0415  # as all imports of commands

    where = replace(place, region=REGION, endpoint_url=local.endpoint, key=ACCESS_KEY)
    return Stack("the local stack", local.outputs, local.record.parameters), where


def _deployed(name: str, place: Place) -> Stack:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415  # as all imports of commands

    try:
        told = place.client("cloudformation", read_timeout=10.0).describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        why = error.response["Error"]["Message"]
        raise SettingsError(f"--stack {name}: {why} (region {place.where}); is it --region or --profile?") from error
    except BotoCoreError as error:
        raise SettingsError(f"--stack {name}: {_told(error)}; give --profile, --region or --endpoint-url") from error
    outputs = {one["OutputKey"]: one["OutputValue"] for one in told.get("Outputs", [])}
    parameters = {one["ParameterKey"]: one["ParameterValue"] for one in told.get("Parameters", [])}
    if "ItemsTable" not in outputs:
        raise SettingsError(f"--stack {name}: it has no output ItemsTable; is it a stack of stream_sort?")
    return Stack(name, outputs, parameters)


def _local() -> Any:
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    try:
        return LocalStack.find()
    except LocalStackFailed:
        # Not in a checkout: then there is none.
        return None


def _told(error: Exception) -> str:
    return str(error).rstrip(".")
