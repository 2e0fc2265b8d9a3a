"""An account and region, or the local AWS: its clients, and the stack that is deployed there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stream_sort.errors import CredentialsError, LocalStackFailed, SettingsError
from stream_sort.settings import aws_region
from stream_sort.stacks import Stack, deployed_stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.settings import Settings

CONNECT_TIMEOUT = 3.0
NO_REGION = "no AWS region is set; give --region, or set AWS_REGION"


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

        if not self.where:
            raise SettingsError(NO_REGION)
        return self._kept(
            make_client(settings, region=self.region, endpoint_url=self.endpoint_url, session=self.session)
        )

    def client(self, service: str, *, read_timeout: float) -> Any:
        """A client of any service; a call that may have been heard is not made again."""
        from botocore.config import Config  # noqa: PLC0415  # as all imports of commands
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415

        if not self.where:
            raise SettingsError(NO_REGION)
        once = {"total_max_attempts": 1}
        config = Config(connect_timeout=CONNECT_TIMEOUT, read_timeout=read_timeout, retries=once)
        try:
            return self._kept(
                self.session.client(service, region_name=self.where, endpoint_url=self.endpoint_url, config=config)
            )
        except (BotoCoreError, ValueError) as error:
            # botocore says a bare ValueError of an address; whatever else it does not like is an error of its own.
            which = "--region and --profile" if isinstance(error, BotoCoreError) else "--endpoint-url"
            raise SettingsError(f"no {service} client can be made: {_told(error)}; check {which}") from error

    def close(self) -> None:
        """Close all clients."""
        while self.made:
            self.made.pop().close()

    def _kept(self, client: Any) -> Any:
        self.made.append(client)
        return client


def find_stack(name: str | None, place: Place, *, may_be_local: bool) -> tuple[Stack, Place]:
    """The stack of that name; without one, the local stack if it may be meant and is up. And where it is."""
    if name:
        try:
            return deployed_stack(name, place.client("cloudformation", read_timeout=10.0)), place
        except (CredentialsError, SettingsError) as error:
            if may_be_local and _local() is not None:
                raise type(error)(f"{error} (a local stack is up: to mean that one, leave out --stack)") from error
            raise
    local = _local() if may_be_local else None
    if local is None:
        return Stack(), place
    from stream_sort.local.tools import ACCESS_KEY, REGION  # noqa: PLC0415  # as all imports of commands

    where = replace(place, region=REGION, endpoint_url=local.endpoint, key=ACCESS_KEY)
    return Stack("the local stack", local.outputs, local.record.parameters), where


def local_hint(elsewhere: Sequence[str]) -> str:
    """How the local stack is meant, if it is up, or else started; `elsewhere` is what was given and says AWS."""
    from stream_sort.local.project import is_in_checkout  # noqa: PLC0415  # as all imports of commands

    local, said = _local(), " and ".join(elsewhere)
    if local is not None:
        return f"; a local stack is up in {local.home}: to mean that one, leave out {said}"
    where = "" if is_in_checkout() else " in a checkout of stream_sort"
    return f", or{f', without {said},' if said else ''} start a local stack{where}: stream-sort local up"


def _local() -> Any:
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    try:
        return LocalStack.find()
    except LocalStackFailed:
        # Not in a checkout: then there is none.
        return None


def _told(error: Exception) -> str:
    return str(error).rstrip(".")
