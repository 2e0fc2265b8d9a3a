"""Make the clients of AWS, and read what their calls answer: a proxy may have answered, or an answer was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError
from botocore.parsers import ResponseParserError

from stream_sort.errors import SettingsError, shown
from stream_sort.settings import aws_region

if TYPE_CHECKING:
    from collections.abc import Callable

    from stream_sort.settings import Settings

# What botocore raises for an answer that it cannot read. Where it holds another shape than it looks for, it just fails.
UNREADABLE = (ResponseParserError, AttributeError, LookupError, TypeError, ValueError)


def make_client(
    settings: Settings, *, region: str | None = None, endpoint_url: str | None = None, session: Any = None
) -> Any:
    """Make a client of DynamoDB that leaves the retries to us: one deadline, one backoff."""
    return service_client(
        "dynamodb",
        region=region,
        endpoint_url=endpoint_url,
        session=session,
        connect_timeout=min(2.0, settings.deadline),
        read_timeout=min(5.0, settings.deadline),
        retries={"total_max_attempts": 1},
        max_pool_connections=max(10, settings.in_flight * 2),
    )


def service_client(
    service: str, *, region: str | None = None, endpoint_url: str | None = None, session: Any = None, **config: Any
) -> Any:
    """Make a client of a service, in the region of the environment if none is given; `config` is botocore's.

    The short user agent alone takes a quarter off the CPU of every call.
    """
    try:
        session = session or boto3.session.Session()
        where = region or session.region_name or aws_region()
        options = Config(user_agent="stream_sort", **config)
        return session.client(service, region_name=where, endpoint_url=endpoint_url, config=options)
    except NoRegionError as error:
        raise SettingsError("no AWS region is set; set AWS_REGION, or pass client=") from error
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(f"no {service} client can be made: {str(error).rstrip('.')}") from error


class UnreadableAnswer(BotoCoreError):  # type: ignore[misc]  # botocore has no types
    """An answer that AWS does not give: nobody knows what was done, as after a timeout."""

    fmt = "the answer cannot be read, a proxy may have given it: {problem}"


def answered(call: Callable[..., Any], /, *parts: str, **request: Any) -> dict[str, Any]:
    """Make a call; UnreadableAnswer unless its answer can be read and has these parts."""
    try:
        answer: dict[str, Any] = call(**request)
    except (BotoCoreError, ClientError):
        raise
    except UNREADABLE as error:
        raise UnreadableAnswer(problem=shown(error, 200)) from error
    for part in parts:
        if part not in answer:
            raise UnreadableAnswer(problem=f"it has no {part}")
    return answer
