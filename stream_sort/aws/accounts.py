"""An account and region, or the local AWS: its clients, and the stack that is deployed there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stream_sort.aws.stacks import KEYWORDS, LOCAL, OPTIONS, Spelling, Stack, deployed_stack
from stream_sort.errors import AccessDenied, CredentialsError, LocalStackFailed, SettingsError, shown
from stream_sort.program import program
from stream_sort.settings import aws_region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.settings import Settings

CONNECT_TIMEOUT = 3.0


@dataclass(frozen=True)
class AwsPlace:
    """Where AWS is and who asks; `key` is the access key of a local AWS, which is its secret, too.

    `given` is a boto3 session that is used instead of a profile.
    """

    profile: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    key: str | None = None
    made: list[Any] = field(default_factory=list)
    given: Any = None
    spelling: Spelling = OPTIONS

    @cached_property
    def session(self) -> Any:
        """The boto3 session."""
        if self.given is not None:
            return self.given
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
            who = self.spelling.profile_value.format(self.profile)
            raise SettingsError(f"{who}: {error}; see ~/.aws/config") from error

    @property
    def where(self) -> str | None:
        """The region that is meant."""
        return self.region or self.session.region_name or aws_region()

    def check_region(self) -> None:
        """Raise SettingsError if nothing says which region is meant."""
        if not self.where:
            raise SettingsError(f"no AWS region is set; give {self.spelling.region}, or set AWS_REGION")

    def dynamodb(self, settings: Settings) -> Any:
        """Make the client of a sorter."""
        from stream_sort.aws.clients import make_client  # noqa: PLC0415  # as all imports of commands

        self.check_region()
        return self._kept(
            make_client(settings, region=self.region, endpoint_url=self.endpoint_url, session=self.session)
        )

    def client(self, service: str, *, read_timeout: float) -> Any:
        """Make a client of any service; a call that may have been heard is not made again."""
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415  # as all imports of commands

        from stream_sort.aws.clients import service_client  # noqa: PLC0415

        self.check_region()
        options: dict[str, Any] = {"region": self.where, "endpoint_url": self.endpoint_url, "session": self.session}
        options |= {"connect_timeout": CONNECT_TIMEOUT, "read_timeout": read_timeout}
        try:
            return self._kept(service_client(service, **options, retries={"total_max_attempts": 1}))
        except SettingsError as error:
            # botocore says a bare ValueError of an address; whatever else it does not like is an error of its own.
            of_aws = f"{self.spelling.region} and {self.spelling.profile}"
            which = of_aws if isinstance(error.__cause__, BotoCoreError) else self.spelling.endpoint_url
            raise SettingsError(f"{error}; check {which}") from error.__cause__

    def close(self) -> None:
        """Close all clients."""
        while self.made:
            self.made.pop().close()

    def _kept(self, client: Any) -> Any:
        self.made.append(client)
        return client


def find_stack(name: str | None, place: AwsPlace, *, may_be_local: bool) -> tuple[Stack, AwsPlace]:
    """Find the stack of that name, and where it is; without one, or by the name `local`, the local stack if it is up.

    Where something says that AWS is meant, it is no local one. LocalStackFailed if `local` is one that died.
    """
    local = _local() if may_be_local and name in {None, "", LOCAL} else None
    if local is not None:
        from stream_sort.local.tools import ACCESS_KEY, REGION  # noqa: PLC0415  # as all imports of commands

        where = replace(place, region=REGION, endpoint_url=local.endpoint, key=ACCESS_KEY)
        return Stack("the local stack", local.outputs, local.record.parameters), where
    if may_be_local and name == LOCAL:
        from stream_sort.local.report import refuse_dead_stack  # noqa: PLC0415  # as all imports of commands

        refuse_dead_stack()
    if not name:
        return Stack(), place
    try:
        return deployed_stack(name, place.client("cloudformation", read_timeout=10.0), place.spelling), place
    except (AccessDenied, CredentialsError, SettingsError) as error:
        hint = _hint(name, place) if may_be_local else ""
        if not hint:
            raise
        raise type(error)(f"{error} ({hint})") from error


def _hint(name: str, place: AwsPlace) -> str:
    """Say how to mean the local stack, where a name was looked for in AWS and not found; empty if nobody would."""
    if name == LOCAL:
        return f"no local stack is up; start one{_in_checkout()}: {program()} local up"
    return f"a local stack is up: to mean that one, {place.spelling.local}" if _local() is not None else ""


def named_stack(  # noqa: PLR0913  # each is a keyword of from_stack
    name: object,
    *,
    region: str | None = None,
    profile: str | None = None,
    endpoint_url: str | None = None,
    session: Any = None,
    client: Any = None,
) -> tuple[Stack, AwsPlace]:
    """Find the stack that a program names, and where it is; the region of `client` is that of its stack."""
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{shown(name)} must be the name of a stack, or 'local' for the local one")
    if session is not None and profile is not None:
        raise SettingsError("give session= or profile=, not both")
    if session is not None and not callable(getattr(session, "client", None)):
        raise SettingsError(f"session is {shown(session)}; it must be a boto3.Session")
    is_aws = any(one is not None for one in (region, profile, endpoint_url, session, client))
    if client is not None:
        # Whether it is one is checked by whoever uses it.
        region = region or getattr(getattr(client, "meta", None), "region_name", None)
    place = AwsPlace(profile, region, endpoint_url, given=session, spelling=KEYWORDS)
    try:
        return find_stack(name, place, may_be_local=not is_aws)
    finally:
        # The client that asked for the stack has nothing more to do.
        place.close()


def local_hint(elsewhere: Sequence[str]) -> str:
    """Say how to mean the local stack, if it is up, or to start one; `elsewhere` is what was given and says AWS."""
    local, said = _local(), " and ".join(elsewhere)
    if local is not None:
        return f"; a local stack is up in {local.home}: to mean that one, leave out {said}"
    return f", or{f', without {said},' if said else ''} start a local stack{_in_checkout()}: {program()} local up"


def _in_checkout() -> str:
    from stream_sort.local.project import has_app  # noqa: PLC0415  # as all imports of commands

    return "" if has_app() else " in a checkout of stream_sort"


def _local() -> Any:
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    try:
        return LocalStack.find()
    except LocalStackFailed:
        # Not in a checkout: then there is none.
        return None
