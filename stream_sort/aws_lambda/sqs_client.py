"""The client with which functions send to SQS."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from stream_sort.settings import aws_region


def make_sqs_client() -> Any:
    """A client that gives up within seconds: its caller has a run to finish."""
    session = boto3.session.Session()
    config = Config(
        user_agent="stream_sort",
        connect_timeout=2,
        read_timeout=3,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    return session.client("sqs", region_name=session.region_name or aws_region(), config=config)
